import { randomBytes } from 'node:crypto';
import type { EventEmitter } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { createConnection } from 'node:net';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { type INestApplication, Inject } from '@nestjs/common';
import { WsAdapter } from '@nestjs/platform-ws';
import { SubscribeMessage, WebSocketGateway, WebSocketServer } from '@nestjs/websockets';
import { Session, SessionContext } from '@nest-session/core';
import { DetachedSession } from '@nest-session/core/internal';
import { Gate, LeakGuard } from '@nest-session/test-infrastructure';
import { eventually, RedisServer, signIn } from '@nest-session/testing';
import { io, Manager } from 'socket.io-client';
import { OpenConnections } from '@nest-session/core/internal';
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
/** A namespace of socket.io. */
interface Namespace {
  use(middleware: (socket: { readonly conn: EventEmitter }, next: (error: Error) => void) => void): void;
}

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

it('a client of socket.io with many namespaces makes Node.js warn of no leak, and leaves no trace of them', async () => {
  const connections = new Set<EventEmitter>();
  const gateways = Array.from({ length: 12 }, (_, i) => {
    @WebSocketGateway({ path: '/sockets', namespace: `namespace-${i}` })
    class Gateway {
      handleConnection({ conn }: { conn: EventEmitter }): void {
        connections.add(conn);
      }
    }
    return Gateway;
  });
  const app = await SocketApp.start({ platform: 'socket.io', url: redis.url, providers: gateways });
  const manager = new Manager(app.origin, { path: '/sockets', transports: ['websocket'], reconnection: false });
  const sockets = gateways.map((_, i) => manager.socket(`/namespace-${i}`).connect());
  try {
    await eventually(() => expect(sockets.every(({ connected }) => connected)).toBe(true));
    expect(connections.size).toBe(1);
    const [conn] = [...connections] as [EventEmitter];
    const counts = () => [conn.listenerCount('close'), conn.getMaxListeners()] as const;
    const [listeners, most] = counts();
    expect(listeners).toBeLessThanOrEqual(most);
    for (const socket of sockets.slice(1)) socket.disconnect();
    await eventually(() => expect(counts()).toEqual([listeners - 11, most - 11]));
    expect(sockets[0]!.connected).toBe(true);
  } finally {
    sockets[0]!.disconnect();
  }
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

it('a client of socket.io that a namespace refuses again and again leaves nothing on its connection', async () => {
  const closeListeners: number[] = [];
  @WebSocketGateway({ path: '/sockets' })
  class Main {}
  @WebSocketGateway({ path: '/sockets', namespace: 'admin' })
  class Admin {
    afterInit(namespace: Namespace): void {
      namespace.use(({ conn }, next) => {
        closeListeners.push(conn.listenerCount('close'));
        next(new Error('Only for administrators'));
      });
    }
  }
  const app = await SocketApp.start({ platform: 'socket.io', url: redis.url, providers: [Main, Admin] });
  const main = io(app.origin, { path: '/sockets', transports: ['websocket'], forceNew: true, reconnection: false });
  try {
    const admin = main.io.socket('/admin');
    for (let attempt = 0; attempt < 3; attempt++) {
      const refused = new Promise<Error>((resolve) => admin.once('connect_error', resolve));
      admin.connect();
      expect((await refused).message).toBe('Only for administrators');
    }
    expect(closeListeners).toHaveLength(3);
    expect(new Set(closeListeners).size).toBe(1);
    expect(main.connected).toBe(true);
  } finally {
    main.disconnect();
  }
});

it('a client of socket.io that asks for a namespace again and again in an outage leaves nothing on its connection', async () => {
  const connections: EventEmitter[] = [];
  @WebSocketGateway({ path: '/sockets' })
  class Main {
    handleConnection({ conn }: { conn: EventEmitter }): void {
      connections.push(conn);
    }
  }
  @WebSocketGateway({ path: '/sockets', namespace: 'admin' })
  class Admin {}
  const app = await SocketApp.start({
    platform: 'socket.io',
    url: redis.url,
    redis: { commandTimeout: '100ms' },
    providers: [Main, Admin],
  });
  const extraHeaders = (await signIn(app.nest, { principalName: 'ada' })).headersFor('/') as { cookie: string };
  const main = io(app.origin, { path: '/sockets', extraHeaders, transports: ['websocket'], reconnection: false });
  try {
    await eventually(() => expect(connections).toHaveLength(1));
    const before = connections[0]!.listenerCount('close');
    redis.freeze();
    const admin = main.io.socket('/admin');
    for (let attempt = 0; attempt < 3; attempt++) {
      const refused = new Promise<Error>((resolve) => admin.once('connect_error', resolve));
      admin.connect();
      expect((await refused).message).toBe('Session store unavailable');
    }
    expect(connections[0]!.listenerCount('close')).toBe(before);
  } finally {
    redis.thaw();
    main.disconnect();
  }
});

it('a client of ws that leaves while the application still checks it leaves nothing behind', async () => {
  const checking = new Gate();
  const closed: Promise<unknown>[] = [];
  @WebSocketGateway({
    path: '/sockets',
    verifyClient: ({ req }: { req: IncomingMessage }, decide: (isAllowed: boolean) => void) => {
      closed.push(new Promise((resolve) => req.socket.once('close', resolve)));
      void checking.pass().then(() => decide(true));
    },
  })
  class Checking {}
  const app = await SocketApp.start({ platform: 'ws', url: redis.url, providers: [Checking] });
  const { cookie } = (await signIn(app.nest, { principalName: 'ada' })).headersFor('/') as { cookie: string };
  const { hostname, port, host } = new URL(app.origin);
  const socket = createConnection(Number(port), hostname);
  const headers = { Host: host, Cookie: cookie, Connection: 'Upgrade', Upgrade: 'websocket' };
  const all = { ...headers, 'Sec-WebSocket-Version': '13', 'Sec-WebSocket-Key': randomBytes(16).toString('base64') };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}`);
  socket.write(['GET /sockets HTTP/1.1', ...lines, '', ''].join('\r\n'));
  await checking.reached();
  const connections = app.nest.get(OpenConnections);
  expect(connections.ids).toHaveLength(1);
  socket.resetAndDestroy();
  await Promise.all(closed);
  checking.open();
  await checking.pass();
  expect(connections.ids).toEqual([]);
});
