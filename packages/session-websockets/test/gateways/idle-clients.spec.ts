import type { EventEmitter } from 'node:events';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { type INestApplication, Inject } from '@nestjs/common';
import { WsAdapter } from '@nestjs/platform-ws';
import { SubscribeMessage, WebSocketGateway, WebSocketServer } from '@nestjs/websockets';
import { Session, SessionContext } from '@nest-session/core';
import { DetachedSession } from '@nest-session/core/internal';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually, RedisServer, signIn } from '@nest-session/testing';
import { io } from 'socket.io-client';
import { closeApps, PLATFORMS, reply, SocketApp } from '../support/socket.app.js';
import { closeClients, connect } from '../support/socket.client.js';

LeakGuard.install();

let redis: RedisServer;

beforeAll(async () => {
  redis = await RedisServer.start();
});
afterAll(() => redis.stop());
afterEach(async () => {
  closeClients();
  await closeApps();
});

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

@WebSocketGateway({ path: '/sockets' })
class Remembering {
  readonly sessions: WeakRef<object>[] = [];

  handleConnection(): void {
    this.sessions.push(new WeakRef(DetachedSession.current!));
  }

  @SubscribeMessage('read')
  read(@Session() session: Session) {
    this.handleConnection();
    return reply('read', session.getAttribute('visits'));
  }

  get kept(): number {
    collectGarbage();
    return this.sessions.filter((session) => session.deref()).length;
  }
}

it.each(PLATFORMS)('clients of %s that say nothing keep no session in memory', async (platform) => {
  const app = await SocketApp.start({ platform, url: redis.url, providers: [Remembering] });
  const agent = await signIn(app.nest, { principalName: 'ada', attributes: { visits: 1 } });
  const clients = await Promise.all(Array.from({ length: 5 }, () => connect(platform, agent)));
  const gateway = app.nest.get(Remembering);
  await eventually(() => expect(gateway.sessions).toHaveLength(5));
  await eventually(() => expect(gateway.kept).toBe(0));
  for (const client of clients) expect(await client.ask('read')).toBe(1);
  expect(gateway.sessions).toHaveLength(10);
  await eventually(() => expect(gateway.kept).toBe(0));
});

it('each gateway of a client has its session, even if an adapter reports the client to one after the other', async () => {
  const connected: string[] = [];
  class Listening {
    constructor(@Inject(SessionContext) private readonly context: SessionContext) {}

    handleConnection(): void {
      connected.push(`${this.constructor.name}: ${this.context.session.principalName}`);
    }
  }
  @WebSocketGateway({ path: '/sockets' })
  class First extends Listening {}
  @WebSocketGateway({ path: '/sockets' })
  class Second extends Listening {}
  class LateAdapter extends WsAdapter {
    override bindClientConnect(server: unknown, callback: (...args: unknown[]) => void): void {
      super.bindClientConnect(server as never, (...args: unknown[]) => void setImmediate(callback, ...args));
    }
  }
  const configure = (nest: INestApplication) => nest.useWebSocketAdapter(new LateAdapter(nest));
  const app = await SocketApp.start({ platform: 'ws', url: redis.url, providers: [First, Second], configure });
  await connect('ws', await signIn(app.nest, { principalName: 'ada' }));
  await eventually(() => expect([...connected].sort()).toEqual(['First: ada', 'Second: ada']));
});

it('a client of socket.io that enters and leaves a namespace again and again leaves nothing on its connection', async () => {
  const closeListeners: number[] = [];
  @WebSocketGateway({ path: '/sockets' })
  class Main {
    @WebSocketServer() readonly server!: { readonly sockets: { readonly sockets: ReadonlyMap<string, unknown> } };
  }
  @WebSocketGateway({ path: '/sockets', namespace: 'admin' })
  class Admin {
    @WebSocketServer() readonly server!: { readonly sockets: ReadonlyMap<string, unknown> };

    handleConnection({ conn }: { conn: EventEmitter }): void {
      closeListeners.push(conn.listenerCount('close'));
    }
  }
  const app = await SocketApp.start({ platform: 'socket.io', url: redis.url, providers: [Main, Admin] });
  const main = io(app.origin, { path: '/sockets', transports: ['websocket'], forceNew: true, reconnection: false });
  try {
    const admin = main.io.socket('/admin');
    for (let visits = 1; visits <= 3; visits++) {
      admin.connect();
      // Before it knows that it is connected, it would leave without a word.
      await eventually(() => expect([closeListeners.length, admin.connected]).toEqual([visits, true]));
      admin.disconnect();
      await eventually(() => expect(app.nest.get(Admin).server.sockets.size).toBe(0));
    }
    expect(app.nest.get(Main).server.sockets.sockets.size).toBe(1);
    expect(new Set(closeListeners).size).toBe(1);
  } finally {
    main.disconnect();
  }
});
