import { Injectable } from '@nestjs/common';
import { TerminusModule } from '@nestjs/terminus';
import { Test } from '@nestjs/testing';
import {
  InvalidSessionOptionsError,
  OnSessionEvent,
  SessionDeletedEvent,
  SessionModule,
  SessionRepository,
} from '@nest-session/core';
import { RedisSessionModule, type RedisSessionModuleOptions, SessionEventGroups } from '@nest-session/redis';
import { SessionHealthIndicator } from '@nest-session/redis/terminus';
import { LeakGuard, SteppableRedisServer, TcpProxy } from '@nest-session/test-infrastructure';
import { eventually, RedisCluster, RedisServer, TestSessionModule } from '@nest-session/testing';
import { Redis } from 'ioredis';
import { EventTrimmer } from '../../../redis-events/src/delivery/event.trimmer.js';
import { App, type AppOptions } from '../support/app.fixture.js';
import { commandStats } from '../support/command.stats.js';
import { HealthController } from '../support/health.controller.js';
import { documentedLines, type RightsName } from '../support/documented.rights.js';
import { trimOnce } from '../support/trim-once.js';

LeakGuard.install();

const [PASSWORD, USER, PRINCIPAL, VALUE] = ['a-long-secret', 'user-of-redis', 'ann-the-principal', 'card-4111'];
const MINUTE = 60_000;

const GROUP = { name: 'default', lag: 0, oldestUnreadAge: 0, dropped: 0, lostDeadLetters: 0 };
const UP = { status: 'up', redis: 'up', notifications: 'listening', groups: [GROUP] };

@Injectable()
class FailingHandlers {
  @OnSessionEvent(SessionDeletedEvent)
  fail({ session }: SessionDeletedEvent) {
    throw new Error(`${String(session.principalName)} ${String(session.getAttribute('card'))}`);
  }
}

/** The texts of all answers of a test. */
let answers: string[];
/** What stands in no answer. */
let secrets: string[];
/** Ends what a test has started, the last first. */
let ends: (() => unknown)[];

beforeEach(() => {
  [answers, ends] = [[], []];
  secrets = [PASSWORD, USER, PRINCIPAL, VALUE, '127.0.0.1', 'localhost'];
});
afterEach(async () => {
  for (const end of ends.toReversed()) await end();
  expect(answers.length).toBeGreaterThan(0);
  for (const secret of secrets) expect(answers.join('\n')).not.toContain(secret);
});

async function serverOf<Server extends RedisServer>(started: Promise<Server>): Promise<Server> {
  const server = await started;
  ends.push(() => server.stop());
  secrets.push(String(server.port));
  return server;
}

const WITH_PASSWORD = { args: ['--requirepass', PASSWORD] };

const urlOf = ({ port }: { port: number }, user = '') => `redis://${user}:${PASSWORD}@127.0.0.1:${port}`;

function adminOf({ port }: RedisServer): Redis {
  const admin = new Redis({ port, password: PASSWORD });
  // A server that a test stops.
  admin.on('error', () => undefined);
  ends.push(() => admin.disconnect());
  return admin;
}

/** An application whose health can be asked. */
async function start(redis: RedisSessionModuleOptions, options: AppOptions = {}) {
  const app = await App.start({
    imports: [TerminusModule.forRoot({ logger: false })],
    controllers: [HealthController],
    ...options,
    redis,
    providers: [SessionHealthIndicator, ...(options.providers ?? [])],
  });
  ends.push(() => app.stop());
  const ask = async () => {
    const response = await app.agent().get('/health');
    answers.push(response.text);
    const { status, details } = response.json<{ status: string; details: { sessions: Record<string, unknown> } }>();
    return { http: response.status, status, sessions: details.sessions };
  };
  const becomes = (expected: object) =>
    eventually(async () => expect(await ask()).toMatchObject(expected), { timeout: 40_000 });
  return { app, ask, becomes };
}

const isUp = { http: 200, status: 'ok', sessions: UP };
const isDegraded = (...reasons: string[]) => ({
  http: 200,
  status: 'degraded',
  sessions: { status: 'degraded', redis: 'up', reasons },
});
const isDown = (reason: string) => ({
  http: 503,
  status: 'error',
  sessions: { status: 'down', redis: 'down', reasons: [reason] },
});

describe('the health of the sessions', () => {
  it('is up when sessions can be loaded and all background work is done', async () => {
    const server = await serverOf(RedisServer.start(WITH_PASSWORD));
    const { ask, becomes } = await start({ url: urlOf(server) });
    await becomes(isUp);
    expect(await ask()).toEqual(isUp);
  });

  it('is up with `notifications: off`, which is no fault', async () => {
    const server = await serverOf(RedisServer.start(WITH_PASSWORD));
    const { becomes } = await start({ url: urlOf(server), notifications: 'off' });
    await becomes({ ...isUp, sessions: { ...UP, notifications: 'off' } });
  });

  it('costs one load and one script in each partition, in one round trip', async () => {
    const server = await serverOf(RedisServer.start(WITH_PASSWORD));
    const proxy = await TcpProxy.start({ port: server.port });
    ends.push(() => proxy.stop());
    const { ask, becomes } = await start({ url: urlOf(proxy), partitions: 4, notifications: 'off' });
    await becomes({ http: 200, status: 'ok' });
    proxy.countFlights((burst) => /\b(hgetall|evalsha)\b/i.test(burst.toString('latin1')));
    const admin = adminOf(server);
    // What runs in the background may send the same meanwhile.
    await eventually(async () => {
      await admin.config('RESETSTAT');
      const flights = await proxy.flightsDuring(ask);
      const stats = await commandStats(admin);
      const counts = ['hgetall', 'pttl', 'evalsha'].map((name) => stats.get(name)?.calls);
      expect({ flights, counts }).toEqual({ flights: 1, counts: [1, 1, 4] });
    });
  });

  it('is degraded while Redis is full, and up when there is memory again', async () => {
    const server = await serverOf(RedisServer.start(WITH_PASSWORD));
    const { app, becomes } = await start({ url: urlOf(server) });
    await becomes(isUp);
    const admin = adminOf(server);
    await admin.config('SET', 'maxmemory', '1mb');
    expect((await app.agent().post('/set/a', { value: 1 })).status).toBe(503);
    await becomes(isDegraded('Redis is full: sessions cannot be saved'));
    await admin.config('SET', 'maxmemory', '0');
    await becomes(isUp);
  });

  it('is down within `commandTimeout` while Redis is frozen, and up after that', async () => {
    const server = await serverOf(RedisServer.start(WITH_PASSWORD));
    const { ask, becomes } = await start({ url: urlOf(server), commandTimeout: '500ms' });
    await becomes(isUp);
    server.freeze();
    const begin = performance.now();
    expect(await ask()).toEqual(isDown('Redis did not reply within 500 ms'));
    const taken = performance.now() - begin;
    expect(taken).toBeGreaterThan(450);
    expect(taken).toBeLessThan(2000);
    server.thaw();
    await becomes(isUp);
    server.freeze();
    await becomes({ http: 503 });
    server.thaw();
    await becomes(isUp);
  });

  it('is down while Redis is not there, says how, and is up after a restart', async () => {
    const server = await serverOf(RedisServer.start(WITH_PASSWORD));
    const { becomes } = await start({ url: urlOf(server), commandTimeout: '500ms' });
    await becomes(isUp);
    for (let round = 1; round <= 2; round++) {
      await server.kill();
      await becomes(isDown('Redis did not reply within 500 ms (ECONNREFUSED)'));
      await server.restart();
      await becomes(isUp);
    }
  });

  it('is down when Redis has another password after a restart', async () => {
    const first = await serverOf(RedisServer.start(WITH_PASSWORD));
    const { port } = first;
    const { becomes } = await start({ url: urlOf(first), commandTimeout: '500ms' });
    await becomes(isUp);
    await first.stop();
    await serverOf(RedisServer.start({ port, args: ['--requirepass', 'another-secret'] }));
    await becomes(isDown('Redis did not reply within 500 ms (WRONGPASS)'));
  });

  it('is down when the user of Redis may not read sessions', async () => {
    const server = await serverOf(RedisServer.start(WITH_PASSWORD));
    const admin = adminOf(server);
    await grant(admin, ['every process', 'handlers', 'notifications', 'flags']);
    const { becomes } = await start({ url: urlOf(server, USER) });
    await becomes(isUp);
    await admin.acl('SETUSER', USER, '-hgetall');
    await becomes(isDown('Redis failed (NOPERM)'));
  });

  it('is degraded when a group has left events unread for longer than `late`', async () => {
    const server = await serverOf(SteppableRedisServer.start(WITH_PASSWORD));
    const { app, ask, becomes } = await start({ url: urlOf(server), partitions: 2 });
    await becomes(isUp);
    const groups = app.nest.get(SessionEventGroups, { strict: false });
    await groups.create('mail');
    for (let i = 0; i < 3; i++) await deleted(app);
    await becomes({
      sessions: {
        status: 'up',
        groups: [
          { name: 'default', lag: 0 },
          { name: 'mail', lag: 6 },
        ],
      },
    });
    await server.stepClock(4 * MINUTE);
    expect(await ask()).toMatchObject({ status: 'ok' });
    await server.stepClock(2 * MINUTE);
    const { sessions } = await ask();
    expect(sessions).toMatchObject(isDegraded('A group is late').sessions);
    const age = (sessions['groups'] as { oldestUnreadAge: number }[])[1]!.oldestUnreadAge;
    expect(age).toBeGreaterThanOrEqual(360);
    expect(age).toBeLessThan(420);
    expect(
      await app.nest.get(SessionHealthIndicator, { strict: false }).isHealthy('mine', { late: '8m' }),
    ).toMatchObject({ mine: { status: 'up' } });
    await groups.remove('mail');
    await becomes(isUp);
  });

  it('refuses a `late` that is no duration', async () => {
    const server = await serverOf(RedisServer.start(WITH_PASSWORD));
    const { app, becomes } = await start({ url: urlOf(server) });
    await becomes(isUp);
    const indicator = app.nest.get(SessionHealthIndicator, { strict: false });
    await expect(indicator.isHealthy('sessions', { late: 5 as never })).rejects.toThrow(InvalidSessionOptionsError);
    await expect(indicator.isHealthy('sessions', { late: 5 as never })).rejects.toThrow(
      /SessionHealthIndicator: Option `late` is the bare number 5/,
    );
  });

  it('is degraded when Redis does not allow the channels', async () => {
    const server = await serverOf(RedisServer.start(WITH_PASSWORD));
    await grant(adminOf(server), ['every process', 'handlers']);
    const { becomes } = await start({ url: urlOf(server, USER) });
    const expected = isDegraded('Redis does not announce expired sessions');
    await becomes({ ...expected, sessions: { ...expected.sessions, notifications: 'refused' } });
  });

  it('is degraded once somebody has switched notifications off, and up once they are on again', async () => {
    const server = await serverOf(RedisServer.start(WITH_PASSWORD));
    const admin = adminOf(server);
    await admin.config('SET', 'notify-keyspace-events', 'Kx');
    await grant(admin, ['every process', 'handlers', 'notifications', 'all keys']);
    const { becomes } = await start({ url: urlOf(server, USER) });
    await becomes(isUp);
    // The listener looks at each new connection, and else once a minute.
    const reconnect = async () => {
      const clients = String(await admin.client('LIST')).split('\n');
      const its = clients.find((client) => client.includes('name=nest:session:subscriber'));
      await admin.client('KILL', 'ID', /\bid=(\d+)/.exec(its!)![1]!);
    };
    await admin.config('SET', 'notify-keyspace-events', '');
    await reconnect();
    const expected = isDegraded('Redis does not announce expired sessions');
    await becomes({ ...expected, sessions: { ...expected.sessions, notifications: 'silent' } });
    // Those of all keys will do.
    await admin.config('SET', 'notify-keyspace-events', 'Ex');
    await reconnect();
    await becomes(isUp);
  });

  it('is degraded while the cleanup gets no reply, and up once it does', async () => {
    const server = await serverOf(RedisServer.start(WITH_PASSWORD));
    const proxy = await TcpProxy.start({ port: server.port });
    ends.push(() => proxy.stop());
    const { becomes } = await start({ url: urlOf(proxy), cleanup: { cron: '* * * * * *' } });
    await becomes(isUp);
    proxy.hold('request', 'nest:session:cleanup');
    await becomes(isDegraded('No cleanup has finished for two ticks'));
    proxy.release('request');
    await becomes(isUp);
  });

  it('is degraded after events and dead letters were lost, also once more', async () => {
    const server = await serverOf(SteppableRedisServer.start(WITH_PASSWORD));
    const { app, becomes } = await start(
      {
        url: urlOf(server),
        cleanup: { cron: '0 0 0 29 2 *' },
        events: { attempts: 1, deadLetters: { retention: '1m' }, maxLength: 1 },
      },
      { providers: [FailingHandlers], handlers: false },
    );
    await becomes(isUp);
    const groups = app.nest.get(SessionEventGroups, { strict: false });
    const trimmer = app.nest.get(EventTrimmer, { strict: false });
    for (let lost = 1; lost <= 2; lost++) {
      await deleted(app);
      await eventually(async () => expect(await groups.deadLetters()).toHaveLength(1));
      await server.stepClock(2 * MINUTE);
      await trimOnce(trimmer);
      await becomes({
        ...isDegraded('Dead letters were lost within the last hour'),
        sessions: { status: 'degraded', groups: [{ ...GROUP, lostDeadLetters: lost }] },
      });
    }
    await groups.create('mail', { from: 'now' });
    for (let i = 0; i < 3; i++) await deleted(app);
    await trimOnce(trimmer);
    await becomes(
      isDegraded('Events were dropped within the last hour', 'Dead letters were lost within the last hour'),
    );
  });

  it('is degraded when the groups cannot be read although sessions can', async () => {
    const server = await serverOf(RedisServer.start(WITH_PASSWORD));
    const { ask, becomes } = await start({ url: urlOf(server) }, { handlers: false });
    await becomes({ status: 'ok' });
    await adminOf(server).set('nest:session:events', 'stray');
    const { sessions } = await ask();
    expect(sessions).toEqual({
      ...isDegraded('The groups cannot be read').sessions,
      notifications: 'listening',
    });
  });

  it('has an answer within `commandTimeout` while one primary of a Cluster is frozen', async () => {
    const cluster = await RedisCluster.start();
    ends.push(() => cluster.stop());
    secrets.push(...cluster.addresses.map(({ port }) => String(port)));
    const { ask, becomes } = await start({ cluster: { nodes: cluster.addresses }, commandTimeout: '500ms' });
    await becomes({ http: 200, status: 'ok' });
    cluster.nodes[0]!.freeze();
    const begin = performance.now();
    // The load may reach either kind of primary.
    expect(await ask()).toMatchObject({ status: expect.stringMatching(/^(degraded|error)$/) as string });
    expect(performance.now() - begin).toBeLessThan(2000);
    await becomes(isDegraded('The groups cannot be read'));
    cluster.nodes[0]!.thaw();
    await becomes({ http: 200, status: 'ok' });
  });

  it('is up in a test that replaces RedisSessionModule', async () => {
    const module = await Test.createTestingModule({
      imports: [SessionModule.forRoot(), RedisSessionModule.forRoot(), TerminusModule.forRoot({ logger: false })],
      providers: [SessionHealthIndicator],
    })
      .overrideModule(RedisSessionModule)
      .useModule(TestSessionModule.forRoot())
      .compile();
    const health = await module.get(SessionHealthIndicator).isHealthy('sessions');
    answers.push(JSON.stringify(health));
    expect(health).toEqual({ sessions: { status: 'up' } });
    await module.close();
  });
});

async function grant(admin: Redis, rights: RightsName[]): Promise<void> {
  for (const line of documentedLines(rights)) await admin.acl('SETUSER', USER, ...line);
}

/** Stores a session with secrets, and deletes it. */
async function deleted(app: App): Promise<void> {
  const session = app.nest.get(SessionRepository, { strict: false }).createSession();
  session.principalName = PRINCIPAL;
  session.setAttribute('card', VALUE);
  await session.save();
  session.invalidate();
  await session.save();
}
