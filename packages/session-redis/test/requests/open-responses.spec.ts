import { jest } from '@jest/globals';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import {
  type CanActivate,
  Controller,
  type DynamicModule,
  type ExecutionContext,
  Get,
  Inject,
  type INestApplication,
  Param,
  Post,
  Res,
  Sse,
  StreamableFile,
  UseGuards,
} from '@nestjs/common';
import { APP_GUARD, NestFactory } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import {
  Authenticated,
  AuthenticatedGuard,
  Public,
  Session,
  SessionModule,
  type SessionModuleOptions,
  Sessions,
} from '@nest-session/core';
import { OpenConnections, RequestSessions } from '@nest-session/core/internal';
import { Gate, KeptEntries, LeakGuard, SteppableRedisServer } from '@nest-session/test-infrastructure';
import { eventually, HttpAgent, sessionOf, TestClock, TestSessionModule } from '@nest-session/testing';
import { interval, map, NEVER } from 'rxjs';
import { Redis } from 'ioredis';
import { RedisSessionModule } from '../../src/index.js';
import { commandStats } from '../support/command.stats.js';

LeakGuard.install();

const MINUTE = 60_000;

interface Reply {
  readonly raw?: ServerResponse;
  hijack?(): void;
}

@Controller()
class NewsController {
  static gate = new Gate();

  constructor(@Inject(Sessions) private readonly sessions: Sessions) {}

  @Post('login/:name')
  @Public()
  login(@Session() session: Session, @Param('name') name: string) {
    session.signIn(name);
    return { id: session.id };
  }

  @Post('rotate')
  @Public()
  rotate(@Session() session: Session) {
    session.changeSessionId();
  }

  @Post('others')
  @Public()
  async others(@Session() session: Session) {
    return { ended: await this.sessions.endAll(session.principalName!, { except: session }) };
  }

  @Post('logout')
  @Public()
  logout(@Session() session: Session) {
    session.signOut();
  }

  @Get('me')
  @Authenticated()
  me(@Session() { principalName }: Session) {
    return { principalName };
  }

  @Sse('events')
  @Authenticated()
  events() {
    return ticks();
  }

  @Get('raw')
  @Authenticated()
  raw(@Res() reply: Reply) {
    reply.hijack?.();
    endless().pipe(reply.raw ?? (reply as ServerResponse));
  }

  @Get('file')
  @Authenticated()
  file() {
    return new StreamableFile(endless());
  }

  @Sse('open')
  @Public()
  open() {
    return ticks();
  }

  /** Answers when its Observable is complete. */
  @Get('waiting')
  @Authenticated()
  waiting() {
    void NewsController.gate.pass();
    return NEVER;
  }

  @Get('farewell')
  @Authenticated()
  async farewell(@Session() session: Session, @Res() reply: Reply) {
    reply.hijack?.();
    const response = reply.raw ?? (reply as ServerResponse);
    response.write('bye');
    session.signOut();
    await session.save();
    await NewsController.gate.pass();
    response.end(' bye');
  }
}

/** The same, where a guard of all routes asks for the login. */
@Controller('all')
class GuardedController {
  @Sse('events')
  events() {
    return ticks();
  }
}

/** As an application writes it. */
class OwnGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    return context.switchToHttp().getRequest<{ session: Session }>().session.principalName !== undefined;
  }
}

/** Lets in whom it signs in itself. */
class TokenGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    context.switchToHttp().getRequest<{ session: Session }>().session.signIn('eve');
    return true;
  }
}

/** Middleware of the application that gives the session another id, where a request asks for it. */
function rotateEach(request: { session: Session; headers: Record<string, unknown> }, _: unknown, next: () => void) {
  if (request.headers['x-rotate']) request.session.changeSessionId();
  next();
}

/** Decides for itself, and asks the library about nobody. */
class LenientGuard extends AuthenticatedGuard {
  override canActivate(): boolean {
    return true;
  }
}

abstract class Streams {
  @Sse('events')
  events() {
    return ticks();
  }
}

@Controller('public')
@Public()
class PublicController extends Streams {}

/** Guarded by the application, and not by AuthenticatedGuard. It shares its method with a controller that is not. */
@Controller('own')
@Public()
@UseGuards(OwnGuard)
class OwnGuardedController extends Streams {}

@Controller('token')
@Public()
@UseGuards(TokenGuard)
class TokenController extends Streams {}

@Controller('lenient')
@Public()
@UseGuards(LenientGuard)
class LenientController extends Streams {}

const ticks = () => interval(10).pipe(map((data) => ({ data })));

function endless(): Readable {
  return Readable.from(
    (async function* () {
      for (;;) {
        yield 'x';
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
    })(),
  );
}

const STREAMS = ['/events', '/raw', '/file', '/all/events', '/own/events', '/lenient/events'];

/** A response that has begun, and how it ends. */
class Stream {
  readonly ended: Promise<'cut' | 'ended'>;
  chunks = 0;

  private constructor(private readonly response: IncomingMessage) {
    response.on('data', () => this.chunks++);
    this.ended = new Promise((resolve) => {
      response.once('close', () => resolve(response.complete ? 'ended' : 'cut'));
    });
  }

  static async open(agent: HttpAgent, path: string): Promise<Stream> {
    const response = await agent.open('GET', path);
    expect(response.statusCode).toBe(200);
    const stream = new Stream(response);
    await stream.goesOn();
    opened.push(response);
    return stream;
  }

  close(): void {
    this.response.destroy();
  }

  async goesOn(): Promise<void> {
    const { chunks } = this;
    await eventually(() => expect(this.chunks).toBeGreaterThan(chunks + 1));
  }
}

let opened: IncomingMessage[] = [];
let apps: INestApplication[] = [];
let redis: SteppableRedisServer;
beforeEach(async () => {
  NewsController.gate = new Gate();
  redis = await SteppableRedisServer.start();
});
afterEach(async () => {
  NewsController.gate.open();
  for (const each of opened) each.destroy();
  await Promise.all(apps.map((app) => app.close()));
  for (const app of apps) await eventually(() => expect(app.get(OpenConnections).ids).toEqual([]));
  [opened, apps] = [[], []];
  await redis.stop();
});

const STORES = {
  memory: () => TestSessionModule.forRoot(),
  redis: () => RedisSessionModule.forRoot({ url: redis.url, commandTimeout: '1m', expirations: 'sorted-set' }),
  'redis, in partitions': () =>
    RedisSessionModule.forRoot({ url: redis.url, commandTimeout: '1m', partitions: 4, expirations: 'sorted-set' }),
};

const OF_GUARDS = [PublicController, OwnGuardedController, TokenController, LenientController];

const ADAPTERS = { express: () => new ExpressAdapter(), fastify: () => new FastifyAdapter() };

interface Kind {
  readonly store: keyof typeof STORES;
  readonly adapter: keyof typeof ADAPTERS;
}

async function start({ store, adapter }: Kind, session?: SessionModuleOptions): Promise<INestApplication> {
  class AppModule {}
  const module: DynamicModule = {
    module: AppModule,
    imports: [SessionModule.forRoot(session), STORES[store]()],
    controllers: [NewsController, GuardedController, ...OF_GUARDS],
    providers: [{ provide: APP_GUARD, useExisting: AuthenticatedGuard }],
  };
  const app = await NestFactory.create(module, ADAPTERS[adapter](), { logger: false, abortOnError: false });
  app.use(rotateEach);
  await app.listen(0, '127.0.0.1');
  apps.push(app);
  return app;
}

const KINDS: readonly Kind[] = [
  { store: 'memory', adapter: 'express' },
  { store: 'memory', adapter: 'fastify' },
  { store: 'redis', adapter: 'express' },
  { store: 'redis', adapter: 'fastify' },
  { store: 'redis, in partitions', adapter: 'express' },
];

describe.each(KINDS)('a response of $adapter that needed a login, with the store $store,', (kind) => {
  let app: INestApplication;
  let ann: HttpAgent;
  /** The same user and session on another instance, where there may be one. */
  let elsewhere: { readonly app: INestApplication; readonly ann: HttpAgent };

  beforeEach(async () => {
    app = await start(kind);
    ann = await HttpAgent.for(app);
    await ann.post('/login/ann');
    const other = kind.store === 'memory' ? app : await start(kind);
    const agent = await HttpAgent.for(other);
    agent.setCookie(`SESSION=${ann.cookie('SESSION')}; Path=/`);
    elsewhere = { app: other, ann: agent };
  });

  async function idOf(): Promise<string> {
    return (await sessionOf(app, elsewhere.ann))!.id;
  }

  const ENDS: readonly [string, () => unknown][] = [
    ['a sign-out', () => elsewhere.ann.post('/logout')],
    ['end()', async () => elsewhere.app.get(Sessions).end(await idOf())],
    ['endAll()', () => elsewhere.app.get(Sessions).endAll('ann')],
    ['endEverySession()', () => elsewhere.app.get(Sessions).endEverySession()],
    ['its expiry', () => (kind.store === 'memory' ? app.get(TestClock).advance('31m') : redis.stepClock(31 * MINUTE))],
  ];

  it.each(ENDS)('ends with %s, also one that has just begun, and what is public goes on', async (_name, end) => {
    const streams = await Promise.all(STREAMS.map((path) => Stream.open(ann, path)));
    const open = await Stream.open(ann, '/open');
    const inherited = await Stream.open(ann, '/public/events');
    await end();
    expect(await Promise.all(streams.map(({ ended }) => ended))).toEqual(STREAMS.map(() => 'cut'));
    await open.goesOn();
    await inherited.goesOn();
    // By now, this instance hears of ends.
    const again = await HttpAgent.for(app);
    await again.post('/login/bob');
    const later = await Stream.open(again, '/events');
    await app.get(Sessions).endAll('bob');
    expect(await later.ended).toBe('cut');
    await open.goesOn();
  });

  it('goes on after rotations by the same user, and ends with the session', async () => {
    const streams = await Promise.all(STREAMS.map((path) => Stream.open(ann, path)));
    const { ids } = app.get(OpenConnections);
    await elsewhere.ann.post('/rotate');
    // Nobody told this instance of rotations when it came.
    await eventually(async () => expect(app.get(OpenConnections).ids).toEqual([await idOf()]));
    expect(ids).not.toContain(await idOf());
    for (const rotation of ['/rotate', '/login/ann']) await elsewhere.ann.post(rotation);
    await eventually(async () => expect(app.get(OpenConnections).ids).toEqual([await idOf()]));
    await Promise.all(streams.map((stream) => stream.goesOn()));
    await elsewhere.ann.post('/logout');
    expect(await Promise.all(streams.map(({ ended }) => ended))).toEqual(STREAMS.map(() => 'cut'));
  });

  it('ends when somebody else signs in', async () => {
    const stream = await Stream.open(ann, '/events');
    await confirmed();
    await elsewhere.ann.post('/login/bob');
    expect(await stream.ended).toBe('cut');
  });

  it('ends when its user ends all other sessions, because somebody may have copied the cookie', async () => {
    for (const isConfirmed of [false, true]) {
      const streams = await Promise.all(STREAMS.map((path) => Stream.open(ann, path)));
      if (isConfirmed) await confirmed();
      expect((await elsewhere.ann.post('/others')).json()).toEqual({ ended: 0 });
      expect(await Promise.all(streams.map(({ ended }) => ended))).toEqual(STREAMS.map(() => 'cut'));
      expect((await ann.get('/me')).status).toBe(401);
      ann.setCookie(`SESSION=${elsewhere.ann.cookie('SESSION')}; Path=/`);
      expect((await ann.get('/me')).status).toBe(200);
    }
  });

  it('ends with the login that its guard has made, and not with the one before', async () => {
    const stranger = await HttpAgent.for(app);
    for (const agent of [stranger, ann]) {
      const stream = await Stream.open(agent, '/token/events');
      await confirmed();
      await app.get(Sessions).endAll('ann');
      await stream.goesOn();
      await app.get(Sessions).endAll('eve');
      expect(await stream.ended).toBe('cut');
    }
  });

  it.each([{}, { 'X-Rotate': '1' }])('that has not begun ends, too: %j', async (headers) => {
    const waiting = ann.get('/waiting', { headers }).then(
      () => 'answered',
      () => 'cut',
    );
    await NewsController.gate.reached();
    await elsewhere.ann.post('/logout');
    expect(await waiting).toBe('cut');
  });

  it('that has ended the session itself is answered', async () => {
    const response = await ann.open('GET', '/farewell');
    await NewsController.gate.reached();
    const stream = await Stream.open(await again(), '/events');
    await app.get(Sessions).endAll('bob');
    expect(await stream.ended).toBe('cut');
    NewsController.gate.open();
    let text = '';
    for await (const chunk of response) text += String(chunk);
    expect(text).toBe('bye bye');
  });

  async function again(): Promise<HttpAgent> {
    const bob = await HttpAgent.for(app);
    await bob.post('/login/bob');
    return bob;
  }

  /** Nothing that is open waits for its check any more. */
  async function confirmed(): Promise<void> {
    const stream = await Stream.open(await again(), '/events');
    await app.get(Sessions).endAll('bob');
    expect(await stream.ended).toBe('cut');
  }
});

describe('open responses, with the store redis,', () => {
  const KIND: Kind = { store: 'redis', adapter: 'express' };
  let app: INestApplication;
  let ann: HttpAgent;
  let client: Redis;

  beforeEach(async () => {
    // On a slow machine, the visits take longer than a minute, and the last one would be a touch.
    app = await start(KIND, { touchInterval: '10m' });
    ann = await signedIn('ann');
    client = new Redis(redis.url, { retryStrategy: null });
  });
  afterEach(() => client.disconnect());

  async function signedIn(name: string): Promise<HttpAgent> {
    const agent = await HttpAgent.for(app);
    await agent.post(`/login/${name}`);
    return agent;
  }

  /** Whether the instance waits for the events of other instances. */
  const listens = async () => ((await client.client('LIST')) as string).includes(':broadcast');

  it('cost an instance no events before the first one that takes a while', async () => {
    for (let visit = 0; visit < 20; visit++) expect((await ann.get('/me')).status).toBe(200);
    await client.config('RESETSTAT');
    expect((await ann.get('/me')).status).toBe(200);
    const stats = await commandStats(client);
    expect(['hgetall', 'pttl', 'hmget', 'evalsha'].map((name) => stats.get(name)?.calls ?? 0)).toEqual([1, 1, 0, 0]);
    expect(await listens()).toBe(false);
    await Stream.open(ann, '/events');
    await eventually(async () => expect(await listens()).toBe(true));
  });

  it('leave nothing behind', async () => {
    const kept = new KeptEntries();
    try {
      const visit = async () => {
        const [bob, eve] = [await signedIn('bob'), await signedIn('eve')];
        const streams = await Promise.all(STREAMS.flatMap((path) => [Stream.open(bob, path), Stream.open(eve, path)]));
        await bob.get('/me');
        await bob.post('/rotate');
        await app.get(Sessions).endAll('bob');
        for (const each of streams) each.close();
        await Promise.all(streams.map(({ ended }) => ended));
        await eventually(() => expect(app.get(OpenConnections).ids).toEqual([]));
        await eve.post('/logout');
      };
      await visit();
      const before = kept.counts();
      for (let again = 0; again < 2; again++) await visit();
      await eventually(() => expect(kept.grownSince(before, 1)).toEqual([]));
    } finally {
      kept.stop();
    }
  });

  it('end when the store comes back without their sessions: also those that it has not been asked about', async () => {
    const old = await Stream.open(ann, '/events');
    await eventually(async () => expect(await listens()).toBe(true));
    const young = await Stream.open(await signedIn('bob'), '/events');
    // This instance has read no event that Redis could lose.
    await redis.kill();
    await redis.restart();
    expect(await young.ended).toBe('cut');
    const now = performance.now.bind(performance);
    jest.spyOn(performance, 'now').mockImplementation(() => now() + MINUTE);
    expect(await old.ended).toBe('cut');
    jest.restoreAllMocks();
  });

  it('go on when a gap of events has only hidden a rotation, and end with the session', async () => {
    const other = await start(KIND);
    const stream = await Stream.open(ann, '/events');
    await eventually(async () => expect(await listens()).toBe(true));
    const session = (await sessionOf(app, ann))!;
    session.changeSessionId();
    // The search does not find the session, whose rotation it may not have heard of.
    app.get(OpenConnections).miss((await sessionOf(app, ann))!.id);
    await session.save();
    app.get(RequestSessions).ends.search();
    await stream.goesOn();
    await eventually(() => expect(app.get(OpenConnections).ids).toEqual([session.id]));
    await other.get(Sessions).end(session.id);
    expect(await stream.ended).toBe('cut');
  });

  it('end when every session ends, although the events of their ends have not come', async () => {
    const other = await start(KIND);
    const stream = await Stream.open(ann, '/events');
    await eventually(async () => expect(await listens()).toBe(true));
    // What ends the sessions one by one looks for them by this command.
    await client.acl('SETUSER', 'default', '-scan');
    await other.get(Sessions).endEverySession();
    expect(await stream.ended).toBe('cut');
  });
});
