import { Injectable } from '@nestjs/common';
import {
  IndexedSessionRepository,
  OnSessionEvent,
  type Session,
  SessionDeletedEvent,
  SessionEvent,
  SessionExpiredEvent,
  Sessions,
} from '@nest-session/core';
import { type RedisSessionModuleOptions, SessionEventGroups, SessionExpirationSweeper } from '@nest-session/redis';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually, freePort, RedisServer } from '@nest-session/testing';
import { Redis } from 'ioredis';
import { EventTrimmer } from '../../../redis-events/src/delivery/event.trimmer.js';
import { EventInstance } from '../support/event-instance.fixture.js';
import { monitorOf } from '../support/monitor-of.js';
import { trimOnce } from '../support/trim-once.js';

LeakGuard.install();

@Injectable()
class Handlers {
  /** Before the first retry. */
  fails = true;
  readonly heard: string[] = [];
  readonly expired: string[] = [];

  @OnSessionEvent(SessionDeletedEvent)
  handle({ id }: SessionDeletedEvent) {
    if (this.fails) throw new Error('on purpose');
    this.heard.push(id);
  }

  @OnSessionEvent(SessionExpiredEvent)
  remind({ sessionId }: SessionExpiredEvent) {
    this.expired.push(sessionId);
  }
}

@Injectable()
class BroadcastHandlers {
  readonly heard: string[] = [];

  @OnSessionEvent(SessionEvent, { broadcast: true })
  hear({ id }: SessionEvent) {
    this.heard.push(id);
  }
}

/** What the services do not let their users run, as docs/works-with.md cites it. */
const ELASTICACHE = 'bgrewriteaof bgsave config debug migrate replicaof save slaveof shutdown sync'.split(' ');
const RESTRICTED = {
  ElastiCache: ELASTICACHE,
  MemoryDB: [...ELASTICACHE, 'acl', 'module', 'psync', 'cluster'],
  Memorystore:
    'acl bgrewriteaof bgsave client cluster command config debug lastsave migrate monitor object replicaof save'
      .split(' ')
      .concat('shutdown'),
  'Redis Cloud': ['acl', 'asking', 'cluster', 'migrate', 'move'],
};
/** Not needed anywhere: the library sends the text of a script once on each connection, and its hash from then on. */
const UNUSED = [
  'script',
  'function',
  'fcall',
  'eval_ro',
  'keys',
  'flushall',
  'flushdb',
  'multi',
  'exec',
  'watch',
  'memory',
];

const NEVER = { cron: '0 0 0 29 2 *' };
const NO_NOTIFICATIONS =
  /^warn Redis does not announce expired sessions; the cleanup job will find them: CONFIG is not allowed \(.*unknown command/;

let server: RedisServer;
const running: EventInstance[] = [];
beforeEach(() => {
  EventInstance.log.lines.length = 0;
});
afterEach(async () => {
  await Promise.all(running.splice(0).map((instance) => instance.stop()));
  await server.stop();
});

/** A server that does not know some commands. */
async function startWithout(commands: readonly string[], args: readonly string[] = []): Promise<void> {
  const renamed = commands.flatMap((command) => ['--rename-command', command, '']);
  server = await RedisServer.start({ args: [...renamed, ...args] });
}

async function start(redis: RedisSessionModuleOptions = {}) {
  const { url } = server;
  const providers = [Handlers, BroadcastHandlers];
  const instance = await EventInstance.start({ redis: { url, cleanup: NEVER, ...redis }, providers });
  running.push(instance);
  return <T>(token: { readonly prototype: T }) => instance.module.get<T>(token as never, { strict: false });
}

type Get = Awaited<ReturnType<typeof start>>;

async function stored(get: Get, change: (session: Session) => void = () => undefined): Promise<Session> {
  const session = get(IndexedSessionRepository).createSession();
  session.setAttribute('cart', ['apple']);
  change(session);
  await session.save();
  return session;
}

/** All that an application can do with sessions, and all that happens in the background. */
async function live(get: Get): Promise<void> {
  const session = await stored(get, (created) => (created.principalName = 'ann'));
  session.changeSessionId();
  await session.save();
  await session.updateAttribute<string[]>('cart', (cart = []) => [...cart, 'pear']);
  const [found] = await get(IndexedSessionRepository).findByPrincipalName('ann');
  expect(found!.getAttribute('cart')).toEqual(['apple', 'pear']);
  expect(await get(Sessions).endAll('ann')).toBe(1);
  const groups = get(SessionEventGroups);
  await eventually(async () => expect(await groups.deadLetters()).toHaveLength(1));
  get(Handlers).fails = false;
  expect(await groups.replayAll()).toBe(1);
  await eventually(() => expect(get(Handlers).heard).toHaveLength(1));
  await groups.create('another');
  await groups.remove('another');
  const { id } = await stored(get, (created) => (created.maxInactiveInterval = 1));
  const sweeper = get(SessionExpirationSweeper);
  // The cleanup job may be faster.
  await eventually(async () => {
    await sweeper.runOnce({ ahead: 3_600_000 });
    expect(get(Handlers).expired).toEqual([id]);
  });
  const other = await stored(get);
  await get(Sessions).endEverySession();
  await eventually(async () => expect(await get(IndexedSessionRepository).findById(other.id)).toBeNull());
  await trimOnce(get(EventTrimmer));
  await eventually(() => expect(get(BroadcastHandlers).heard.length).toBeGreaterThanOrEqual(6));
}

async function livesWithout(commands: readonly string[]): Promise<void> {
  await startWithout(commands);
  await live(await start({ events: { attempts: 1 } }));
  const lines = EventInstance.log.lines.filter((line) => !/on purpose|dead letter/.test(line));
  expect(lines).toEqual(commands.includes('config') ? [expect.stringMatching(NO_NOTIFICATIONS)] : []);
}

it.each(Object.entries(RESTRICTED))(
  'everything works without the commands that %s restricts; without CONFIG, one warning says what is noticed later',
  (_, commands) => livesWithout(commands),
);

it('everything works without the commands that the library never sends, such as SCRIPT and FUNCTION', () =>
  livesWithout(UNUSED));

it('without CONFIG, key events arrive where the flags are set on the server', async () => {
  await startWithout(['config'], ['--notify-keyspace-events', 'Kx']);
  const get = await start();
  const { id } = await stored(get, (created) => (created.maxInactiveInterval = 1));
  await eventually(() => expect(get(Handlers).expired).toEqual([id]));
  expect(EventInstance.log.lines).toEqual([]);
});

it("with notifications: 'off', nothing asks for CONFIG or for a channel, and the cleanup job finds what expires", async () => {
  await startWithout(['config', 'subscribe', 'psubscribe']);
  const get = await start({ notifications: 'off' });
  const { id } = await stored(get, (created) => (created.maxInactiveInterval = 1));
  await eventually(async () =>
    expect((await get(SessionExpirationSweeper).runOnce({ ahead: 3_600_000 })).claimed).toBe(1),
  );
  await eventually(() => expect(get(Handlers).expired).toEqual([id]));
  expect(EventInstance.log.lines).toEqual([]);
});

it('a server that evicts by default is one warning', async () => {
  await startWithout(['config'], ['--maxmemory-policy', 'volatile-lru']);
  await start({ notifications: 'off' });
  expect(EventInstance.log.lines).toEqual([expect.stringContaining('its maxmemory-policy is volatile-lru')]);
});

it('a service that does not know INFO cannot be used', async () => {
  await startWithout(['info']);
  const get = await start({ notifications: 'off', commandTimeout: '300ms' });
  await expect(stored(get)).rejects.toMatchObject({ name: 'SessionStoreError' });
  expect(EventInstance.log.lines[0]).toMatch(/^error Redis cannot be reached, retrying: .*unknown command 'info'/);
});

it('with several partitions, no command has keys of two slots: one endpoint may lead to several shards', async () => {
  const bus = await freePort();
  await startWithout([], ['--cluster-enabled', 'yes', '--cluster-port', `${bus}`]);
  const admin = new Redis(server.url);
  await admin.cluster('ADDSLOTSRANGE' as never, 0, 16_383);
  await eventually(async () => expect(await admin.cluster('INFO')).toContain('cluster_state:ok'));
  admin.disconnect();
  await live(await start({ partitions: 16, events: { attempts: 1 } }));
  expect(EventInstance.log.lines.filter((line) => !/on purpose|dead letter/.test(line))).toEqual([]);
});

it('each script has a key', async () => {
  await startWithout([]);
  const monitor = await monitorOf(new Redis(server.url, { lazyConnect: true }));
  const withoutKeys: string[][] = [];
  let calls = 0;
  monitor.on('monitor', (_time: string, [name = '', ...args]: string[]) => {
    if (!/^eval(sha)?$/i.test(name)) return;
    calls++;
    if (Number(args[1]) === 0) withoutKeys.push(args);
  });
  try {
    await live(await start({ events: { attempts: 1 } }));
  } finally {
    monitor.disconnect();
  }
  expect(calls).toBeGreaterThan(10);
  expect(withoutKeys).toEqual([]);
});
