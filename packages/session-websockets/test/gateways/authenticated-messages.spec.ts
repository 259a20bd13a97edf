import { type ArgumentsHost, Catch, type ExceptionFilter, UseFilters } from '@nestjs/common';
import { APP_GUARD } from '@nestjs/core';
import { SubscribeMessage, WebSocketGateway } from '@nestjs/websockets';
import {
  Authenticated,
  AuthenticatedGuard,
  AuthenticationRequiredError,
  Public,
  RecentlyAuthenticated,
} from '@nest-session/core';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { type HttpAgent, RedisServer, sessionOf, signIn } from '@nest-session/testing';
import { Redis } from 'ioredis';
import { io } from 'socket.io-client';
import { WebSocket } from 'ws';
import { closeApps, type Platform, PLATFORMS, reply, SocketApp, type SocketAppOptions } from '../support/socket.app.js';
import { closeClients, connect } from '../support/socket.client.js';

LeakGuard.install();

let redis: RedisServer;
let client: Redis;
let app: SocketApp;

beforeAll(async () => {
  redis = await RedisServer.start();
  client = new Redis(redis.url);
});
afterAll(async () => {
  client.disconnect();
  await redis.stop();
});
afterEach(async () => {
  closeClients();
  await closeApps();
});

const caught: unknown[] = [];

@Catch(AuthenticationRequiredError)
class Catches implements ExceptionFilter<AuthenticationRequiredError> {
  catch({ reason }: AuthenticationRequiredError, host: ArgumentsHost): void {
    caught.push(reason);
    const socket = host.switchToWs().getClient<WebSocket & { emit(event: string, data: object): void }>();
    const data = { message: 'caught by the application' };
    if (typeof socket.readyState === 'number') socket.send(JSON.stringify({ event: 'exception', data }));
    else socket.emit('exception', data);
  }
}

@WebSocketGateway({ path: '/sockets' })
@Authenticated()
class AccountGateway {
  @SubscribeMessage('orders')
  orders() {
    return reply('orders', 'orders');
  }

  @SubscribeMessage('news')
  @Public()
  news() {
    return reply('news', 'news');
  }

  @SubscribeMessage('password')
  @RecentlyAuthenticated('5m')
  password() {
    return reply('password', 'password');
  }

  @SubscribeMessage('caught')
  @UseFilters(new Catches())
  caught() {}
}

@WebSocketGateway({ path: '/sockets' })
class PlainGateway {
  @SubscribeMessage('plain')
  plain() {
    return reply('plain', 'plain');
  }

  @SubscribeMessage('open')
  @Public()
  open() {
    return reply('open', 'open');
  }
}

async function start(platform: Platform, options: Partial<SocketAppOptions> = {}): Promise<HttpAgent> {
  app = await SocketApp.start({ platform, url: redis.url, providers: [AccountGateway], ...options });
  return signIn(app.nest, { principalName: 'ada' });
}

/** Sets when the user of a client has signed in: this many milliseconds ago. */
async function signedInAgo(agent: HttpAgent, milliseconds: number): Promise<void> {
  const { id } = (await sessionOf(app.nest, agent))!;
  const [seconds] = await client.time();
  await client.hset(`nest:session:sessions:${id}`, 'authenticatedAt', Number(seconds) * 1000 - milliseconds);
}

/** What a stranger is told for a message, as a whole. */
function exceptionOf(platform: Platform, event: string): Promise<unknown> {
  if (platform === 'ws') {
    const socket = new WebSocket(`${app.origin.replace('http:', 'ws:')}/sockets`);
    socket.on('open', () => socket.send(JSON.stringify({ event, data: 'x' })));
    return new Promise((resolve) =>
      socket.on('message', (text: Buffer) => {
        socket.terminate();
        resolve(JSON.parse(text.toString()));
      }),
    );
  }
  const socket = io(app.origin, { path: '/sockets', transports: ['websocket'], forceNew: true, reconnection: false });
  socket.emit(event, 'x');
  return new Promise((resolve) =>
    socket.once('exception', (data: unknown) => {
      socket.disconnect();
      resolve({ event: 'exception', data });
    }),
  );
}

describe.each(PLATFORMS)('messages over %s', (platform) => {
  it('@Authenticated() lets those of signed-in users pass, and tells others why not', async () => {
    const ada = await connect(platform, await start(platform));
    expect(await ada.ask('orders')).toBe('orders');
    const stranger = await connect(platform, app.agent());
    await expect(stranger.ask('orders')).rejects.toThrow('Sign in first');
    expect(await (await connect(platform, app.agent())).ask('news')).toBe('news');
    expect(await exceptionOf(platform, 'orders')).toEqual({
      event: 'exception',
      data: {
        status: 'error',
        message: 'Sign in first',
        reason: 'not-authenticated',
        cause: { pattern: 'orders', data: 'x' },
      },
    });
    // A refusal is no failure of the application.
    expect(app.log.lines.join('\n')).not.toContain('Sign in');
  });

  it('@RecentlyAuthenticated() asks the session as it is now, by the clock of Redis', async () => {
    const agent = await start(platform);
    const ada = await connect(platform, agent);
    await signedInAgo(agent, 0);
    expect(await ada.ask('password')).toBe('password');
    await signedInAgo(agent, 301_000);
    await expect(ada.ask('password')).rejects.toThrow('Sign in again');
  });

  it('leaves the refusal to a filter of the application', async () => {
    await start(platform);
    caught.length = 0;
    const stranger = await connect(platform, app.agent());
    await expect(stranger.ask('caught')).rejects.toThrow('caught by the application');
    expect(caught).toEqual(['not-authenticated']);
  });

  it('are for signed-in users only with the guard of all routes', async () => {
    const providers = [PlainGateway, { provide: APP_GUARD, useExisting: AuthenticatedGuard }];
    const ada = await connect(platform, await signedInTo(platform, providers));
    expect([await ada.ask('plain'), await ada.ask('open')]).toEqual(['plain', 'open']);
    const stranger = await connect(platform, app.agent());
    await expect(stranger.ask('plain')).rejects.toThrow('Sign in first');
    expect(await (await connect(platform, app.agent())).ask('open')).toBe('open');
  });
});

const signedInTo = (platform: Platform, providers: SocketAppOptions['providers'] & object) =>
  start(platform, { providers });
