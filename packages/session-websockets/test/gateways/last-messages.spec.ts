import { once } from 'node:events';
import { SubscribeMessage, WebSocketGateway } from '@nestjs/websockets';
import { Session } from '@nest-session/core';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually, type HttpAgent, RedisServer, sessionOf, signIn } from '@nest-session/testing';
import { interval, Observable } from 'rxjs';
import { io } from 'socket.io-client';
import { WebSocket } from 'ws';
import { closeApps, type Platform, PLATFORMS, SocketApp } from '../support/socket.app.js';

LeakGuard.install();

@WebSocketGateway({ path: '/sockets' })
class LeavingGateway {
  readonly heard: string[] = [];
  watchers = 0;

  handleDisconnect() {
    this.heard.push('gone');
  }

  @SubscribeMessage('leave')
  leave(@Session() session: Session) {
    this.heard.push(`leave of ${session.principalName}`);
    session.setAttribute('left', true);
  }

  @SubscribeMessage('watch')
  watch() {
    this.heard.push('watch');
    return new Observable((subscriber) => {
      this.watchers++;
      const subscription = interval(10).subscribe(subscriber);
      subscription.add(() => this.watchers--);
      return subscription;
    });
  }
}

/** Connects, and resolves to what sends a message and then leaves at once. */
async function connect(platform: Platform, agent: HttpAgent): Promise<(event: string) => Promise<void>> {
  const headers = agent.headersFor('/');
  if (platform === 'ws') {
    const socket = new WebSocket(`${agent.origin.replace('http', 'ws')}/sockets`, { headers });
    await once(socket, 'open');
    return async (event) => {
      await new Promise<void>((sent) => socket.send(JSON.stringify({ event }), () => sent()));
      socket.close();
    };
  }
  const options = { path: '/sockets', transports: ['websocket'], extraHeaders: headers, forceNew: true };
  const socket = io(agent.origin, { ...options, reconnection: false });
  await new Promise<void>((resolve) => socket.once('connect', resolve));
  return async (event) => {
    socket.emit(event);
    await new Promise<void>((resolve) => socket.io.engine.once('drain', resolve));
    socket.io.engine.close();
  };
}

let redis: RedisServer;
beforeAll(async () => {
  redis = await RedisServer.start();
});
afterAll(() => redis.stop());
afterEach(async () => {
  redis.thaw();
  await closeApps();
});

describe.each(PLATFORMS)('the last message of a client of %s that leaves while its session is loaded', (platform) => {
  let app: SocketApp;
  let ada: HttpAgent;
  let gateway: LeavingGateway;
  let leaveWith: (event: string) => Promise<void>;

  beforeEach(async () => {
    app = await SocketApp.start({ platform, url: redis.url, providers: [LeavingGateway] });
    ada = await signIn(app.nest, { principalName: 'ada' });
    gateway = app.nest.get(LeavingGateway);
    leaveWith = await connect(platform, ada);
    redis.freeze();
  });

  it('is handled all the same, once, and what it changes is saved', async () => {
    await leaveWith('leave');
    await eventually(() => expect(gateway.heard).toEqual(['gone']));
    redis.thaw();
    await eventually(async () => expect((await sessionOf(app.nest, ada))?.getAttribute('left')).toBe(true));
    expect(gateway.heard).toEqual(['gone', 'leave of ada']);
  });

  it('leaves no stream behind', async () => {
    await leaveWith('watch');
    await eventually(() => expect(gateway.heard).toEqual(['gone']));
    redis.thaw();
    await eventually(() => expect([gateway.heard, gateway.watchers]).toEqual([['gone', 'watch'], 0]));
  });
});
