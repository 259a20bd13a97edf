import { Injectable, type Provider, type Type } from '@nestjs/common';
import {
  IndexedSessionRepository,
  OnSessionEvent,
  PRINCIPAL_NAME_INDEX_NAME,
  type Session,
  SessionDeletedEvent,
  SessionEvent,
  SessionExpiredEvent,
  Sessions,
} from '@nest-session/core';
import { ForeignSessions } from '@nest-session/core/internal';
import { type RedisSessionModuleOptions, SessionEventGroups, SessionExpirationSweeper } from '@nest-session/redis';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually, freePort, RedisServer } from '@nest-session/testing';
import { Redis } from 'ioredis';
import { resolveRedisSessionOptions } from '../../src/configuration/redis-session.options.js';
import { EventTrimmer } from '../../../redis-events/src/delivery/event.trimmer.js';
import { GroupLagReader } from '../../../redis-events/src/delivery/group-states.js';
import { SessionPartitions } from '../../src/keys/session-partitions.js';
import { ALL_SCRIPTS } from '../../../redis-events/test/support/all.scripts.js';
import { repartition } from '../../../session-cli/src/index.js';
import { verify } from '../../../session-cli/src/verification/verify.js';
import { calledBy, scriptsThatRan } from '../../../redis-events/test/support/called.commands.js';
import { documentedCommands, type RightsName } from '../support/documented.rights.js';
import { EventInstance } from '../support/event-instance.fixture.js';
import { contentOf, fill } from '../support/filled.store.js';
import { LineRecorder } from '../support/line.recorder.js';
import { WatchedRights } from '../support/watched-rights.js';
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

  @OnSessionEvent(SessionExpiredEvent)
  remind({ id }: SessionExpiredEvent) {
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

const NEVER = { cron: '0 0 0 29 2 *' };
const ONLY_REQUESTS = { notifications: 'off', events: { consume: false } } as const;

/** The scripts that each kind of process may run. */
const SCRIPTS: Partial<Record<RightsName, string[]>> = {
  'every process': [
    ...ALL_SCRIPTS.filter((name) => /^(session|limits|namespace)\//.test(name)),
    'stream/remove-consumer',
    'stream/trim-events',
    'stream/trim-dead-letters',
    'stream/look-at-groups',
  ],
  handlers: [
    'stream/create-group',
    ...['register-handlers', 'pick-up-events', 'acknowledge-events', 'retry-or-dead-letter'].map(ofDelivery),
    ...['renew-lease', 'release-events', 'want-events'].map(ofDelivery),
  ],
  'broadcast handlers': ['delivery/want-broadcast', 'stream/read-events'],
  groups: [
    'stream/count-events',
    'stream/create-group',
    'stream/remove-group',
    'stream/replay-dead-letter',
    'stream/discard-dead-letter',
  ],
  repartitioning: ['verification/verify-letters'],
  // Not those that look at deadlines.
  verification: ALL_SCRIPTS.filter((name) => /^verification\/verify-(?!deadlines|due)/.test(name)),
};

let server: RedisServer;
let admin: Redis;
let rights: WatchedRights;
let database: number;
const running: EventInstance[] = [];
beforeAll(async () => {
  server = await RedisServer.start({ args: ['--repl-diskless-sync-delay', '0'] });
  admin = new Redis(server.url);
  rights = await WatchedRights.watch(admin, server.url);
});
beforeEach(async () => {
  database = 0;
  rights.sent.clear();
  await admin.flushall();
  await admin.config('SET', 'notify-keyspace-events', '');
  EventInstance.log.lines.length = 0;
});
afterEach(() => Promise.all([...running].map(stop)));
afterAll(async () => {
  rights.stop();
  admin.disconnect();
  await server.stop();
});

async function start(redis: RedisSessionModuleOptions, providers: Provider[] = []) {
  const url = `redis://app:a-long-secret@127.0.0.1:${server.port}/${database}`;
  const instance = await EventInstance.start({ redis: { url, cleanup: NEVER, ...redis }, providers });
  running.push(instance);
  const get = <T>(token: { readonly prototype: T }) => instance.module.get<T>(token as Type<T>, { strict: false });
  return { get, stop: () => stop(instance) };
}

async function stop(instance: EventInstance): Promise<void> {
  running.splice(running.indexOf(instance), 1);
  await instance.stop();
}

type Instance = Awaited<ReturnType<typeof start>>;

async function stored({ get }: Instance, change: (session: Session) => void = () => undefined) {
  const session = get(IndexedSessionRepository).createSession();
  session.setAttribute('cart', ['apple']);
  change(session);
  await session.save();
  return session;
}

async function storedAndEnded(instance: Instance) {
  const session = await stored(instance);
  session.invalidate();
  await session.save();
}

/** Ends by its idle timeout, without a key event unless there are notifications. */
const storedBriefly = (instance: Instance) => stored(instance, (session) => (session.maxInactiveInterval = 1));

/** All that requests do with sessions, and the background work of every instance, with handlers or without. */
async function serve(): Promise<void> {
  const idle = await start({ notifications: 'off' });
  const instance = await start(ONLY_REQUESTS);
  const repository = instance.get(IndexedSessionRepository);
  const session = await stored(instance, (created) => {
    created.setAttribute('visits', 1);
    created.principalName = 'ann';
  });
  session.changeSessionId();
  session.removeAttribute('visits');
  session.maxInactiveInterval = 'never';
  await session.save();
  await session.updateAttribute<string[]>('cart', (cart = []) => [...cart, 'pear']);
  session.principalName = 'bob';
  session.maxInactiveInterval = 60;
  session.absoluteTimeout = 3600;
  await session.save();
  const [found] = await repository.findByPrincipalName('bob');
  expect(await repository.countByIndex(PRINCIPAL_NAME_INDEX_NAME, 'bob')).toBe(1);
  for await (const { id } of repository.listByIndex(PRINCIPAL_NAME_INDEX_NAME, 'bob')) expect(id).toBe(session.id);
  expect(await repository.deleteByIndex(PRINCIPAL_NAME_INDEX_NAME, 'bob', [session.id])).toBe(0);
  expect(found!.getAttribute('cart')).toEqual(['apple', 'pear']);
  session.absoluteTimeout = 'never';
  await session.save();
  await repository.touch(found!);
  const others = Array.from({ length: 20 }, () => repository.createSession().id);
  expect((await repository.findByIds([...others, session.id])).at(-1)?.id).toBe(session.id);
  found!.invalidate();
  await found!.save();

  const { id } = await stored(instance);
  await instance.get(Sessions).endEverySession();
  await eventually(async () => expect(await admin.exists(`nest:session:sessions:expires:${id}`)).toBe(0));
  await storedBriefly(instance);
  const [minute] = await admin.zrange('nest:session:expirations', '0', '0');
  await admin.set(`nest:session:expirations:${minute}`, 'foreign');
  // Another process has handlers, and nobody is there to run them.
  await admin.xgroup('CREATE', 'nest:session:events', 'others', '0');
  await admin.xgroup('CREATECONSUMER', 'nest:session:events', 'others', 'dead');
  await instance.get(SessionExpirationSweeper).runOnce({ ahead: 3_600_000 });
  await trimOnce(instance.get(EventTrimmer));
  // For a health check.
  expect(await instance.get(GroupLagReader).read()).toMatchObject([{ name: 'others' }]);
  await Promise.all([idle.stop(), instance.stop()]);
}

/** An event that becomes a dead letter, and one that is handled. */
async function handle(): Promise<void> {
  const instance = await start({ notifications: 'off', events: { attempts: 2 } }, [Handlers]);
  const handlers = instance.get(Handlers);
  await storedAndEnded(instance);
  await eventually(async () => expect(await admin.xlen('nest:session:events:dead')).toBe(1));
  handlers.fails = false;
  await storedAndEnded(instance);
  await eventually(() => expect(handlers.heard).toHaveLength(1));
  await instance.stop();
}

/** The same with several partitions, and the end of every session. */
async function handleInPartitions(): Promise<void> {
  const instance = await start({ notifications: 'off', partitions: 4 }, [Handlers]);
  instance.get(Handlers).fails = false;
  await eventually(async () => expect(String(await admin.client('LIST'))).toContain('ssub=4'));
  await storedAndEnded(instance);
  await eventually(() => expect(instance.get(Handlers).heard).toHaveLength(1));
  await instance.get(Sessions).endEverySession();
  await eventually(() => expect(rights.sent).toContain('ping'));
  await instance.stop();
}

async function broadcast(): Promise<void> {
  const instance = await start(ONLY_REQUESTS, [BroadcastHandlers]);
  await storedAndEnded(instance);
  await eventually(() => expect(instance.get(BroadcastHandlers).heard).toHaveLength(2));
  await instance.stop();
}

async function operateGroups(): Promise<void> {
  const instance = await start({ notifications: 'off', events: { attempts: 1 } }, [Handlers]);
  const groups = instance.get(SessionEventGroups);
  await storedAndEnded(instance);
  await eventually(async () => expect(await groups.deadLetters()).toHaveLength(1));
  instance.get(Handlers).fails = false;
  expect(await groups.replayAll()).toBe(1);
  await eventually(() => expect(instance.get(Handlers).heard).toHaveLength(1));
  await groups.create('another');
  expect((await groups.list()).map(({ name }) => name)).toEqual(['another', 'default']);
  await groups.remove('another');
  await admin.xadd('nest:session:events:dead', '*', 'member', 'foreign');
  expect(await groups.discardAll()).toBe(1);
  await instance.stop();
}

/** An end that only a notification can make known. */
async function hearOfExpiry(): Promise<void> {
  const instance = await start({ events: { consume: false } });
  const { id } = await storedBriefly(instance);
  await eventually(async () => expect(await admin.hget(`nest:session:sessions:${id}`, 'ended')).toBe('expired'));
  await instance.stop();
}

async function useAnotherDatabase(): Promise<void> {
  database = 3;
  const instance = await start(ONLY_REQUESTS);
  const { id } = await stored(instance);
  await instance.stop();
  const there = new Redis(server.url, { db: 3 });
  expect(await there.exists(`nest:session:sessions:${id}`)).toBe(1);
  there.disconnect();
}

async function takeOver(): Promise<void> {
  await admin.set('sess:old', '{}', 'EX', 60);
  const instance = await start(ONLY_REQUESTS);
  const id = 'i'.repeat(43);
  const read = () => ({ attributes: new Map(), principalName: 'ann' });
  await instance.get(ForeignSessions).move('sess:old', id, read);
  expect(await admin.exists('sess:old', `nest:session:sessions:${id}`)).toBe(1);
  await admin.set('sess:other', '{}', 'EX', 60);
  await instance.get(ForeignSessions).end('sess:other', 'j'.repeat(43), read);
  expect(await admin.exists('sess:other')).toBe(0);
  await instance.stop();
}

/** The command, while no instance is alive. */
async function moveToPartitions(): Promise<void> {
  await fill(admin, new SessionPartitions('nest:session'), 'buckets');
  await rights.forgetCalls();
  const url = `redis://app:a-long-secret@127.0.0.1:${server.port}/${database}`;
  expect((await repartition({ url }, { to: 4 })).moved).toBeGreaterThan(0);
  await contentOf(admin, new SessionPartitions('nest:session', 4));
}

/** The command, beside nobody. */
async function verifyAll(): Promise<void> {
  const partitions = new SessionPartitions('nest:session');
  await fill(admin, partitions, 'buckets');
  await admin.zadd(partitions.all[0]!.ends, 1, 'a'.repeat(43));
  await rights.forgetCalls();
  const url = `redis://app:a-long-secret@127.0.0.1:${server.port}/${database}`;
  const client = new Redis(url);
  try {
    const { findings, left } = await verify(
      { client, partitions, options: resolveRedisSessionOptions({}) },
      { repair: true },
    );
    expect(findings).not.toEqual([]);
    expect(left).toEqual([]);
  } finally {
    client.disconnect();
  }
}

/** A change that succeeds when a replica has it. */
async function waitForReplica(): Promise<void> {
  const replica = await RedisServer.start({ args: ['--replicaof', `127.0.0.1 ${server.port}`] });
  await eventually(async () => expect(await admin.info('replication')).toContain('state=online'), { timeout: 20_000 });
  // What the replica has sent.
  rights.sent.clear();
  const instance = await start({ ...ONLY_REQUESTS, replicas: 1 });
  try {
    await stored(instance);
  } finally {
    await instance.stop();
    await replica.stop();
  }
}

function ofDelivery(name: string): string {
  return `delivery/${name}`;
}

/** How often Redis denied a command. */
async function timesDenied(command: string): Promise<number> {
  const entries = (await admin.acl('LOG')) as unknown[][];
  const counts = entries.filter((entry) => entry.includes(command)).map((entry) => entry[entry.indexOf('count') + 1]);
  return counts.reduce<number>((sum, count) => sum + Number(count), 0);
}

const ALONE = ['every process'] as const;

/** Without the rights that every process has, unless it is about those. */
function beyondBase(rights: readonly RightsName[], commands: readonly string[]): string[] {
  const base = rights.length === 1 ? [] : documentedCommands(ALONE);
  return commands.filter((name) => !base.includes(name)).toSorted();
}

describe.each<{ what: string; rights: RightsName[]; live: () => Promise<void> }>([
  { what: 'that only serves requests', rights: [...ALONE], live: serve },
  { what: 'with handlers', rights: [...ALONE, 'handlers'], live: handle },
  {
    what: 'with handlers in several partitions',
    rights: [...ALONE, 'handlers', 'partitions'],
    live: handleInPartitions,
  },
  { what: 'with broadcast handlers', rights: [...ALONE, 'broadcast handlers'], live: broadcast },
  { what: 'that uses SessionEventGroups', rights: [...ALONE, 'handlers', 'groups'], live: operateGroups },
  { what: 'that sets the flags for notifications', rights: [...ALONE, 'notifications', 'flags'], live: hearOfExpiry },
  { what: 'in another database', rights: [...ALONE, 'database'], live: useAnotherDatabase },
  {
    what: 'that moves sessions to other partitions',
    rights: [...ALONE, 'handlers', 'repartitioning'],
    live: moveToPartitions,
  },
  { what: 'that verifies the data and mends it', rights: [...ALONE, 'verification'], live: verifyAll },
  { what: 'whose changes wait for replicas', rights: [...ALONE, 'replicas'], live: waitForReplica },
  { what: 'that takes sessions of express-session over', rights: [...ALONE, 'takeover'], live: takeOver },
])('a process $what', ({ rights: names, live }) => {
  it('needs all documented rights and no others', async () => {
    await rights.grant(names);
    await live();
    expect(await rights.denied()).toEqual([]);
    const scripts = names.flatMap((name) => SCRIPTS[name] ?? []);
    expect(scripts).toEqual(expect.arrayContaining(await scriptsThatRan(admin)));
    // What it sends in a test that does all there is to do, and what its scripts call in cases that are rare.
    const needed = new Set([...(await rights.commandsSent()), ...calledBy(scripts)]);
    // The scripts do without in a namespace with one partition.
    if (!names.includes('partitions')) needed.delete('spublish');
    expect(beyondBase(names, [...needed])).toEqual(beyondBase(names, documentedCommands(names)));
  });
});

describe('several partitions', () => {
  const live = async (without: string) => {
    await rights.grant([...ALONE, 'handlers', 'partitions'], [without]);
    const instance = await start({ notifications: 'off', partitions: 4 }, [Handlers]);
    instance.get(Handlers).fails = false;
    await storedAndEnded(instance);
    await eventually(() => expect(instance.get(Handlers).heard).toHaveLength(1));
    await instance.stop();
  };

  it('without the right to subscribe, an instance looks for events, and logs one line', async () => {
    await live('ssubscribe');
    expect(EventInstance.log.lines).toEqual([expect.stringMatching(/^warn New events are noticed later: .*NOPERM/)]);
  });

  it('without the right to publish, a change of a session is still whole', async () => {
    await rights.grant([...ALONE, 'handlers', 'partitions'], ['spublish']);
    const instance = await start({ notifications: 'off', partitions: 4 });
    const { id } = await stored(instance);
    const found = await instance.get(IndexedSessionRepository).findById(id);
    found!.invalidate();
    await found!.save();
    expect(await instance.get(IndexedSessionRepository).findById(id)).toBeFalsy();
    await expect(instance.get(Sessions).endEverySession()).rejects.toThrow('NOPERM');
  });
});

describe('notifications', () => {
  it('whose flags the operator has set need no CONFIG, which Redis denies without a line in the log', async () => {
    await admin.config('SET', 'notify-keyspace-events', 'Kx');
    await rights.grant([...ALONE, 'notifications']);
    await hearOfExpiry();
    expect(await rights.denied()).toEqual(['config|get']);
    expect(EventInstance.log.lines).toEqual([]);
  });

  it('of all keys, which the operator has switched on for others, are enough with the rights for them', async () => {
    await admin.config('SET', 'notify-keyspace-events', 'Ex');
    await rights.grant([...ALONE, 'notifications', 'all keys']);
    await hearOfExpiry();
    expect(new Set(await rights.denied())).toEqual(new Set(['config|get']));
  });

  it.each<{ what: string; names: RightsName[]; and?: string[]; reason: RegExp }>([
    {
      what: 'that nobody may switch on',
      names: ['notifications'],
      reason: /CONFIG is not allowed \(.*"Kx" on the server/,
    },
    {
      what: 'without the channel',
      names: ['flags'],
      and: ['+psubscribe', '+ping'],
      reason: /the channel is not allowed/,
    },
    // Redis compares the names of patterns, not what they match.
    {
      what: 'with a wider channel',
      names: ['flags'],
      and: ['+@pubsub', '&__key*'],
      reason: /the channel is not allowed/,
    },
  ])('$what are one warning, and the cleanup job finds what expires', async ({ names, and = [], reason }) => {
    await rights.grant([...ALONE, ...names]);
    await admin.acl('SETUSER', 'app', ...and);
    const instance = await start({ events: { consume: false } });
    const warning = /^warn Redis does not announce expired sessions; the cleanup job will find them: (.*)/;
    await eventually(() => expect(EventInstance.log.matching(warning)).toEqual([expect.stringMatching(reason)]));
    const { id } = await storedBriefly(instance);
    await eventually(async () => expect(await admin.exists(`nest:session:sessions:expires:${id}`)).toBe(0));
    await instance.get(SessionExpirationSweeper).runOnce({ ahead: 60_000 });
    expect(await admin.hget(`nest:session:sessions:${id}`, 'ended')).toBe('expired');
    expect(EventInstance.log.lines).toHaveLength(1);
    await instance.stop();
  });
});

describe('without the right', () => {
  it('to INFO there is no warning about eviction', async () => {
    await admin.config('SET', 'maxmemory-policy', 'allkeys-lru');
    const warnings = async (without: string[]) => {
      await rights.grant(ALONE, without);
      const instance = await start(ONLY_REQUESTS);
      await stored(instance);
      await instance.stop();
      return EventInstance.log.lines.splice(0);
    };
    const print = console.warn;
    const printed: string[] = [];
    console.warn = (line: string) => void printed.push(line);
    try {
      expect(await warnings([])).toEqual([expect.stringContaining('its maxmemory-policy is allkeys-lru')]);
      expect(printed).toEqual([]);
      expect(await warnings(['info'])).toEqual([]);
      expect(printed).toContainEqual(expect.stringContaining('Skipping the ready check because INFO command fails'));
    } finally {
      console.warn = print;
      await admin.config('SET', 'maxmemory-policy', 'noeviction');
    }
  });

  it('to CLIENT SETNAME the connections have no names', async () => {
    await rights.grant(ALONE, ['client|setname']);
    const instance = await start(ONLY_REQUESTS);
    await stored(instance);
    const clients = String(await admin.client('LIST')).split('\n');
    const own = clients.filter((client) => client.includes('user=app'));
    expect(own).toEqual(own.map(() => expect.stringContaining(' name= ') as string));
    await instance.stop();
  });

  it.each([
    { what: 'to HMGET', rules: ['-hmget'] },
    { what: 'to HSETNX in a new namespace', rules: ['-hsetnx'] },
    { what: 'to the keys of the namespace', rules: ['resetkeys', '~others:*'] },
  ])('$what, the application does not start, and says what to do', async ({ rules }) => {
    await rights.grant(ALONE);
    await admin.acl('SETUSER', 'app', ...rules);
    await expect(start(ONLY_REQUESTS)).rejects.toMatchObject({
      name: 'SessionStoreError',
      message: expect.stringMatching(
        /^RedisSessionModule cannot start: Redis failed: NOPERM .* Grant this user of Redis the rights of the page "Securing Redis" of the documentation$/,
      ) as string,
    });
  });

  it('to HMGET, an application that started without Redis logs what to do once Redis is there', async () => {
    const port = await freePort();
    const url = `redis://app:a-long-secret@127.0.0.1:${port}`;
    const instance = await start({ ...ONLY_REQUESTS, url, commandTimeout: '200ms' });
    const args = ['--user', 'app', 'on', '>a-long-secret', '~*', '+info', '+client'];
    const redis = await RedisServer.start({ port, args });
    const line = /^error The check of the data in Redis failed: .*NOPERM .* Grant this user of Redis the rights of/;
    await eventually(() => expect(EventInstance.log.matching(line)).toHaveLength(1));
    await instance.stop();
    await redis.stop();
  });

  it('to anything beyond a look at the format of the data, the application starts', async () => {
    await rights.grant(ALONE);
    await (await start(ONLY_REQUESTS)).stop();
    await admin.acl('SETUSER', 'app', '-@all', '+hmget', '+info');
    await (await start({})).stop();
  });

  it('to a command of a script, requests fail, and what the script wrote before stays', async () => {
    await rights.grant(ALONE, ['zadd']);
    const instance = await start(ONLY_REQUESTS);
    await expect(stored(instance)).rejects.toMatchObject({
      name: 'SessionStoreError',
      message: expect.stringMatching(
        /\. Grant this user of Redis the rights of the page "Securing Redis" of the documentation$/,
      ) as string,
      // Redis 7.0, and its later versions and Valkey.
      cause: { message: expect.stringMatching(/can't run this command|no permissions to run the 'zadd'/) as string },
    });
    expect(await admin.keys('nest:session:sessions:*')).toHaveLength(2);
    await instance.stop();
  });

  it.each<{ what: string; handlers: Type; lines: string; command: string }>([
    { what: 'to read the events of a group', handlers: Handlers, lines: 'Events', command: 'xgroup|create' },
    {
      what: 'to read events without a group',
      handlers: BroadcastHandlers,
      lines: 'Broadcast events',
      command: 'xread',
    },
  ])('$what, its handlers hear of nothing, with one line in the log', async ({ handlers, lines, command }) => {
    await rights.grant(ALONE);
    const instance = await start({ notifications: 'off' }, [handlers]);
    await storedAndEnded(instance);
    await eventually(async () => expect(await timesDenied(command)).toBeGreaterThan(4));
    const line = new RegExp(`^error ${lines} cannot be read, retrying: ReplyError: .* Grant this user of Redis `);
    expect(EventInstance.log.lines).toEqual([expect.stringMatching(line)]);
    await instance.stop();
  });

  it('to read events without a group, another line says when that is over', async () => {
    await rights.grant(ALONE);
    const instance = await start(ONLY_REQUESTS, [BroadcastHandlers]);
    await eventually(async () => expect(await timesDenied('xread')).toBeGreaterThan(2));
    const log = new LineRecorder().install();
    await admin.acl('SETUSER', 'app', '+xread');
    await storedAndEnded(instance);
    await eventually(() => expect(instance.get(BroadcastHandlers).heard).toHaveLength(2));
    await eventually(() => expect(log.lines).toEqual([expect.stringMatching(/^Broadcast events are read again /)]));
    await instance.stop();
  });

  it.each(['dump', 'restore', 'zscan', 'xclaim', 'xgroup|create'])(
    'to %s, a move to other partitions ends before it has begun, and says what to do',
    async (command) => {
      await rights.grant([...ALONE, 'handlers', 'repartitioning'], [command]);
      const partitions = new SessionPartitions('nest:session');
      await fill(admin, partitions, 'buckets');
      const content = await contentOf(admin, partitions);
      const url = `redis://app:a-long-secret@127.0.0.1:${server.port}/${database}`;
      await expect(repartition({ url }, { to: 4 })).rejects.toMatchObject({
        name: 'SessionStoreError',
        message: expect.stringMatching(/^Redis failed: NOPERM .*\. Grant this user of Redis the rights of /) as string,
      });
      expect(await contentOf(admin, partitions)).toEqual(content);
      await (await start(ONLY_REQUESTS)).stop();
    },
  );

  it('to WAIT, a change with the option `replicas` fails, and stands', async () => {
    await rights.grant(ALONE);
    await expect(waitForReplica()).rejects.toMatchObject({
      name: 'SessionStoreError',
      message: expect.stringMatching(/^Redis cannot wait for replicas: NOPERM .*'wait'/) as string,
    });
    expect(await admin.keys('nest:session:sessions:expires:*')).toHaveLength(1);
  });

  it('to the keys of express-session, a request that brings an old session fails', async () => {
    await rights.grant(ALONE);
    await expect(takeOver()).rejects.toMatchObject({ name: 'SessionStoreError' });
    expect(await admin.get('sess:old')).toBe('{}');
  });

  it('to write other keys beside those of express-session, they stay as they are', async () => {
    await rights.grant([...ALONE, 'takeover']);
    const client = new Redis(server.url, { username: 'app', password: 'a-long-secret' });
    for (const command of [client.set('sess:old', 'forged'), client.set('others', '1'), client.get('others')]) {
      await expect(command).rejects.toThrow('NOPERM');
    }
    client.disconnect();
  });

  it('to SELECT, nothing is stored in another database than the one of the url', async () => {
    database = 3;
    await rights.grant(ALONE);
    const instance = await start({ ...ONLY_REQUESTS, commandTimeout: '200ms' });
    await expect(stored(instance)).rejects.toMatchObject({ name: 'SessionStoreError' });
    const line = /^error Redis cannot be reached, retrying: .*NOPERM.*select/;
    expect(EventInstance.log.lines).toEqual([
      expect.stringMatching(line),
      expect.stringMatching(/^error The session store failed/),
    ]);
    // The first connections have failed, and some that followed.
    await eventually(async () => expect((await rights.denied()).length).toBeGreaterThan(0));
    expect(await admin.dbsize()).toBe(0);
    await instance.stop();
  });
});
