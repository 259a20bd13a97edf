import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { setImmediate as nextTurn, setTimeout as delay } from 'node:timers/promises';
import { inspect } from 'node:util';
import {
  Controller,
  Get,
  type INestApplication,
  Injectable,
  Logger,
  Param,
  Post,
  Scope,
  type Type,
  UseGuards,
} from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { Gate, LeakGuard, LogRecorder } from '@nest-session/test-infrastructure';
import { eventually, HttpAgent, sessionOf } from '@nest-session/testing';
import { WebSocket } from 'ws';
import { RequestSessions } from '../../src/http/request-sessions.js';
import {
  CompositeSessionIdResolver,
  CookieSessionIdResolver,
  CsrfGuard,
  CsrfToken,
  HeaderSessionIdResolver,
  MapSessionModule,
  OnSecurityEvent,
  SecurityEvent,
  Session,
  SessionModule,
  type SessionModuleOptions,
  Sessions,
} from '../../src/index.js';
import type { SecurityEventKind, SecurityEvents } from '../../src/security-events/security-events.js';
import { type ResolvedSessionOptions, SESSION_OPTIONS } from '../../src/store.js';
import { SecurityEventHandler } from '../../src/security-events/security-event.dispatcher.js';
import { requestWith } from '../support/node.request.js';

LeakGuard.install();

const running: INestApplication[] = [];
afterEach(() => Promise.all(running.splice(0).map((app) => app.close())));

const SECRET = 'the-value-of-an-attribute';

@Controller('account')
class AccountController {
  @Get('me')
  me(@Session() session: Session) {
    return { name: session.principalName ?? null };
  }

  @Get('page')
  page(@CsrfToken() token: string) {
    return { token };
  }

  @Post('start')
  start(@Session() session: Session) {
    session.setAttribute('secret', SECRET);
  }

  @Post('set/:name')
  set(@Param('name') name: string, @Session() session: Session) {
    session.setAttribute(name, true);
  }

  @Post('list')
  list(@Session() session: Session) {
    session.setAttribute('list', []);
  }

  @Post('fill')
  fill(@Session() session: Session) {
    session.getRequiredAttribute<string[]>('list').push('x'.repeat(100));
  }

  @Post('login/ann')
  ann(@Session() session: Session) {
    session.signIn('ann');
  }

  @Post('login/bob')
  bob(@Session() session: Session) {
    session.signIn('bob');
  }

  @UseGuards(CsrfGuard)
  @Post('transfer')
  transfer() {}
}

/** Hears of everything. */
@Injectable()
class Recorder {
  readonly events: SecurityEvent[] = [];

  @OnSecurityEvent()
  record(event: SecurityEvent) {
    this.events.push(event);
  }
}

interface Options {
  readonly platform?: 'express' | 'fastify' | undefined;
  readonly session?: SessionModuleOptions | undefined;
  readonly providers?: readonly Type[];
}

async function start({ platform = 'express', session, providers = [Recorder] }: Options = {}) {
  const log = new LogRecorder();
  const module = {
    module: class AppModule {},
    imports: [SessionModule.forRoot(session), MapSessionModule.forRoot()],
    controllers: [AccountController],
    providers: [...providers],
  };
  const adapter = platform === 'express' ? new ExpressAdapter() : new FastifyAdapter();
  const app = await NestFactory.create(module, adapter, { logger: log, abortOnError: false });
  await app.listen(0, '127.0.0.1');
  running.push(app);
  const origin = await app.getUrl();
  const { securityEvents } = app.get<ResolvedSessionOptions>(SESSION_OPTIONS, { strict: false });
  return { app, log, securityEvents, agent: () => new HttpAgent(origin), origin };
}

function eventsOf(app: INestApplication): readonly SecurityEvent[] {
  return app.get(Recorder).events;
}

const cookieOf = (agent: HttpAgent) => `SESSION=${agent.cookie('SESSION')}`;
const sending = (cookie: string) => ({ headers: { cookie } });
const aToken = () => randomBytes(32).toString('base64url');

describe.each(['express', 'fastify'] as const)('on %s, @OnSecurityEvent() hears of', (platform) => {
  const from = { remoteAddress: '127.0.0.1', suppressed: 0 };

  it('limits that refuse something, with the option and whose session it was', async () => {
    const session = {
      maxAttributes: 1,
      maxSessions: { perPrincipal: 1, whenReached: 'refuse' },
      mayCreate: ({ url }: { url?: string }) => url !== '/account/start',
    } as const;
    const { app, agent } = await start({ platform, session });
    const [ann, other] = [agent(), agent()];
    expect((await ann.post('/account/login/ann')).status).toBe(201);
    const { id: sessionId } = (await sessionOf(app, ann))!;
    expect((await other.post('/account/login/ann')).status).toBe(409);
    expect((await other.post('/account/start')).status).toBe(429);
    expect((await ann.post('/account/set/a')).status).toBe(201);
    expect((await ann.post('/account/set/b')).status).toBe(413);
    expect(eventsOf(app)).toEqual([
      expect.objectContaining({ limit: 'maxSessions', path: '/account/login/ann', principalName: 'ann' }),
      expect.objectContaining({ limit: 'mayCreate', path: '/account/start' }),
      expect.objectContaining({ limit: 'maxAttributes', path: '/account/set/b', sessionId, principalName: 'ann' }),
    ]);
    for (const event of eventsOf(app)) expect(event).toMatchObject({ kind: 'limit-reached', method: 'POST', ...from });
  });

  it('a bound that an object exceeds which was changed in place, once', async () => {
    const { app, agent, securityEvents } = await start({ platform, session: { maxAttributeSize: 10 } });
    const client = agent();
    await client.post('/account/list');
    expect((await client.post('/account/fill')).status).toBe(413);
    // Delivers what would wait for the next second.
    securityEvents.listen(undefined);
    await nextTurn();
    expect(eventsOf(app)).toEqual([expect.objectContaining({ limit: 'maxAttributeSize', path: '/account/fill' })]);
  });

  it('a token that opens nothing, invented or of an ended session, with its id and what the request was', async () => {
    const { app, agent, log } = await start({ platform });
    const client = agent();
    await client.post('/account/start');
    const { id } = (await sessionOf(app, client))!;
    await client.get('/account/me');
    expect(eventsOf(app)).toEqual([]);
    await app.get(Sessions).end(id);
    const before = Date.now();
    expect((await client.get('/account/me?code=hush#x')).status).toBe(200);
    const [event, ...others] = eventsOf(app);
    expect(others).toEqual([]);
    expect(event).toMatchObject({ kind: 'unknown-token', method: 'GET', path: '/account/me', sessionId: id, ...from });
    expect(event!.at).toBeGreaterThanOrEqual(before);
    for (const shown of [JSON.stringify(event), inspect(event, { depth: 5, showHidden: true })]) {
      for (const secret of [client.cookie('SESSION')!, 'hush', SECRET]) expect(shown).not.toContain(secret);
    }
    expect(log.lines).toEqual([]);
  });

  it('a token that opens no session beside one that does', async () => {
    const { app, agent } = await start({ platform });
    const client = agent();
    await client.post('/account/login/ann');
    const both = sending(`SESSION=${aToken()}; ${cookieOf(client)}`);
    expect((await agent().get('/account/me', both)).json()).toEqual({ name: 'ann' });
    expect(eventsOf(app)).toMatchObject([{ kind: 'unknown-token', principalName: undefined }]);
  });

  it('each of several tokens that open no session', async () => {
    const { app, agent } = await start({ platform });
    const cookies = Array.from({ length: 64 }, () => `SESSION=${aToken()}`);
    await agent().get('/account/me', sending(cookies.join('; ')));
    await app.close();
    expect(eventsOf(app).reduce((sum, { suppressed }) => sum + 1 + suppressed, 0)).toBe(64);
  });

  it('a cookie or header that holds no token, and a cookie that is not signed or badly', async () => {
    const cookie = new CookieSessionIdResolver({ signingKeys: [randomBytes(32).toString('base64url')] });
    const sessionIdResolver = new CompositeSessionIdResolver(HeaderSessionIdResolver.xAuthToken(), cookie);
    const { app, agent, log } = await start({ platform, session: { sessionIdResolver } });
    await agent().get('/account/me', { headers: { 'x-auth-token': 'short' } });
    await agent().get('/account/me', sending('SESSION='));
    await agent().get('/account/me', sending(`SESSION=${aToken()}`));
    expect(eventsOf(app)).toMatchObject([
      { kind: 'malformed-token', reason: 'malformed', ...from },
      { kind: 'badly-signed-token', reason: 'unsigned', ...from },
    ]);
    await eventually(async () => {
      await agent().get('/account/me', sending(`SESSION=${aToken()}.${aToken()}`));
      expect(eventsOf(app).at(-1)).toMatchObject({ kind: 'badly-signed-token', reason: 'badly signed' });
    });
    expect(log.lines).toEqual([]);
  });

  it('a token that was just replaced and is to start a session', async () => {
    const { app, agent } = await start({ platform });
    const attacker = agent();
    await attacker.post('/account/start');
    const { id } = (await sessionOf(app, attacker))!;
    const victim = attacker.fork();
    await attacker.post('/account/login/bob');
    expect((await victim.post('/account/start')).status).toBe(409);
    expect(eventsOf(app)).toMatchObject([
      { kind: 'unknown-token', sessionId: id },
      { kind: 'rotated-token', sessionId: id, method: 'POST', path: '/account/start', ...from },
    ]);
  });

  it('sessions of two users in one request, with the one that counted', async () => {
    const { app, agent, log } = await start({ platform });
    const [ann, bob] = [agent(), agent()];
    await ann.post('/account/login/ann');
    await bob.post('/account/login/bob');
    await agent().get('/account/me', sending(`${cookieOf(bob)}; ${cookieOf(ann)}`));
    const { id } = (await sessionOf(app, bob))!;
    expect(eventsOf(app)).toMatchObject([{ kind: 'two-principals', principalName: 'bob', sessionId: id, ...from }]);
    expect(log.lines).toEqual([]);
  });

  it('what CsrfGuard refuses', async () => {
    const { app, agent } = await start({ platform });
    const client = agent();
    await client.post('/account/login/ann');
    const { id } = (await sessionOf(app, client))!;
    await client.post('/account/transfer', {}, { headers: { 'sec-fetch-site': 'cross-site' } });
    expect((await client.post('/account/transfer')).status).toBe(403);
    const request = { method: 'POST', path: '/account/transfer', sessionId: id, principalName: 'ann', ...from };
    expect(eventsOf(app)).toMatchObject([
      { kind: 'refused-origin', reason: 'cross-origin', ...request },
      { kind: 'refused-csrf-token', reason: 'missing-token', ...request },
    ]);
  });

  it('an upgrade from the page of another origin', async () => {
    const { app, log, origin } = await start({ platform });
    const sessions = app.get(Sessions);
    app.getHttpServer().on('upgrade', (request: object, socket: { destroy(): void }) => {
      void sessions.load(request).then(() => socket.destroy());
    });
    const client = new WebSocket(`${origin.replace('http', 'ws')}/chat?token=hush`, { origin: 'https://evil.example' });
    await once(client, 'error');
    expect(eventsOf(app)).toMatchObject([{ kind: 'refused-origin', method: 'GET', path: '/chat', ...from }]);
    expect(app.get(RequestSessions).allowsOriginOf(requestWith({ host: 'here' }))).toBe(true);
    expect(log.lines).toEqual([]);
  });
});

it('with plain session ids, an event has a fingerprint in the place of the id', async () => {
  const { app, agent } = await start({ session: { sessionIds: 'plain' } });
  const token = aToken();
  await agent().get('/account/me', sending(`SESSION=${token}`));
  expect(eventsOf(app)[0]!.sessionId).toMatch(/^sha256:[\w-]{16}$/);
  expect(inspect(eventsOf(app))).not.toContain(token);
});

describe('the request of an event', () => {
  const facts = async (properties: object) => {
    const { app, securityEvents } = await start();
    securityEvents.report('unknown-token', { request: Object.assign(requestWith(), properties) });
    await Promise.resolve();
    await Promise.resolve();
    return eventsOf(app)[0]!;
  };

  it.each([
    ['/reset/a?token=hush', '/reset/a'],
    ['/a#b', '/a'],
    ['http://user:hush@host:80/a?b', '/a'],
    ['http://host?x=hush', ''],
    ['*', '*'],
    [`/${'a'.repeat(1000)}`, `/${'a'.repeat(255)}`],
  ])('with the URL %p has the path %p', async (url, path) => expect((await facts({ url })).path).toBe(path));

  it('has the path before a router changed it', async () => {
    expect((await facts({ url: '/b', originalUrl: '/a/b?c' })).path).toBe('/a/b');
  });

  it('has the address as the platform gives it, and no more than 64 characters of it', async () => {
    expect((await facts({ ip: '10.0.0.1' })).remoteAddress).toBe('10.0.0.1');
    const { remoteAddress } = await facts({ ip: '1'.repeat(5000) });
    expect(remoteAddress).toHaveLength(64);
  });
});

describe('@OnSecurityEvent', () => {
  const heard = async (...names: string[]) => {
    const found: string[] = [];
    @Injectable()
    class Handlers {
      @OnSecurityEvent('unknown-token', 'limit-reached')
      some(event: SecurityEvent) {
        found.push(`some ${event.kind}`);
      }

      @OnSecurityEvent('two-principals')
      other(event: SecurityEvent) {
        found.push(`other ${event.kind}`);
      }
    }
    const { securityEvents, log } = await start({ providers: [Handlers] });
    const isHeard = names.map((name) => securityEvents.report(name as SecurityEventKind));
    await eventually(() => expect(found).toHaveLength(isHeard.filter(Boolean).length));
    return { found, isHeard, log };
  };

  it('hears of the kinds that it names, and of no others', async () => {
    const { found, isHeard } = await heard('limit-reached', 'refused-origin', 'two-principals');
    expect(found).toEqual(['some limit-reached', 'other two-principals']);
    expect(isHeard).toEqual([true, false, true]);
  });

  it('of a request-scoped class stops the start', async () => {
    @Injectable({ scope: Scope.REQUEST })
    class Handlers {
      @OnSecurityEvent()
      handle() {}
    }
    await expect(start({ providers: [Handlers] })).rejects.toThrow(
      '@OnSecurityEvent cannot be used on Handlers.handle',
    );
  });

  it('that throws or rejects is logged once, and harms neither the request nor other handlers', async () => {
    @Injectable()
    class Failing {
      @OnSecurityEvent()
      throws() {
        throw new Error('it throws');
      }

      @OnSecurityEvent()
      async rejects() {
        await Promise.reject(new Error('it rejects'));
      }
    }
    const { app, agent, log } = await start({ providers: [Failing, Recorder] });
    const responses = await Promise.all(
      Array.from({ length: 3 }, () => agent().get('/account/me', sending(`SESSION=${aToken()}`))),
    );
    expect(responses.map(({ status }) => status)).toEqual([200, 200, 200]);
    await eventually(() => expect(eventsOf(app).at(-1)).toMatchObject({ suppressed: 1 }));
    expect(eventsOf(app)).toHaveLength(2);
    expect(log.lines).toHaveLength(2);
    expect(log.matching(/Failing\.throws failed to handle a security or provider event.*it throws/)).toHaveLength(1);
    expect(log.matching(/Failing\.rejects failed to handle a security or provider event.*it rejects/)).toHaveLength(1);
  });

  it('that throws something without a text is logged as well, and does not end the process', async () => {
    const log = new LogRecorder();
    Logger.overrideLogger(log);
    const rejections: unknown[] = [];
    const note = (reason: unknown) => rejections.push(reason);
    process.on('unhandledRejection', note);
    try {
      let called = 0;
      const call = () => {
        called++;
        // As the groups of a regular expression, or the arguments of a resolver.
        throw Object.create(null);
      };
      const handler = new SecurityEventHandler({ name: 'Fails.always', call }, new Set());
      // More than run at a time.
      for (let i = 0; i < 40; i++) handler.hear(new SecurityEvent('limit-reached'));
      await eventually(() => expect(called).toBe(40), { interval: 1 });
      expect(
        log.matching(/Fails\.always failed to handle a security or provider event.*a value without a text/),
      ).toHaveLength(1);
      expect(rejections).toEqual([]);
    } finally {
      process.off('unhandledRejection', note);
    }
  });

  it('that fails each time hears of every event, at once or one after the other', async () => {
    Logger.overrideLogger(new LogRecorder());
    let called = 0;
    const call = () => Promise.reject(new Error(`failure ${++called}`));
    const handler = new SecurityEventHandler({ name: 'Fails.always', call }, new Set());
    for (let i = 0; i < 40; i++) handler.hear(new SecurityEvent('limit-reached'));
    await eventually(() => expect(called).toBe(40), { interval: 1 });
    for (let i = 1; i <= 40; i++) {
      handler.hear(new SecurityEvent('limit-reached'));
      await eventually(() => expect(called).toBe(40 + i), { interval: 0 });
    }
  });

  it('that hangs is called 16 times, and delays neither requests nor other handlers', async () => {
    const gate = new Gate();
    let called = 0;
    @Injectable()
    class Hanging {
      @OnSecurityEvent()
      async hang() {
        called++;
        await gate.pass();
      }
    }
    const { app, agent, log, securityEvents } = await start({ providers: [Hanging, Recorder] });
    // Limits are told apart, as clients are.
    for (let i = 0; i < 60; i++) securityEvents.report('limit-reached', { limit: `${i}` });
    await eventually(() => expect(eventsOf(app)).toHaveLength(60));
    expect((await agent().get('/account/me')).status).toBe(200);
    expect([called, log.lines]).toEqual([16, []]);
    gate.open();
    await eventually(() => expect(called).toBe(60));
  });

  it('that hangs is logged once, and once when it misses events', async () => {
    const log = new LogRecorder();
    Logger.overrideLogger(log);
    const gate = new Gate();
    let called = 0;
    const call = () => (called++, gate.pass());
    const handler = new SecurityEventHandler({ name: 'Locks.hang', call }, new Set(), 1);
    for (let i = 0; i < 16 + 1000; i++) handler.hear(new SecurityEvent('limit-reached'));
    await eventually(() => expect(log.lines).not.toEqual([]));
    expect(log.matching(/Locks\.hang takes too long to handle a security or provider event/)).toHaveLength(1);
    for (let i = 0; i < 2; i++) handler.hear(new SecurityEvent('limit-reached'));
    expect(log.matching(/Locks\.hang misses security or provider events/)).toHaveLength(1);
    gate.open();
    await eventually(() => expect(called).toBe(1016));
    expect(log.lines).toHaveLength(2);
  });

  it('is called at the shutdown with what was not delivered yet', async () => {
    const { app, securityEvents } = await start();
    for (let i = 0; i < 5; i++) securityEvents.report('limit-reached', { limit: 'maxSessions' });
    await app.close();
    expect(eventsOf(app)).toMatchObject([
      { suppressed: 0 },
      { kind: 'limit-reached', limit: 'maxSessions', suppressed: 3 },
    ]);
    expect(securityEvents.report('limit-reached')).toBe(false);
  });

  it('is awaited at the shutdown, with the calls that wait for others', async () => {
    const gate = new Gate();
    let written = 0;
    class Audit {
      @OnSecurityEvent('admin-action')
      async write() {
        await gate.pass();
        written++;
      }
    }
    const { app, securityEvents } = await start({ providers: [Audit] });
    for (let i = 0; i < 20; i++) securityEvents.report('admin-action', { action: 'replay' });
    const closed = app.close();
    await gate.reached();
    expect(await Promise.race([closed.then(() => 'closed'), delay(200, 'waits')])).toBe('waits');
    gate.open();
    await closed;
    expect(written).toBe(20);
  });

  it('does not keep the application from its shutdown when it hangs', async () => {
    const log = new LogRecorder();
    Logger.overrideLogger(log);
    const gate = new Gate();
    const handler = new SecurityEventHandler({ name: 'Locks.hang', call: () => gate.pass() }, new Set());
    handler.hear(new SecurityEvent('limit-reached'));
    await handler.idle(10);
    expect(log.lines).toEqual([
      expect.stringContaining('Locks.hang has not finished with all security or provider events'),
    ]);
    gate.open();
    await handler.idle();
    expect(log.lines).toHaveLength(1);
  });
});

describe('a flood of events', () => {
  /** The sum that a handler can make of the events. */
  const counted = (events: readonly SecurityEvent[]) => events.reduce((sum, { suppressed }) => sum + 1 + suppressed, 0);

  it('calls handlers about once a second for a client, and each event is counted', async () => {
    const { app, agent } = await start();
    const client = agent();
    for (let i = 0; i < 30; i++) await client.get('/account/me', sending(`SESSION=${aToken()}`));
    await eventually(() => expect(counted(eventsOf(app))).toBe(30), { timeout: 10_000 });
    expect(eventsOf(app).length).toBeLessThan(15);
  });

  it('does not hide the events of another client, another limit or another kind', async () => {
    const { app, securityEvents } = await start();
    const report = (remoteAddress: string, kind: SecurityEventKind = 'limit-reached', limit?: string) =>
      securityEvents.report(kind, { request: Object.assign(requestWith(), { ip: remoteAddress }), limit });
    for (let i = 0; i < 10; i++) report('10.0.0.1');
    report('10.0.0.2');
    report('10.0.0.1', 'limit-reached', 'maxSessions');
    report('10.0.0.1', 'unknown-token');
    await Promise.resolve();
    await Promise.resolve();
    expect(eventsOf(app).map(({ kind, remoteAddress, limit }) => [kind, remoteAddress, limit])).toEqual([
      ['limit-reached', '10.0.0.1', undefined],
      ['limit-reached', '10.0.0.2', undefined],
      ['limit-reached', '10.0.0.1', 'maxSessions'],
      ['unknown-token', '10.0.0.1', undefined],
    ]);
  });

  it('of many clients is told apart for five hundred of them, counts all, and blames nobody for the others', async () => {
    const { app, securityEvents } = await start();
    for (let round = 0; round < 2; round++) {
      for (let i = 0; i < 1000; i++) {
        const request = Object.assign(requestWith(), { ip: `10.0.${i >> 8}.${i & 255}` });
        securityEvents.report('unknown-token', { request, sessionId: `${i}`, principalName: 'ann' });
      }
    }
    await app.close();
    const events = eventsOf(app);
    expect(counted(events)).toBe(2000);
    const named = events.filter(({ remoteAddress }) => remoteAddress !== undefined);
    expect(new Set(named.map(({ remoteAddress }) => remoteAddress)).size).toBe(500);
    expect(counted(named)).toBe(1000);
    const others = events.filter(({ remoteAddress }) => remoteAddress === undefined);
    for (const event of others) expect(event).toMatchObject({ sessionId: undefined, principalName: undefined });
  });
});

describe('while nobody listens,', () => {
  it('nothing is read of a request', async () => {
    const { securityEvents } = await start({ providers: [] });
    const request = new Proxy(requestWith(), {
      get: () => {
        throw new Error('it was read');
      },
    });
    expect((securityEvents as SecurityEvents).report('unknown-token', { request })).toBe(false);
  });

  it('the log has one line for what was refused, and none for unknown tokens', async () => {
    const sessionIdResolver = HeaderSessionIdResolver.xAuthToken();
    const { app, agent, log } = await start({ providers: [], session: { sessionIdResolver } });
    for (let i = 0; i < 2; i++) {
      await agent().get('/account/me', { headers: { 'x-auth-token': 'short' } });
      await agent().get('/account/me', { headers: { 'x-auth-token': aToken() } });
      const request = requestWith({ host: 'here', origin: 'https://evil.example' });
      expect(app.get(RequestSessions).allowsOriginOf(request)).toBe(false);
    }
    expect(log.lines).toHaveLength(2);
    expect(log.matching(/does not hold a session token/)).toHaveLength(1);
    expect(log.matching(/page of another origin/)).toHaveLength(1);
  });
});
