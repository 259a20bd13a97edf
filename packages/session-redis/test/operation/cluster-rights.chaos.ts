import { Injectable, type Provider } from '@nestjs/common';
import {
  IndexedSessionRepository,
  OnSessionEvent,
  type Session,
  SessionDeletedEvent,
  SessionEvent,
  Sessions,
} from '@nest-session/core';
import { type RedisSessionModuleOptions, SessionEventGroups, SessionExpirationSweeper } from '@nest-session/redis';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually, RedisCluster, type RedisServer } from '@nest-session/testing';
import slotOf from 'cluster-key-slot';
import { Redis } from 'ioredis';
import { EventTrimmer } from '../../../redis-events/src/delivery/event.trimmer.js';
import { SessionPartitions } from '../../src/keys/session-partitions.js';
import { commandStats } from '../support/command.stats.js';
import { documentedCommands, documentedLines, type RightsName } from '../support/documented.rights.js';
import { EventInstance } from '../support/event-instance.fixture.js';
import { trimOnce } from '../support/trim-once.js';

LeakGuard.install();

@Injectable()
class Handlers {
  /** Before the first retry. */
  fails = true;
  readonly heard: string[] = [];

  @OnSessionEvent(SessionDeletedEvent)
  handle({ id }: SessionDeletedEvent) {
    if (this.fails) throw new Error('on purpose');
    this.heard.push(id);
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

const LONG = 60_000;
const ONLY_REQUESTS = { notifications: 'off', events: { consume: false } } as const;
const EVERY_PROCESS = ['every process', 'partitions', 'cluster'] as const;
const ALL_KINDS: RightsName[] = [...EVERY_PROCESS, 'handlers', 'broadcast handlers', 'groups'];
const SLOT = slotOf(new SessionPartitions('nest:session', 64).all[0]!.prefix);

let cluster: RedisCluster;
let admins: Map<RedisServer, Redis>;
const running: EventInstance[] = [];
beforeAll(async () => {
  cluster = await RedisCluster.start();
  admins = new Map(cluster.nodes.map((node) => [node, new Redis(node.url)]));
}, LONG);
beforeEach(async () => {
  for (const admin of admins.values()) await admin.flushall();
  EventInstance.log.lines.length = 0;
});
afterEach(() => Promise.all(running.splice(0).map((instance) => instance.stop())), LONG);
afterAll(async () => {
  for (const admin of admins.values()) admin.disconnect();
  await cluster.stop();
});

async function grant(names: readonly RightsName[], without: readonly string[] = []): Promise<void> {
  for (const admin of admins.values()) {
    for (const line of documentedLines(names)) await admin.acl('SETUSER', 'app', ...line);
    await admin.acl('SETUSER', 'app', ...without.map((command) => `-${command}`));
    await admin.script('FLUSH');
    await admin.acl('LOG', 'RESET');
    await admin.config('RESETSTAT');
  }
}

async function start(redis: RedisSessionModuleOptions = {}, providers: Provider[] = []) {
  const login = { username: 'app', password: 'a-long-secret' };
  const { module } = await begin({ cluster: { nodes: cluster.addresses }, ...login, ...redis }, providers);
  return <T>(token: { readonly prototype: T }) => module.get<T>(token as never, { strict: false });
}

async function begin(redis: RedisSessionModuleOptions, providers: Provider[]): Promise<EventInstance> {
  const instance = await EventInstance.start({ redis: { cleanup: { cron: '0 0 0 29 2 *' }, ...redis }, providers });
  running.push(instance);
  return instance;
}

type Get = Awaited<ReturnType<typeof start>>;

async function stored(get: Get, change: (session: Session) => void = () => undefined): Promise<Session> {
  const session = get(IndexedSessionRepository).createSession();
  session.setAttribute('cart', ['apple']);
  change(session);
  await session.save();
  return session;
}

async function storedAndEnded(get: Get): Promise<void> {
  const session = await stored(get);
  session.invalidate();
  await session.save();
}

/** What Redis denied, on any node. */
async function denied(): Promise<unknown[]> {
  const logs = await Promise.all([...admins.values()].map((admin) => admin.acl('LOG')));
  const entries = logs.flat() as unknown[][];
  return entries.map((entry) => entry[entry.indexOf('object') + 1]).filter((object) => object !== 'client|setinfo');
}

async function callsOf(command: string): Promise<number> {
  const stats = await Promise.all([...admins.values()].map((admin) => commandStats(admin)));
  return stats.reduce((sum, each) => sum + (each.get(command)?.calls ?? 0), 0);
}

/** Moves the slot of a partition, with a key that stays behind, so that a load meets a redirection. */
async function loadsWhileKeysMove(get: Get): Promise<void> {
  const from = await cluster.primaryOf(SLOT);
  const to = cluster.nodes.find((node) => node !== from)!;
  const [source, target] = [admins.get(from)!, admins.get(to)!];
  await target.cluster('SETSLOT', SLOT, 'IMPORTING', (await source.cluster('MYID')) as string);
  await source.cluster('SETSLOT', SLOT, 'MIGRATING', (await target.cluster('MYID')) as string);
  try {
    const { all } = new SessionPartitions('nest:session', 64);
    const ids = Array.from({ length: 2000 }, () => get(IndexedSessionRepository).createSession().id);
    const id = ids.find((each) => new SessionPartitions('nest:session', 64).of(each).prefix === all[0]!.prefix)!;
    await get(IndexedSessionRepository).findByIds([id]);
  } finally {
    await cluster.moveSlots([SLOT], to);
  }
}

it(
  'a process on a Cluster that does all there is to do needs no other rights than the documented ones',
  async () => {
    await grant(ALL_KINDS);
    const get = await start({ notifications: 'off', events: { attempts: 1 } }, [Handlers, BroadcastHandlers]);
    const session = await stored(get, (created) => (created.principalName = 'ann'));
    session.changeSessionId();
    await session.save();
    await session.updateAttribute<string[]>('cart', (cart = []) => [...cart, 'pear']);
    expect(await get(IndexedSessionRepository).findByPrincipalName('ann')).toHaveLength(1);
    expect(await get(Sessions).endAll('ann')).toBe(1);
    await storedAndEnded(get);
    const groups = get(SessionEventGroups);
    await eventually(async () => expect(await groups.deadLetters()).toHaveLength(2));
    get(Handlers).fails = false;
    expect(await groups.replayAll()).toBe(2);
    await eventually(() => expect(get(Handlers).heard).toHaveLength(2));
    await eventually(() => expect(get(BroadcastHandlers).heard.length).toBeGreaterThanOrEqual(5));
    await groups.create('another');
    expect((await groups.list()).map(({ name }) => name)).toEqual(['another', 'default']);
    await groups.remove('another');
    await stored(get);
    await get(Sessions).endEverySession();
    await stored(get, (created) => (created.maxInactiveInterval = 1));
    await get(SessionExpirationSweeper).runOnce({ ahead: 3_600_000 });
    await trimOnce(get(EventTrimmer));
    await loadsWhileKeysMove(get);
    expect(await denied()).toEqual([]);
    const needed = documentedCommands(['cluster']);
    expect(needed.toSorted()).toEqual(['asking', 'cluster|slots']);
    for (const command of needed) expect([command, await callsOf(command)]).not.toEqual([command, 0]);
  },
  LONG,
);

it(
  'a process on a Cluster that only serves requests needs the rights of every process, and those for a Cluster',
  async () => {
    await grant(EVERY_PROCESS);
    const get = await start(ONLY_REQUESTS);
    const session = await stored(get);
    session.principalName = 'ann';
    await session.save();
    expect(await get(Sessions).endAll('ann')).toBe(1);
    await get(SessionExpirationSweeper).runOnce({ ahead: 3_600_000 });
    await trimOnce(get(EventTrimmer));
    expect(await denied()).toEqual([]);
  },
  LONG,
);

it('without the right to CLUSTER SLOTS, requests fail, and the log says why', async () => {
  await grant(EVERY_PROCESS, ['cluster|slots']);
  const get = await start({ ...ONLY_REQUESTS, commandTimeout: '300ms' });
  await expect(stored(get)).rejects.toMatchObject({ name: 'SessionStoreError' });
  expect(EventInstance.log.lines).toEqual([
    expect.stringMatching(/^error Redis cannot be reached, retrying: .*NOPERM.*slots/),
    expect.stringMatching(/^error The session store failed/),
  ]);
});

it('without the right to ASKING, loads of keys that have moved fail while the others of their slot move', async () => {
  await grant(EVERY_PROCESS, ['asking']);
  const get = await start({ ...ONLY_REQUESTS, commandTimeout: '500ms' });
  await expect(loadsWhileKeysMove(get)).rejects.toMatchObject({ name: 'SessionStoreError' });
  expect(new Set(await denied())).toEqual(new Set(['asking']));
});

it('each primary that may evict sessions is named in one warning', async () => {
  const [first, , third] = cluster.nodes as [RedisServer, RedisServer, RedisServer];
  await grant(EVERY_PROCESS);
  const set = (node: RedisServer, policy: string) => admins.get(node)!.config('SET', 'maxmemory-policy', policy);
  await set(first, 'allkeys-lru');
  await set(third, 'volatile-ttl');
  try {
    await start(ONLY_REQUESTS);
    const [line, ...others] = EventInstance.log.lines;
    expect(others).toEqual([]);
    expect(line).toContain(`allkeys-lru on 127.0.0.1:${first.port}`);
    expect(line).toContain(`volatile-ttl on 127.0.0.1:${third.port}`);
    expect(line).not.toContain('noeviction on');
  } finally {
    await set(first, 'noeviction');
    await set(third, 'noeviction');
  }
});
