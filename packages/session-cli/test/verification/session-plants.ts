import { PRINCIPAL_NAME_INDEX_NAME } from '@nest-session/core';
import type { SessionKeys } from '../../../session-redis/src/keys/session-keys.js';
import type { Rule } from '../../src/verification/rules.js';
import { hashOfValue } from '../../../session-redis/test/support/hash-of-value.js';
import { MINUTE, type Store } from '../../../session-redis/test/support/store.fixture.js';

const indexOfEve = (keys: SessionKeys) => keys.index(PRINCIPAL_NAME_INDEX_NAME, hashOfValue('eve'));

/** How a rule is broken. */
export interface Plant {
  /** What happens to the session before. */
  readonly prepare?: (store: Store, id: string) => Promise<unknown>;
  /** `id`: a live session. */
  readonly plant: (store: Store, id: string) => Promise<unknown>;
  /** What it breaks besides. */
  readonly with?: readonly Rule[];
  /** With this option alone. */
  readonly only?: 'buckets' | 'sorted-set';
  /** With several partitions alone. */
  readonly needsSeveral?: true;
  /** The repair leaves everything as it was before; or does where the store notes ends so: else they get a bucket. */
  readonly restores?: true | 'buckets';
}

const DAY = 86_400_000;
const GROUP = 'default';

const bucketOf = async (store: Store, id: string) => (await store.buckets(id))[0];

/** Takes the member of a session from where it stands. */
async function unschedule(store: Store, id: string): Promise<void> {
  const [keys, minute] = [store.keysOf(id), await bucketOf(store, id)];
  await store.client.zrem(keys.ends, id);
  if (minute === undefined) return;
  await store.client.srem(keys.bucket(minute), `expires:${id}`);
  if ((await store.client.exists(keys.bucket(minute))) === 0) await store.client.zrem(keys.bucketList, minute);
}

/** Puts a member into the bucket of a minute. */
async function schedule(store: Store, id: string, member: string, minute: number): Promise<void> {
  const keys = store.keysOf(id);
  await store.client.sadd(keys.bucket(`${minute}`), member);
  await store.client.zadd(keys.bucketList, minute, `${minute}`);
}

const end = (store: Store, id: string) => store.scripts.delete(id);

const nextHour = () => Math.ceil(Date.now() / MINUTE) * MINUTE + 60 * MINUTE;

/** Copies a session to a partition where no request finds it, with what belongs to it. */
export async function copyElsewhere(store: Store, id: string): Promise<SessionKeys> {
  const { client } = store;
  const from = store.keysOf(id);
  const to = store.partitions.all.find((keys) => keys !== from)!;
  await client.copy(from.session(id), to.session(id));
  await client.copy(from.shadow(id), to.shadow(id));
  for (const minute of await store.buckets(id)) {
    await client.sadd(to.bucket(minute), `expires:${id}`);
    await client.zadd(to.bucketList, minute, minute);
  }
  for (const keyIn of [({ ends }: SessionKeys) => ends, indexOfEve]) {
    const score = await client.zscore(keyIn(from), id);
    if (score !== null) await client.zadd(keyIn(to), score, id);
  }
  return to;
}

/** Moves it there. */
export async function misplace(store: Store, id: string): Promise<SessionKeys> {
  const keys = await copyElsewhere(store, id);
  const from = store.keysOf(id);
  await unschedule(store, id);
  await store.client.zrem(indexOfEve(from), id);
  await store.client.del(from.session(id), from.shadow(id));
  return keys;
}

/** How what is recorded of sessions breaks. */
export const SESSION_PLANTS: Partial<Record<Rule, Plant>> = {
  'wrong-type': {
    plant: async (store, id) => {
      await store.client.del(store.keysOf(id).epoch);
      await store.client.set(store.keysOf(id).epoch, 'stray');
    },
  },
  'unexpected-expiry': {
    restores: true,
    plant: (store, id) => store.client.pexpire(indexOfEve(store.keysOf(id)), DAY),
  },
  'missing-expiry': { plant: (store, id) => store.client.set(store.keysOf(id).forwardingMark(store.id(id)), id) },
  'session-misplaced': { needsSeveral: true, plant: misplace },
  'session-unreadable': {
    plant: (store, id) => store.client.hdel(store.keysOf(id).session(id), 'maxInactiveInterval'),
  },
  'session-never-ends': {
    restores: true,
    plant: persist,
  },
  'session-hash-expiry': {
    restores: true,
    plant: (store, id) => store.client.persist(store.keysOf(id).session(id)),
  },
  'end-not-scheduled': { restores: 'buckets', plant: unschedule },
  'end-scheduled-late': {
    restores: 'buckets',
    // As little as it can be: by a millisecond in the set, and by a bucket.
    plant: async (store, id) => {
      if ((await store.due(id)) !== null) return store.client.zincrby(store.keysOf(id).ends, 1, id);
      const late = Number(await bucketOf(store, id)) + MINUTE;
      await unschedule(store, id);
      await store.client.hset(store.keysOf(id).session(id), 'bucket', `${late}`);
      return schedule(store, id, `expires:${id}`, late);
    },
  },
  'index-entry-missing': {
    restores: true,
    plant: (store, id) => store.client.zrem(indexOfEve(store.keysOf(id)), id),
  },
  'ended-session-alive': {
    restores: true,
    prepare: end,
    plant: (store, id) => store.client.set(store.keysOf(id).shadow(id), '', 'EX', 1800),
  },
  'ended-session-stays': {
    restores: true,
    prepare: end,
    plant: (store, id) => store.client.persist(store.keysOf(id).session(id)),
  },
  'shadow-without-session': {
    restores: true,
    plant: (store, id) => store.client.set(store.keysOf(id).shadow(store.id(id)), '', 'EX', 1800),
  },
  'bucket-not-listed': {
    plant: async (store, id) => {
      const minute = nextHour();
      await unschedule(store, id);
      await store.client.hset(store.keysOf(id).session(id), 'bucket', `${minute - 60 * MINUTE}`);
      await store.client.sadd(store.keysOf(id).bucket(`${minute - 60 * MINUTE}`), `expires:${id}`);
    },
  },
  'end-overdue': { plant: (store, id) => store.runOutLongAgo(id) },
  'stray-member': { plant: (store, id) => schedule(store, id, 'stray', nextHour()) },
  'member-without-session': { plant: (store, id) => schedule(store, id, `expires:${store.id(id)}`, nextHour()) },
  'member-of-ended-session': {
    restores: true,
    prepare: end,
    plant: (store, id) => schedule(store, id, `expires:${id}`, nextHour()),
  },
  'member-twice': { restores: true, plant: (store, id) => schedule(store, id, `expires:${id}`, nextHour()) },
  'minute-without-bucket': {
    restores: true,
    plant: (store, id) => store.client.zadd(store.keysOf(id).bucketList, nextHour(), `${nextHour()}`),
  },
  'minute-misplaced': {
    only: 'buckets',
    restores: true,
    plant: async (store, id) => {
      const minute = await bucketOf(store, id);
      await store.client.zadd(store.keysOf(id).bucketList, Number(minute) + DAY, minute!);
    },
  },
  'index-entry-without-session': {
    restores: true,
    plant: (store, id) => store.client.zadd(indexOfEve(store.keysOf(id)), 1, store.id(id)),
  },
  'index-entry-unrecorded': {
    restores: true,
    plant: (store, id) =>
      store.client.zadd(store.keysOf(id).index(PRINCIPAL_NAME_INDEX_NAME, hashOfValue('bob')), 1, id),
  },
};

/** Takes the ends of a session from it, as a restore without times to live does. */
async function persist(store: Store, id: string): Promise<void> {
  await store.client.persist(store.keysOf(id).shadow(id));
  await store.client.persist(store.keysOf(id).session(id));
}

/** The keys that are kept for a time, at most so many milliseconds. */
const KEPT_FOR: readonly (readonly [name: string, keyIn: (keys: SessionKeys, id: string) => string, number])[] = [
  ['the mark of a rotation', (keys, id) => keys.forwardingMark(id), MINUTE],
  ['the turn to clean up', ({ cleanup }) => cleanup, 10 * MINUTE],
  ['a wish of broadcast handlers', (keys) => keys.broadcastWanted('expired'), DAY],
  ['the end of all sessions of a user', (keys) => keys.revocationMark('principal', hashOfValue('eve')), 400 * DAY],
];

/**
 * Further ways to break a rule. A namespace may have noted ends in buckets and in the sorted set, whichever the store
 * uses now.
 */
export const FURTHER_PLANTS: readonly (readonly [name: string, Plant, Rule])[] = [
  ...KEPT_FOR.map(
    ([name, keyIn, life]) =>
      [
        `missing-expiry of ${name}`,
        {
          restores: true,
          prepare: (store, id) => store.client.set(keyIn(store.keysOf(id), id), '', 'PX', life),
          plant: (store, id) => store.client.persist(keyIn(store.keysOf(id), id)),
        },
        'missing-expiry',
      ] as const satisfies (typeof FURTHER_PLANTS)[number],
  ),
  [
    'missing-expiry of a ledger',
    {
      restores: true,
      prepare: async (store) => {
        const ledger = store.keys.ledger(hashOfValue('eve'));
        await store.client.hset(ledger, 'a', '1 0 - -');
        await store.client.pexpire(ledger, 7 * DAY);
      },
      plant: (store) => store.client.persist(store.keys.ledger(hashOfValue('eve'))),
    },
    'missing-expiry',
  ],
  [
    'unexpected-expiry of the list of instances',
    {
      restores: true,
      prepare: (store) => store.client.zadd(store.partitions.instances, 1, 'host:1'),
      plant: (store) => store.client.pexpire(store.partitions.instances, DAY),
    },
    'unexpected-expiry',
  ],
  [
    'session-never-ends of one with an absolute timeout alone',
    {
      restores: true,
      prepare: (store, id) => store.save(id, { maxInactiveInterval: -1, absoluteTimeout: 86_400 }),
      plant: persist,
    },
    'session-never-ends',
  ],
  [
    'session-never-ends of one whose absolute timeout comes first',
    { restores: true, prepare: (store, id) => store.save(id, { absoluteTimeout: 75 * 60 }), plant: persist },
    'session-never-ends',
  ],
  [
    'session-hash-expiry of an endless session',
    {
      restores: true,
      prepare: (store, id) => store.save(id, { maxInactiveInterval: -1 }),
      plant: (store, id) => store.client.expire(store.keysOf(id).session(id), 60),
    },
    'session-hash-expiry',
  ],
  [
    'index-entry-without-session of a session that has ended',
    {
      restores: true,
      prepare: end,
      plant: (store, id) => store.client.zadd(indexOfEve(store.keysOf(id)), 1, id),
    },
    'index-entry-without-session',
  ],
  [
    'session-hash-expiry of a hash that goes first',
    { restores: true, plant: (store, id) => store.client.expire(store.keysOf(id).session(id), 60) },
    'session-hash-expiry',
  ],
  [
    'end-overdue in the sorted set',
    {
      only: 'buckets',
      plant: async (store, id) => {
        await unschedule(store, id);
        await store.client.hdel(store.keysOf(id).session(id), 'bucket');
        await store.runOut(id);
        await store.client.zadd(store.keysOf(id).ends, MINUTE, id);
      },
    },
    'end-overdue',
  ],
  [
    'member-without-session in the sorted set',
    { plant: (store, id) => store.client.zadd(store.keysOf(id).ends, nextHour(), store.id(id)) },
    'member-without-session',
  ],
  [
    'member-of-ended-session in the sorted set',
    {
      restores: true,
      prepare: end,
      plant: (store, id) => store.client.zadd(store.keysOf(id).ends, nextHour(), id),
    },
    'member-of-ended-session',
  ],
  [
    'member-twice in the sorted set',
    {
      only: 'buckets',
      restores: true,
      plant: async (store, id) => {
        const keys = store.keysOf(id);
        await store.client.zadd(keys.ends, await store.client.pexpiretime(keys.shadow(id)), id);
      },
    },
    'member-twice',
  ],
];

/** Lets a group read the first event of the partition of a session. */
export async function readOne(store: Store, id: string, consumer: string): Promise<string> {
  const { events } = store.keysOf(id);
  await store.client.xgroup('CREATE', events, GROUP, '0');
  const reply = await store.client.xreadgroup('GROUP', GROUP, consumer, 'COUNT', 1, 'STREAMS', events, '>');
  const [[, [[position]]]] = reply as [[string, [[string, string[]]]]];
  return position;
}

/** Adds a dead letter as the scripts do. */
async function bury(store: Store, id: string): Promise<string> {
  const keys = store.keysOf(id);
  const minute = `${nextHour()}`;
  await store.client.sadd(keys.bucket(minute), 'stray');
  await store.client.zadd(keys.bucketList, minute, minute);
  await store.scripts.claimExpired(keys, ['stray'], minute);
  const [[position]] = (await store.client.xrevrange(keys.deadLetters, '+', '-', 'COUNT', 1)) as [[string, string[]]];
  return position;
}

/** How what is recorded of events breaks. */
export const EVENT_PLANTS: Partial<Record<Rule, Plant>> = {
  'pending-without-event': {
    plant: async (store, id) => store.client.xdel(store.keysOf(id).events, await readOne(store, id, 'host:1')),
  },
  'retry-not-scheduled': { plant: (store, id) => readOne(store, id, 'retries') },
  'failure-without-event': {
    plant: async (store, id) => {
      const position = await readOne(store, id, 'host:1');
      const keys = store.keysOf(id);
      await store.client.xack(keys.events, GROUP, position);
      await store.client.hset(keys.failing(GROUP), position, '{"attempts":1,"done":[]}');
    },
  },
  'letter-unrecorded': {
    with: ['letter-bytes'],
    restores: true,
    prepare: bury,
    plant: (store, id) => store.client.del(store.keysOf(id).deadLetterIndex),
  },
  'letter-record-without-letter': {
    plant: async (store, id) => store.client.xdel(store.keysOf(id).deadLetters, await bury(store, id)),
  },
  'letter-bytes': {
    restores: true,
    prepare: bury,
    plant: (store, id) => store.client.hincrby(`${store.keysOf(id).deadLetters}:sizes`, '\n', 7),
  },
};
