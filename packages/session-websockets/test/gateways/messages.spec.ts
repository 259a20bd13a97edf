import type { IncomingMessage } from 'node:http';
import {
  type CallHandler,
  type CanActivate,
  type ExecutionContext,
  type INestApplication,
  Injectable,
  type NestInterceptor,
  UseGuards,
  type WebSocketAdapter,
} from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { IoAdapter } from '@nestjs/platform-socket.io';
import { WsAdapter } from '@nestjs/platform-ws';
import { Ack, SubscribeMessage, WebSocketGateway } from '@nestjs/websockets';
import { MapSessionModule, Session, SessionContext, SessionModule } from '@nest-session/core';
import { DetachedSession } from '@nest-session/core/internal';
import { Gate, LeakGuard } from '@nest-session/test-infrastructure';
import { eventually, freePort, type HttpAgent, RedisServer, sessionOf, signIn } from '@nest-session/testing';
import { Redis } from 'ioredis';
import { map, NEVER, range, tap } from 'rxjs';
import { io } from 'socket.io-client';
import { MOST_WAITING } from '../../src/gateways/gateway.client.js';
import { SessionWebSocketModule } from '../../src/index.js';
import {
  closeApps,
  type Platform,
  PLATFORMS,
  reply,
  SocketApp,
  type SocketAppOptions,
  VisitsGateway,
} from '../support/socket.app.js';
import { closeClients, connect } from '../support/socket.client.js';

LeakGuard.install();

let redis: RedisServer;
let app: SocketApp;
let agent: HttpAgent;

beforeAll(async () => {
  redis = await RedisServer.start();
});
afterAll(() => redis.stop());
afterEach(async () => {
  closeClients();
  await closeApps();
});

const currentSession = () => DetachedSession.current!.session;

@Injectable()
class Denies implements CanActivate {
  canActivate(): boolean {
    currentSession().setAttribute('denied', true);
    return false;
  }
}

@Injectable()
class MarksAfterwards implements NestInterceptor {
  intercept(_: ExecutionContext, next: CallHandler) {
    return next.handle().pipe(tap(() => currentSession().setAttribute('marked', true)));
  }
}

/** Where a handler has changed the session, and what it waits for. */
let [started, left] = [new Gate(), new Gate()];

@WebSocketGateway({ path: '/sockets' })
class Messages {
  @SubscribeMessage('denied')
  @UseGuards(Denies)
  denied() {}

  @SubscribeMessage('marked')
  marked() {
    return reply('marked', true);
  }

  @SubscribeMessage('circle')
  circle(@Session() session: Session) {
    const list = session.getRequiredAttribute<unknown[]>('list');
    list.push(list);
    return reply('circle', true);
  }

  @SubscribeMessage('count')
  count(@Session() session: Session) {
    return range(1, 3).pipe(
      tap((count) => session.setAttribute('visits', count)),
      map((count) => reply('count', count)),
    );
  }

  @SubscribeMessage('by hand')
  byHand(@Session() session: Session, @Ack() acknowledge: (answer: unknown) => void) {
    session.setAttribute('visits', 5);
    acknowledge({ said: 5 });
  }

  @SubscribeMessage('unspeakable by hand')
  unspeakableByHand(@Session() session: Session, @Ack() acknowledge: (answer: unknown) => void) {
    session.setAttribute('visits', 6);
    acknowledge({ said: 6n });
  }

  @SubscribeMessage('slow')
  async slow(@Session() session: Session) {
    session.setAttribute('visits', 7);
    void started.pass();
    await left.pass();
    return reply('slow', true);
  }

  @SubscribeMessage('endless')
  endless(@Session() session: Session) {
    session.setAttribute('visits', 7);
    void started.pass();
    return NEVER;
  }

  @SubscribeMessage('circle by hand')
  circleByHand(@Session() session: Session, @Ack() acknowledge: (answer: unknown) => void) {
    this.circle(session);
    acknowledge({ said: true });
  }
}

async function start(options: Partial<SocketAppOptions> & Pick<SocketAppOptions, 'platform'>): Promise<void> {
  app = await SocketApp.start({ url: redis.url, providers: [Messages], ...options });
  agent = await signIn(app.nest, { principalName: 'ada', attributes: { list: [1] } });
}

const stored = async (name: string) => (await sessionOf(app.nest, agent))!.getAttribute(name);

describe.each(PLATFORMS)('a message to %s', (platform) => {
  it('that a guard refuses has its changes saved', async () => {
    await start({ platform });
    const client = await connect(platform, agent);
    await expect(client.ask('denied')).rejects.toThrow('Forbidden resource');
    await eventually(async () => expect(await stored('denied')).toBe(true));
  });

  it('is acknowledged after a save of what a global interceptor changes', async () => {
    const configure = (nest: INestApplication) => void nest.useGlobalInterceptors(new MarksAfterwards());
    await start({ platform, configure });
    const client = await connect(platform, agent);
    expect(await client.ask('marked')).toBe(true);
    expect(await stored('marked')).toBe(true);
  });

  it('whose session cannot be saved is an exception, and is not acknowledged', async () => {
    await start({ platform });
    const client = await connect(platform, agent);
    await expect(client.ask('circle')).rejects.toThrow('Internal server error');
    expect(app.log.lines.join('\n')).toContain('Session attribute "list"');
    expect(await stored('list')).toEqual([1]);
  });

  it('gets each value of an Observable after a save', async () => {
    await start({ platform });
    const client = await connect(platform, agent);
    expect(await client.ask('count')).toBe(1);
    await eventually(async () => expect(await stored('visits')).toBe(3));
  });

  it('has no session where the request is excluded', async () => {
    await start({
      platform,
      providers: [Plain, { provide: 'context', useExisting: SessionContext }],
      session: { exclude: ({ url }) => url?.startsWith('/sockets') === true },
    });
    const client = await connect(platform, agent);
    expect(await client.ask('plain')).toBe('none');
  });
});

@WebSocketGateway({ path: '/sockets' })
class Plain {
  @SubscribeMessage('plain')
  plain(@Session() session: Session | undefined) {
    return reply('plain', session ? 'some' : 'none');
  }
}

it.each(PLATFORMS)('a message to %s loads its session once, however many gateways there are', async (platform) => {
  @WebSocketGateway({ path: '/sockets' })
  class Other {
    @SubscribeMessage('other')
    other() {}
  }
  await start({ platform, providers: [VisitsGateway, Other, Messages] });
  const client = await connect(platform, agent);
  const store = new Redis(redis.url);
  try {
    await client.ask('read');
    await store.config('RESETSTAT');
    for (let message = 0; message < 3; message++) await client.ask('read');
    expect(await store.info('commandstats')).toContain('cmdstat_hgetall:calls=3,');
  } finally {
    store.disconnect();
  }
});

it.each([
  { platform: 'socket.io', reason: 'io server disconnect' },
  { platform: 'ws', reason: '1008 too many messages' },
] as const)('a client of $platform with more messages than may wait is closed', async ({ platform, reason }) => {
  await start({ platform });
  const client = await connect(platform, agent);
  process.kill(redis.pid, 'SIGSTOP');
  try {
    // One load is under way; the next ones wait for it.
    for (let message = 0; message <= MOST_WAITING; message++) client.tell('marked');
    expect(await client.closed).toBe(reason);
  } finally {
    process.kill(redis.pid, 'SIGCONT');
  }
});

it('a message that is acknowledged by hand is saved first', async () => {
  await start({ platform: 'socket.io' });
  const client = await connect('socket.io', agent);
  expect(await client.ask('by hand')).toBe(5);
  expect(await stored('visits')).toBe(5);
  await expect(client.ask('circle by hand')).rejects.toThrow('Internal server error');
});

it('an acknowledgement by hand that fails after the save is logged, and harms nothing else', async () => {
  await start({ platform: 'socket.io' });
  const client = await connect('socket.io', agent);
  const unhandled: unknown[] = [];
  const hear = (reason: unknown) => void unhandled.push(reason);
  process.on('unhandledRejection', hear);
  try {
    void client.ask('unspeakable by hand');
    await eventually(() => expect(app.log.lines.join()).toContain('BigInt'));
    expect(unhandled).toEqual([]);
  } finally {
    process.off('unhandledRejection', hear);
  }
  expect(await stored('visits')).toBe(6);
  expect(await client.ask('by hand')).toBe(5);
});

describe.each(PLATFORMS)('what the handler of a message to %s has changed when its client leaves', (platform) => {
  it.each(['slow', 'endless'])('is saved: %s', async (event) => {
    await start({ platform });
    [started, left] = [new Gate(), new Gate()];
    const client = await connect(platform, agent);
    client.tell(event);
    await started.reached();
    closeClients();
    await eventually(async () => expect(await stored('visits')).toBe(7));
    left.open();
  });
});

it.each(PLATFORMS)('a gateway of %s on a port of its own has sessions, and refuses foreign pages', async (platform) => {
  const port = await freePort();
  @WebSocketGateway(port, { path: '/own' })
  class OnOwnPort extends VisitsGateway {}
  await start({ platform, providers: [OnOwnPort] });
  const options = { origin: `http://127.0.0.1:${port}`, path: '/own' };
  const client = await connect(platform, agent, options);
  expect(await client.ask('read')).toMatchObject({ user: 'ada' });
  const headers = { origin: app.origin };
  await expect(connect(platform, agent, { ...options, headers })).rejects.toThrow('refused');
  await agent.post('/logout');
  await client.closed;
});

/** Adapters of a socket.io and a ws that copy what this module changes of their options. */
const COPYING: Record<Platform, (nest: INestApplication) => WebSocketAdapter> = {
  'socket.io': (nest) =>
    new (class extends IoAdapter {
      override createIOServer(...args: Parameters<IoAdapter['createIOServer']>) {
        const server = super.createIOServer(...args);
        copyAtEachRead(server.engine, 'opts');
        return server;
      }
    })(nest),
  ws: (nest) =>
    new (class extends WsAdapter {
      override create(port: number, options?: never): object {
        const server = super.create(port, options) as object;
        copyAtEachRead(server, 'options');
        return server;
      }
    })(nest),
};

function copyAtEachRead(target: object, name: string): void {
  const value = Reflect.get(target, name) as object;
  Object.defineProperty(target, name, { get: () => ({ ...value }) });
}

it.each(PLATFORMS)('a page of another origin is refused where %s copies its options', async (platform) => {
  const port = await freePort();
  @WebSocketGateway(port, { path: '/own' })
  class OnOwnPort {}
  await start({
    platform,
    providers: [OnOwnPort],
    configure: (nest) => nest.useWebSocketAdapter(COPYING[platform](nest)),
  });
  const options = { origin: `http://127.0.0.1:${port}`, path: '/own' };
  const foreign = connect(platform, agent, { ...options, headers: { origin: 'https://evil.example' } });
  const cause = expect.objectContaining({ reason: 'cross-origin' });
  if (platform === 'socket.io') await expect(foreign).rejects.toMatchObject({ cause });
  else expect(await (await foreign).closed).toBe('1008 Origin not allowed');
  expect(app.log.matching(/of the origin, so pages of other origins are refused after it/)).toHaveLength(1);
  const ownPage = { ...options, headers: { origin: options.origin } };
  expect((await connect(platform, agent, ownPage)).isOpen).toBe(true);
  const unseen = app.log.matching(/does not ask before it accepts a client, so messages in gateways have no session/);
  expect(unseen).toHaveLength(platform === 'ws' ? 1 : 0);
});

it('a namespace of socket.io has sessions, over long polling as well', async () => {
  @WebSocketGateway({ path: '/sockets', namespace: 'chat' })
  class Chat extends VisitsGateway {}
  await start({ platform: 'socket.io', providers: [Chat, Messages] });
  const options = { namespace: '/chat', transports: ['polling'] };
  expect(await (await connect('socket.io', agent, options)).ask('read')).toMatchObject({ user: 'ada' });
  const client = await connect('socket.io', agent, { ...options, transports: ['polling', 'websocket'] });
  await expect(
    connect('socket.io', agent, { ...options, headers: { origin: 'https://evil.example' } }),
  ).rejects.toThrow('refused');
  await agent.post('/logout');
  expect(await client.closed).toBe('io server disconnect');
});

it('a page of a listed origin may connect, also of an app or an extension', async () => {
  const listed = {
    'https://app.example.com': 'https://app.example.com',
    'https://a.example:443': 'https://a.example',
    'https://münchen.example': 'https://xn--mnchen-3ya.example',
    'capacitor://localhost': 'capacitor://localhost',
    'ionic://localhost': 'ionic://localhost',
    'tauri://localhost': 'tauri://localhost',
    'app://-': 'app://-',
    'chrome-extension://id': 'chrome-extension://id',
    'moz-extension://id': 'moz-extension://id',
  };
  await start({ platform: 'ws', sockets: { origins: Object.keys(listed) } });
  for (const origin of Object.values(listed)) {
    expect((await connect('ws', agent, { headers: { origin } })).isOpen).toBe(true);
  }
  for (const origin of ['null', 'other://localhost', 'chrome-extension://other', 'app://', 'http://localhost']) {
    await expect(connect('ws', agent, { headers: { origin } })).rejects.toThrow('refused');
  }
});

it.each(PLATFORMS)(
  'a page may connect over %s when its origin and the check of the application allow it',
  async (platform) => {
    const checks: Record<Platform, object> = {
      'socket.io': {
        allowRequest: ({ url }: IncomingMessage, decide: (problem: string | null, isAllowed: boolean) => void) =>
          decide('Not today', !url!.includes('refused')),
      },
      ws: {
        verifyClient: ({ req }: { req: IncomingMessage }, decide: (isAllowed: boolean, status?: number) => void) =>
          decide(!req.url!.includes('refused'), 402),
      },
    };
    @WebSocketGateway({ path: '/sockets', ...checks[platform] })
    class Checked extends VisitsGateway {}
    await start({ platform, providers: [Checked] });
    for (const origin of [app.origin, 'https://evil.example']) {
      for (const query of ['', 'refused']) {
        const connecting = connect(platform, agent, { headers: { origin }, query });
        if (origin === app.origin && query === '') expect((await connecting).isOpen).toBe(true);
        else await expect(connecting).rejects.toThrow('refused');
        // The application says how it refuses.
        if (platform === 'ws' && origin === app.origin && query !== '') await expect(connecting).rejects.toThrow('402');
      }
    }
  },
);

it('an origin that is none is refused at start', async () => {
  await expect(
    SocketApp.start({
      platform: 'ws',
      url: redis.url,
      sockets: { origins: ['https://app.example.com/', 'app.example', 'null', 'wss://app.example'] },
    }),
  ).rejects.toThrow(
    /"https:\/\/app\.example\.com\/", which is not an origin.*"app\.example", which is not an origin.*"null", which.*"wss:/,
  );
});

it('a client of socket.io that recovers its connection has its session', async () => {
  @WebSocketGateway({ path: '/sockets', connectionStateRecovery: {} })
  class Recovering {
    handleConnection(client: { emit(event: string): void }) {
      client.emit('hello');
    }

    @SubscribeMessage('user')
    user(@Session() session: Session) {
      return session.principalName;
    }
  }
  await start({ platform: 'socket.io', providers: [Recovering] });
  const extraHeaders = agent.headersFor('/');
  const client = io(app.origin, { path: '/sockets', transports: ['websocket'], extraHeaders, reconnectionDelay: 1 });
  try {
    await new Promise((resolve) => client.once('hello', resolve));
    client.io.engine.close();
    await eventually(() => expect(client.recovered).toBe(true));
    expect(await client.emitWithAck('user')).toBe('ada');
  } finally {
    client.disconnect();
  }
});

it('the module says that SessionModule is missing', async () => {
  class AppModule {}
  const module = { module: AppModule, imports: [SessionWebSocketModule.forRoot()] };
  await expect(NestFactory.create(module, { logger: false, abortOnError: false })).rejects.toThrow(
    'SessionWebSocketModule: SessionModule is missing: add SessionModule.forRoot() to the imports of the root module.',
  );
});

it('the module says that the factory of its options returns nothing', async () => {
  class AppModule {}
  const options = SessionWebSocketModule.forRootAsync({ useFactory: () => undefined as never });
  const module = { module: AppModule, imports: [SessionModule.forRoot(), MapSessionModule.forRoot(), options] };
  await expect(NestFactory.create(module, { logger: false, abortOnError: false })).rejects.toThrow(
    'SessionWebSocketModule: The factory of forRootAsync() has returned undefined: return an object with the options.',
  );
});
