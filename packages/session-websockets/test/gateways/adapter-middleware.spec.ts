import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { IncomingMessage, Server } from 'node:http';
import { connect as open } from 'node:net';
import type { Duplex } from 'node:stream';
import { Controller, type INestApplication, Param, Post, Req } from '@nestjs/common';
import { IoAdapter } from '@nestjs/platform-socket.io';
import { SubscribeMessage, WebSocketGateway } from '@nestjs/websockets';
import { SessionContext } from '@nest-session/core';
import { ExpressSessionModule } from '@nest-session/express-session';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { type HttpAgent, RedisServer } from '@nest-session/testing';
import { closeApps, reply, SocketApp, type SocketAppOptions, VisitsGateway } from '../support/socket.app.js';
import { closeClients, connect, type SocketClientOptions } from '../support/socket.client.js';

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

type Next = (error?: Error) => void;
type Request = IncomingMessage & { session?: { user?: string; save(done: Next): void }; user?: string };

@Controller()
class LoginController {
  @Post('enter/:name')
  enter(@Req() { session }: { session: { user?: string } }, @Param('name') name: string) {
    session.user = name;
  }
}

@WebSocketGateway({ path: '/sockets' })
class Main {
  @SubscribeMessage('user')
  user({ request }: { request: Request }) {
    return reply('user', request.user);
  }
}

@WebSocketGateway({ path: '/sockets', namespace: '/chat' })
class Chat extends Main {}

@WebSocketGateway({ path: '/sockets', namespace: /^\/room-\d$/ })
class Rooms extends Main {}

/** Demands a session, and puts its user on the request, as Passport does. */
function authenticate(request: Request, _response: unknown, next: Next): void {
  const { session } = request;
  if (!session) return next(new Error('Did you forget to use a session?'));
  if (session.user !== undefined) request.user = session.user;
  return next(session.user === undefined ? new Error('Not signed in') : undefined);
}

const wrap = (middleware: typeof authenticate) => (socket: { request: Request }, next: Next) =>
  middleware(socket.request, {}, next);

interface IoServer {
  use(middleware: (socket: { request: Request }, next: Next) => void): void;
  of(namespace: string): IoServer;
  readonly engine: { use(middleware: typeof authenticate): void };
}

/** Where an adapter can add middleware. */
const PLACES: Readonly<Record<string, (server: IoServer) => void>> = {
  'server.use()': (server) => server.use(wrap(authenticate)),
  'server.of().use()': (server) => {
    for (const namespace of ['/', '/chat']) server.of(namespace).use(wrap(authenticate));
  },
  'engine.use()': ({ engine }) => engine.use(authenticate),
};

/** Those that such middleware is for, of `/`, `/chat` and a pattern. */
const NAMESPACES: Readonly<Record<string, readonly string[]>> = {
  'server.use()': ['/'],
  'server.of().use()': ['/', '/chat'],
  'engine.use()': ['/', '/chat', '/room-1'],
};

let app: SocketApp;
let ann: HttpAgent;
let visitor: HttpAgent;

async function start(
  add: (server: IoServer, nest: INestApplication) => void,
  options: Partial<SocketAppOptions> = {},
  io: object = {},
): Promise<void> {
  app = await SocketApp.start({
    platform: 'socket.io',
    url: redis.url,
    imports: [ExpressSessionModule.forRoot()],
    providers: [Main, Chat, Rooms],
    controllers: [LoginController],
    configure: (nest) => {
      class Adapter extends IoAdapter {
        override createIOServer(port: number, given?: object) {
          const server = super.createIOServer(port, { ...given, ...io } as never) as unknown as IoServer;
          add(server, nest);
          return server as never;
        }
      }
      nest.useWebSocketAdapter(new Adapter(nest));
    },
    ...options,
  });
  [ann, visitor] = [app.agent(), app.agent()];
  await ann.post('/enter/ann');
}

const TRANSPORTS = [['websocket'], ['polling'], ['polling', 'websocket']];

describe.each(Object.keys(PLACES))('middleware that an adapter adds by %s', (place) => {
  it.each(TRANSPORTS.map((each) => [each]))('sees the session: %j', async (transports) => {
    await start(PLACES[place]!);
    for (const namespace of NAMESPACES[place]!) {
      const options: SocketClientOptions = { transports, namespace };
      expect(await (await connect('socket.io', ann, options)).ask('user')).toBe('ann');
      await expect(connect('socket.io', visitor, options)).rejects.toThrow(/^refused/);
    }
  });
});

describe('middleware that an adapter adds', () => {
  it.each(['server.use()', 'engine.use()'])('does not run for a page of another origin: %s', async (place) => {
    const seen: unknown[] = [];
    await start(
      (server) => {
        const see = (request: Request, _: unknown, next: Next) => {
          seen.push(request.url);
          next();
        };
        if (place === 'engine.use()') server.engine.use(see);
        else server.use(wrap(see));
      },
      {},
      { cors: { origin: true, credentials: true } },
    );
    const headers = { origin: 'https://evil.example' };
    for (const transports of TRANSPORTS) {
      await expect(connect('socket.io', ann, { transports, headers })).rejects.toThrow('refused');
    }
    expect(seen).toEqual([]);
    expect((await connect('socket.io', ann)).isOpen).toBe(true);
    expect(seen).not.toEqual([]);
  });

  it('has the session of SessionContext, also without the API of express-session', async () => {
    const seen: unknown[] = [];
    let context!: SessionContext;
    const see = (_: unknown, next: Next) => {
      seen.push(context.session.principalName);
      next();
    };
    const adds = (server: IoServer) => {
      server.use(see);
      server.engine.use((request, _, next) => see(request, next));
    };
    await start(adds, { imports: [], providers: [VisitsGateway], controllers: [] });
    context = app.nest.get(SessionContext);
    await ann.post('/login/ann');
    await connect('socket.io', ann, { transports: ['polling'] });
    expect(seen.length).toBeGreaterThan(1);
    expect(new Set(seen)).toEqual(new Set(['ann']));
  });

  it('refuses clients while the store is down', async () => {
    for (const place of ['server.use()', 'engine.use()']) {
      await start(PLACES[place]!, { redis: { commandTimeout: '100ms' } });
      redis.freeze();
      try {
        await expect(connect('socket.io', ann, { transports: ['polling'] })).rejects.toThrow('refused');
      } finally {
        redis.thaw();
      }
    }
  });

  it('ends no process when a client resets its connection before the middleware runs', async () => {
    await start(PLACES['engine.use()']!);
    const server = app.nest.getHttpServer() as Server;
    const arrived = new Promise<Duplex>((resolve) => server.prependListener('upgrade', (_, each) => resolve(each)));
    const client = open(Number(new URL(app.origin).port), '127.0.0.1');
    const { cookie } = ann.headersFor('/') as { cookie: string };
    redis.freeze();
    try {
      client.write(
        `GET /sockets/?EIO=4&transport=websocket HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n` +
          `Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nCookie: ${cookie}\r\n\r\n`,
      );
      const socket = await arrived;
      const closed = new Promise((resolve) => socket.on('close', resolve));
      client.resetAndDestroy();
      // An error of the socket to which nobody listens would end the process, and fails the test.
      await closed;
    } finally {
      redis.thaw();
    }
  });

  it('costs a load where the application has any for the engine, and none for that of socket.io itself', async () => {
    let loads = 0;
    const count = () => loads++;
    subscribe('tracing:nest-session:load:start', count);
    try {
      for (const [place, least, most] of [
        ['none', 1, 1],
        ['engine.use()', 2, 9],
      ] as const) {
        await start(PLACES[place] ?? (() => undefined), { providers: [Main] }, { cors: { origin: true } });
        loads = 0;
        await connect('socket.io', ann, { transports: ['polling'] });
        expect(loads).toBeGreaterThanOrEqual(least);
        expect(loads).toBeLessThanOrEqual(most);
      }
    } finally {
      unsubscribe('tracing:nest-session:load:start', count);
    }
  });
});

it('the check of an application for ws, verifyClient, sees the session', async () => {
  @WebSocketGateway({
    path: '/sockets',
    verifyClient: ({ req }: { req: Request }, decide: (isAllowed: boolean, status?: number) => void) =>
      decide(req.session?.user === 'ann', 401),
  })
  class Checked {}
  app = await SocketApp.start({
    platform: 'ws',
    url: redis.url,
    imports: [ExpressSessionModule.forRoot()],
    providers: [Checked],
    controllers: [LoginController],
  });
  [ann, visitor] = [app.agent(), app.agent()];
  await ann.post('/enter/ann');
  expect((await connect('ws', ann)).isOpen).toBe(true);
  await expect(connect('ws', visitor)).rejects.toThrow('401');
});
