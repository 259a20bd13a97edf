import { PRINCIPAL_ATTRIBUTE } from '@nest-session/core/internal';
import { PRINCIPAL_NAME_INDEX_NAME } from '@nest-session/core';
import type { Redis } from 'ioredis';
import { DeadlinePartitions } from '../../../deadlines/src/redis/deadline-keys.js';
import { DeadlineScripts } from '../../../deadlines/src/scripts/deadlines/deadline.scripts.js';
import { EventStreamScripts } from '../../../redis-events/src/scripts/event-stream.scripts.js';
import { ErasureScripts } from '../../../session-cli/src/scripts/erasure/erasure.scripts.js';
import { SPRING_PRINCIPAL_NAME } from '../../../session-spring/src/values/spring-principal.js';
import { SharedScripts } from '../../../session-spring/src/scripts/shared/shared.scripts.js';
import { SharedKeys } from '../../../session-spring/src/keys/spring-keys.js';
import { SpringScripts } from '../../../session-spring/src/scripts/spring/spring.scripts.js';
import { VerificationScripts } from '../../../session-cli/src/scripts/verification/verification.scripts.js';
import { namespaceScripts } from '../../../redis-events/src/scripts/namespace/namespace.scripts.js';
import { leaveRevocationMark } from '../../src/repository/listed-sessions.js';
import { SessionScripts } from '../../src/scripts/session/session.scripts.js';
import {
  type Changes,
  DEAD_LETTERS,
  GRACE,
  KEEPING_RULES,
  MINUTE,
  RETENTION,
  type Store,
  updateOf,
} from './store.fixture.js';
import { entryOf, SESSION_ENTRIES } from './event-scripts.js';

/** A call of a script, as the library makes it. */
export interface ScriptCall {
  /** The file of the script. */
  readonly script: string;
  readonly what: string;
  readonly prepare: (store: Store) => Promise<unknown>;
  readonly send: (client: Redis, store: Store) => Promise<unknown>;
  /** The expected reply, also of a second call. */
  readonly reply: unknown;
  /** The script writes nothing. */
  readonly reads?: boolean;
}

const [ID, NEW_ID] = ['i'.repeat(43), 'n'.repeat(43)] as const;
const ME = { group: 'group', consumer: 'me' };
const HANDLERS = { names: ['A.handle'], types: ['created', 'expired'] } as const;
const LEASE = 30_000;
const PLACE = { id: NEW_ID, replaced: undefined, atMost: 2, whenReached: 'end-oldest', duration: MINUTE } as const;

const DEADLINE_KEYS = new DeadlinePartitions('nest:session').all[0]!;
const DEADLINE = {
  member: 'a'.repeat(40),
  due: { in: MINUTE },
  ifExists: 'replace',
  id: 'id',
  key: 'a',
  data: { text: '{}', dataKey: undefined },
} as const;
const FIRING = { batchSize: 10, maxLength: 100, knownFor: MINUTE, maxDeadLetterSize: 1000 };
const scheduled = ({ client }: Store) => new DeadlineScripts(client).schedule(DEADLINE_KEYS, 'order', [DEADLINE], 10);

const OF_SPRING = {
  creationTime: 1_795_206_008_503,
  lastAccessedTime: 1_795_206_008_503,
  maxInactiveInterval: 2_000_000_000,
};

const sharedScripts = (client: Redis, { keys }: Store) =>
  new SharedScripts(client, new SharedKeys('nest:session:spring', keys, 0));
const SHARED_CONTENT = {
  attributes: new Map([[SPRING_PRINCIPAL_NAME, '"ann"']]),
  indexes: new Map([[PRINCIPAL_NAME_INDEX_NAME, 'ann']]),
};
const SHARED_SESSION = {
  kind: 'create',
  id: ID,
  presentedIds: [],
  maxInactiveInterval: 1800,
  absoluteTimeout: -1,
} as const;
const createShared = (client: Redis, store: Store) =>
  sharedScripts(client, store).create({ ...SHARED_SESSION, ...SHARED_CONTENT }, 'ann', 'plain');
const openShared = (store: Store) => createShared(store.client, store);

const sessionScripts = (client: Redis, { partitions }: Store) => new SessionScripts(client, partitions, KEEPING_RULES);
const oneOf = (...words: string[]) => expect.stringMatching(new RegExp(`^(${words.join('|')})$`)) as string;

const oneOfNumbers = (...numbers: number[]) => ({
  asymmetricMatch: (value: unknown) => numbers.includes(Number(value)),
});

/** The claim of a session whose time has not passed: the test has removed its shadow key. */
const CLAIMED = { outcome: 'claimed', delay: 0 };

const oneOfThese = (...values: unknown[]) => ({
  asymmetricMatch: (value: unknown) => values.some((each) => JSON.stringify(each) === JSON.stringify(value)),
});

/** A claim, or the reply to a repeated call. */
const orAlready = (claim: object) => oneOfThese(claim, { outcome: 'already' });

const openSession = (store: Store) => store.create({ a: '1', gone: '1' }, { id: ID, principal: 'ann' });

/** The script that saves these changes. */
function scriptOf({ newId, maxInactiveInterval, absoluteTimeout, dataKeys, indexes = [] }: Changes): string {
  if (newId !== undefined) return 'rotate-session';
  const isMore =
    [maxInactiveInterval, absoluteTimeout, dataKeys].some((each) => each !== undefined) || [...indexes].length > 0;
  return isMore ? 'change-session' : 'save-attributes';
}

function save(what: string, changes: Changes): ScriptCall {
  return {
    script: scriptOf(changes),
    what,
    prepare: openSession,
    send: (client, store) => sessionScripts(client, store).save(updateOf(ID, changes)),
    reply: { outcome: 'saved' },
  };
}

function signIn(what: string, butNot: string[]): ScriptCall {
  const times = { maxInactiveInterval: 1800, absoluteTimeout: 600 };
  const changes = { newId: NEW_ID, signIn: { butNot }, ...times, indexes: [['principal', 'bob']] } as const;
  const authenticatedAt = expect.any(Number) as number;
  return { ...save(what, changes), reply: { outcome: 'saved', authenticatedAt } };
}

/** An event that an instance received a minute ago and has not finished; its position. */
async function givenEvent(store: Store, consumer: string): Promise<string> {
  const { client, keys } = store;
  await openSession(store);
  await client.xgroup('CREATE', keys.events, ME.group, '0');
  await client.xgroup('CREATECONSUMER', keys.events, ME.group, ME.consumer);
  await client.xreadgroup('GROUP', ME.group, consumer, 'STREAMS', keys.events, '>');
  const position = await firstEvent(store);
  await client.xclaim(keys.events, ME.group, consumer, 0, position, 'IDLE', MINUTE, 'JUSTID');
  return position;
}

async function firstEvent({ client, keys }: Store): Promise<string> {
  const [entry] = await client.xrange(keys.events, '-', '+', 'COUNT', 1);
  return entry![0];
}

async function failedOnce(client: Redis, store: Store, attempts: number): Promise<unknown> {
  const failure = { done: ['A.done'], reason: 'a reason', attempts };
  const entry = entryOf(store.keys, await firstEvent(store), ID);
  const rules = { firstBackOff: 1000, longestBackOff: 1000, retention: RETENTION, deadLetters: DEAD_LETTERS };
  const scripts = new EventStreamScripts(client, SESSION_ENTRIES);
  return scripts.fail(entry, ME, failure, rules);
}

type Find = (keys: readonly string[], ...args: readonly (string | number)[]) => Promise<unknown>;

/** A script that finds nothing. */
function verification(
  script: Parameters<VerificationScripts['find']>[0],
  look: (call: { scripts: VerificationScripts; find: Find }, store: Store) => Promise<unknown>,
): ScriptCall {
  const send = (client: Redis, store: Store) => {
    const scripts = new VerificationScripts(client, false);
    return look({ scripts, find: (...sent) => scripts.find(script, ...sent) }, store);
  };
  return { script, what: 'a healthy store', prepare: openSession, send, reply: [], reads: true };
}

/** The calls of requests: sent once, or not at all. */
export const CALLS_OF_REQUESTS: readonly ScriptCall[] = [
  {
    script: 'schedule-deadlines',
    what: 'two deadlines, one of which waits already',
    prepare: scheduled,
    send: (client) =>
      new DeadlineScripts(client).schedule(
        DEADLINE_KEYS,
        'order',
        [DEADLINE, { ...DEADLINE, member: 'b'.repeat(40), key: 'b' }],
        10,
      ),
    reply: { replies: ['replaced', 'scheduled'], wait: MINUTE },
  },
  {
    script: 'reschedule-deadline',
    what: 'a deadline that waits, behind another one',
    prepare: async (store) => {
      await scheduled(store);
      const other = { ...DEADLINE, member: 'b'.repeat(40), key: 'b', due: { in: 2 * MINUTE } };
      await new DeadlineScripts(store.client).schedule(DEADLINE_KEYS, 'order', [other], 10);
    },
    send: (client) =>
      new DeadlineScripts(client).reschedule(DEADLINE_KEYS, 'order', DEADLINE.member, { in: 3 * MINUTE }),
    reply: ['moved', 3 * MINUTE],
  },
  {
    script: 'cancel-deadline',
    what: 'a deadline that waits',
    prepare: scheduled,
    send: (client) => new DeadlineScripts(client).cancel(DEADLINE_KEYS, 'order', DEADLINE.member),
    reply: 'cancelled',
  },
  {
    script: 'list-deadlines',
    what: 'the deadlines of a name',
    prepare: scheduled,
    send: (client) =>
      new DeadlineScripts(client).list(DEADLINE_KEYS, 'order', { before: undefined, after: undefined, limit: 10 }),
    reply: [{ keys: DEADLINE_KEYS, member: DEADLINE.member, time: expect.any(Number) as number }],
    reads: true,
  },
  {
    script: 'look-at-deadlines',
    what: 'a deadline that waits',
    prepare: scheduled,
    send: (client) => new DeadlineScripts(client).lookAt(DEADLINE_KEYS),
    reply: [{ name: 'order', count: 1, overdue: 0 }],
    reads: true,
  },
  {
    script: 'renew-session',
    what: 'a session of Spring',
    prepare: async ({ client, keys }) => {
      await client.hset(`${keys.prefix}of-spring`, OF_SPRING);
      await client.set(`${keys.prefix}shadow`, '');
    },
    send: (client, { keys: { prefix } }) =>
      new SpringScripts(client).renew([`${prefix}of-spring`, `${prefix}shadow`, `${prefix}set`], prefix, ID),
    reply: { outcome: 'touched' },
  },
  {
    script: 'create-shared-session',
    what: 'a new session beside those of Spring',
    prepare: () => Promise.resolve(),
    send: createShared,
    reply: { outcome: 'created', creationTime: expect.any(Number) as number },
  },
  {
    script: 'change-shared-session',
    what: 'a sign-in to a session that is shared with Spring',
    prepare: openShared,
    send: (client, store) =>
      sharedScripts(client, store).change(
        { kind: 'update', id: ID, newId: NEW_ID, signIn: { butNot: [] }, ...SHARED_CONTENT },
        { before: undefined, after: 'ann' },
      ),
    reply: { outcome: 'saved', authenticatedAt: expect.any(Number) as number },
  },
  {
    script: 'delete-shared-session',
    what: 'a session that is shared with Spring',
    prepare: openShared,
    send: (client, store) => sharedScripts(client, store).delete({ kind: 'delete', id: ID }),
    reply: { outcome: 'deleted' },
  },
  {
    script: 'create-session',
    what: 'a new session',
    prepare: async () => undefined,
    send: (client, store) =>
      sessionScripts(client, store).create({
        kind: 'create',
        id: ID,
        presentedIds: [],
        maxInactiveInterval: 1800,
        absoluteTimeout: -1,
        attributes: new Map([['a', '1']]),
        indexes: new Map([['principal', 'ann']]),
      }),
    reply: { outcome: 'created', creationTime: expect.any(Number) as number },
  },
  {
    script: 'take-over-session',
    what: 'a session of another library',
    prepare: async () => undefined,
    send: (client, store) =>
      sessionScripts(client, store).takeOver(
        {
          id: ID,
          maxInactiveInterval: 1800,
          absoluteTimeout: -1,
          attributes: new Map([['a', '1']]),
          indexes: new Map([['principal', 'ann']]),
        },
        60_000,
      ),
    reply: 'created',
  },
  save('attributes', {
    attributes: [
      ['a', '2'],
      ['gone', null],
    ],
    indexes: [['principal', 'bob']],
  }),
  save('a new id', { newId: NEW_ID, attributes: [['a', '2']], indexes: [['principal', 'bob']] }),
  signIn('a sign-in', ['gone']),
  signIn('a sign-in that removes nothing', []),
  save('a new id and other attributes', { newId: NEW_ID, clears: true, attributes: [['a', '2']] }),
  save('an attribute, compared and set', { attributes: [['a', '2']], expected: { name: 'a', text: '1' } }),
  save('a data key', { attributes: [['a', '2']], dataKeys: new Map([[ID, '1:dataKey:key:text']]) }),
  save('a data key and a new id', { newId: NEW_ID, dataKeys: new Map([ID, NEW_ID].map((id) => [id, '1:a:b:c'])) }),
  save('a shorter interval', { maxInactiveInterval: 600 }),
  save('an absolute timeout', { absoluteTimeout: 600 }),
  save('what keeps it idle', { attributes: [['a', '2']], keepsIdle: true }),
  save('no end any more', { maxInactiveInterval: -1 }),
  save('an interval of 0', { maxInactiveInterval: 0, attributes: [['a', '2']] }),
  {
    script: 'touch-session',
    what: 'an access',
    prepare: async (store) => {
      await openSession(store);
      // Makes the effect visible.
      await store.client.persist(store.keys.shadow(ID));
    },
    send: (client, store) => sessionScripts(client, store).touch(ID),
    reply: { outcome: 'touched' },
  },
  {
    script: 'delete-session',
    what: 'an end',
    prepare: openSession,
    send: (client, store) => sessionScripts(client, store).delete(ID),
    reply: { outcome: 'deleted' },
  },
  {
    script: 'delete-session',
    what: 'the end of a listed session',
    prepare: openSession,
    send: (client, store) =>
      sessionScripts(client, store).delete(ID, { listed: { indexName: 'principal', value: 'ann' } }),
    reply: { outcome: 'deleted' },
  },
  {
    script: 'list-sessions',
    what: 'a page of an index',
    prepare: openSession,
    send: (client, store) => sessionScripts(client, store).list(store.keys, store.keys.index('principal', 'ann'), 10),
    reply: { last: undefined, latest: expect.any(String) as string, sessions: [expect.any(Array)] },
    reads: true,
  },
  {
    script: 'end-sessions',
    what: 'the sessions of an index',
    prepare: openSession,
    send: (client, store) =>
      sessionScripts(client, store).endListed(store.keys, store.keys.index('principal', 'ann'), 10),
    reply: { ended: 1, latest: undefined, problem: undefined, foreign: [] },
  },
  {
    script: 'set-aside-index',
    what: 'a stray key in the place of an index',
    prepare: async (store) => {
      const index = store.keys.index('principal', 'ann');
      await openSession(store);
      await store.client.del(index);
      await store.client.sadd(index, ID);
    },
    send: (client, store) => sessionScripts(client, store).setAsideIndex(store.keys, 'principal', 'ann'),
    reply: { type: 'set', key: 'nest:session:stray:index:principal:ann', listed: 1 },
  },
  {
    script: 'reserve-place',
    what: 'a place for a session',
    prepare: openSession,
    send: (client, store) => sessionScripts(client, store).reserve('ann', PLACE, { sessions: [[ID, '1']] }),
    reply: { word: 'room', latest: expect.any(Number) as number, wasKnown: false, ending: [], others: [] },
  },
  {
    script: 'settle-place',
    what: 'the place of a session that was not stored',
    prepare: (store) => sessionScripts(store.client, store).reserve('ann', PLACE, { sessions: [[ID, '1']] }),
    send: (client, store) => sessionScripts(client, store).settle('ann', NEW_ID, false),
    reply: 'done',
  },
  {
    script: 'find-sessions',
    what: 'the sessions of a principal',
    prepare: openSession,
    send: (client, store) =>
      sessionScripts(client, store).find(store.keys, store.keys.index('principal', 'ann'), [ID, NEW_ID]),
    reply: [ID],
    reads: true,
  },
  {
    script: 'raise-epoch',
    what: 'every session',
    prepare: openSession,
    send: (client, store) => sessionScripts(client, store).raiseEpoch(store.keys),
    reply: expect.stringMatching(/^\d+$/),
  },
  {
    script: 'leave-revocation-mark',
    what: 'every session of a principal',
    prepare: openSession,
    send: (client, { keys }) => leaveRevocationMark(client, keys.revocationMark('principal', 'ann'), true),
    reply: undefined,
  },
  {
    script: 'leave-takeover-mark',
    what: 'a session of another library that ends',
    prepare: openSession,
    send: (client, store) => sessionScripts(client, store).markTakenOver(ID, 60_000),
    reply: undefined,
  },
  {
    script: 'leave-mark',
    what: 'a logout that a provider has told',
    prepare: openSession,
    send: (client, store) => sessionScripts(client, store).leaveMark('m'.repeat(43), 5, 60_000),
    reply: undefined,
  },
  {
    script: 'remove-group',
    what: 'a group',
    prepare: (store) => givenEvent(store, 'dead'),
    send: (client, store) => new EventStreamScripts(client, SESSION_ENTRIES).removeGroup(store.keys, ME.group, 0),
    reply: 'removed',
  },
  {
    script: 'replay-dead-letter',
    what: 'a dead letter',
    prepare: async (store) => {
      await givenEvent(store, ME.consumer);
      await failedOnce(store.client, store, 1);
    },
    send: async (client, store) => {
      const [letter] = await store.client.xrange(store.keys.deadLetters, '-', '+');
      return new EventStreamScripts(client, SESSION_ENTRIES).replayDeadLetter(store.keys, letter![0]);
    },
    reply: 'replayed',
  },
  {
    script: 'discard-dead-letter',
    what: 'a dead letter',
    prepare: async (store) => {
      await givenEvent(store, ME.consumer);
      await failedOnce(store.client, store, 1);
    },
    send: async (client, store) => {
      const [letter] = await store.client.xrange(store.keys.deadLetters, '-', '+');
      return new EventStreamScripts(client, SESSION_ENTRIES).discardDeadLetter(store.keys, letter![0]);
    },
    reply: 'discarded',
  },
];

/** The calls of background services: sent until there is a reply. */
export const CALLS_OF_SERVICES: readonly ScriptCall[] = [
  {
    script: 'look-at-shared-sessions',
    what: 'a session that Spring has ended',
    prepare: async (store) => {
      await openShared(store);
      await store.client.hset(`nest:session:spring:sessions:${ID}`, 'maxInactiveInterval', 0);
    },
    send: async (client, store) => {
      const { named } = await sharedScripts(client, store).lookAt([{ id: ID, what: '' }], 10);
      return named[0];
    },
    // A repeated call finds that the first one has recorded it.
    reply: oneOf('claimed', 'already'),
  },
  {
    script: 'fire-deadlines',
    what: 'a deadline that is due',
    prepare: async (store) => {
      await scheduled(store);
      await store.client.zadd(DEADLINE_KEYS.due('order'), 1, DEADLINE.member);
      await store.client.zadd(DEADLINE_KEYS.names, 1, 'order');
      await store.client.hset(DEADLINE_KEYS.wanted, ME.group, 'order');
    },
    send: (client) => new DeadlineScripts(client).fire(DEADLINE_KEYS, FIRING),
    // A repeated call finds that the first one has fired it.
    reply: {
      now: expect.any(Number) as number,
      next: undefined,
      isFull: false,
      entries: expect.any(Array) as unknown[],
    },
  },
  {
    script: 'pass-on-event',
    what: 'an event that only another instance of the group handles',
    prepare: async (store) => {
      await givenEvent(store, ME.consumer);
      await store.client.hset(store.keys.wanted, ME.group, 'order');
    },
    send: async (client, store) => {
      const position = await firstEvent(store);
      const pace = { firstBackOff: 1000, longestBackOff: MINUTE };
      const entry = { partition: store.keys, position, fields: [] };
      return new EventStreamScripts(client, SESSION_ENTRIES).passOn(entry, ME, 'order', pace);
    },
    reply: oneOf('passed', 'lost'),
  },
  {
    script: 'claim-expired',
    what: 'members of a bucket',
    prepare: async (store) => {
      const { client, keys } = store;
      for (const id of ['over', 'lost', 'foreign']) await store.create({ a: '1' }, { id, principal: id });
      await client.del(keys.shadow('over'), keys.shadow('lost'), keys.session('lost'));
      await client.set(keys.session('foreign'), 'planted');
      await store.create({}, { id: 'alive' });
      await client.pexpire(keys.shadow('alive'), 120 * MINUTE);
    },
    send: async (client, store) => {
      const members = ['over', 'lost', 'foreign', 'alive'].map((name) => `expires:${name}`);
      return sessionScripts(client, store).claimExpired(store.keys, members, (await store.buckets('alive'))[0]);
    },
    // A repeated call reports the ends that the first one has claimed.
    reply: [CLAIMED, { outcome: 'claimed' }, { outcome: 'corrupt' }, { outcome: 'alive' }].map(orAlready),
  },
  {
    script: 'claim-expired',
    what: 'the session of a key event',
    prepare: async (store) => {
      await openSession(store);
      await store.runOut(ID);
    },
    send: (client, store) => sessionScripts(client, store).claimExpired(store.keys, [`expires:${ID}`]),
    reply: [orAlready(CLAIMED)],
  },
  {
    script: 'claim-from-sorted-set',
    what: 'what the sorted set has',
    prepare: async (store) => {
      await openSession(store);
      await store.runOut(ID);
      await store.client.zadd(store.keys.ends, 1, ID);
    },
    send: (client, store) => sessionScripts(client, store).claimDue(store.keys, 10),
    // A repeated call finds that the first one has claimed the session.
    reply: {
      now: expect.any(Number) as number,
      next: undefined,
      entries: oneOfThese([{ id: ID, time: '1', ...CLAIMED }], []),
    },
  },
  {
    script: 'look-at-sessions',
    what: 'the sessions of a partition',
    prepare: openSession,
    send: (client, store) => sessionScripts(client, store).lookAt(store.keys, 0, 10),
    reply: { sessions: 1, overdue: 0, buckets: 1 },
    reads: true,
  },
  {
    script: 'end-older-sessions',
    what: 'sessions before the epoch',
    prepare: async (store) => {
      await openSession(store);
      await store.scripts.raiseEpoch(store.keys);
    },
    send: (client, store) => sessionScripts(client, store).endOlder(store.keys, [ID]),
    // A repeated call finds that the first one has ended the session.
    reply: oneOfNumbers(1, 0),
  },
  {
    script: 'finish-epoch',
    what: 'an epoch whose sessions have ended',
    prepare: (store) => store.scripts.raiseEpoch(store.keys),
    send: (client, store) => sessionScripts(client, store).finishEpoch(store.keys, 1),
    reply: undefined,
  },
  {
    script: 'take-cleanup-turn',
    what: 'the cleanup of a partition',
    prepare: openSession,
    send: (client, store) =>
      new EventStreamScripts(client, SESSION_ENTRIES).takeCleanupTurn(store.keys, 'me', MINUTE, {
        grace: GRACE,
        retention: RETENTION,
        maxLength: 0,
      }),
    reply: 'due',
  },
  {
    script: 'register-handlers',
    what: 'an instance',
    prepare: (store) => givenEvent(store, ME.consumer),
    send: (client, store) =>
      new EventStreamScripts(client, SESSION_ENTRIES).registerHandlers(store.keys, ME, HANDLERS, LEASE),
    reply: ['registered'],
  },
  {
    script: 'want-broadcast',
    what: 'an instance with broadcast handlers',
    prepare: () => Promise.resolve(),
    send: (client, store) =>
      new EventStreamScripts(client, SESSION_ENTRIES).wantBroadcast(store.keys, ['created', 'expired'], MINUTE),
    reply: [oneOf('begun', 'renewed'), oneOf('begun', 'renewed')],
  },
  {
    script: 'want-events',
    what: 'an instance that starts',
    prepare: () => Promise.resolve(),
    send: (client, store) =>
      new EventStreamScripts(client, SESSION_ENTRIES).wantEvents(store.keys, ME, ['created', 'expired']),
    reply: 'wanted',
  },
  {
    script: 'pick-up-events',
    what: 'an event of an instance that has died',
    prepare: (store) => givenEvent(store, 'dead'),
    send: (client, store) =>
      new EventStreamScripts(client, SESSION_ENTRIES).pickUpEvents(
        store.keys,
        ME,
        { lease: LEASE, longestBackOff: MINUTE },
        10,
      ),
    // An instance claims an event again whose delivery it never received, after the lease.
    reply: expect.any(Array),
  },
  {
    script: 'pick-up-events',
    what: 'an event that is retried',
    prepare: async (store) => {
      const position = await givenEvent(store, ME.consumer);
      await failedOnce(store.client, store, 5);
      await store.client.zadd(store.keys.retries(ME.group), 0, position);
    },
    send: (client, store) =>
      new EventStreamScripts(client, SESSION_ENTRIES).pickUpEvents(
        store.keys,
        ME,
        { lease: LEASE, longestBackOff: MINUTE },
        10,
      ),
    reply: expect.any(Array),
  },
  {
    script: 'acknowledge-events',
    what: 'an event that was handled',
    prepare: (store) => givenEvent(store, ME.consumer),
    send: async (client, store) =>
      new EventStreamScripts(client, SESSION_ENTRIES).acknowledge(store.keys, ME, [await firstEvent(store)]),
    reply: 'acknowledged',
  },
  {
    script: 'retry-or-dead-letter',
    what: 'an event that failed',
    prepare: (store) => givenEvent(store, ME.consumer),
    send: (client, store) => failedOnce(client, store, 5),
    reply: oneOf('retry', 'lost'),
  },
  {
    script: 'retry-or-dead-letter',
    what: 'an event that failed for the last time',
    prepare: (store) => givenEvent(store, ME.consumer),
    send: (client, store) => failedOnce(client, store, 1),
    reply: oneOf('dead', 'lost'),
  },
  {
    script: 'renew-lease',
    what: 'a lease',
    prepare: (store) => givenEvent(store, ME.consumer),
    send: async (client, store) =>
      new EventStreamScripts(client, SESSION_ENTRIES).renewLease(store.keys, ME, [await firstEvent(store)]),
    reply: ['renewed'],
  },
  {
    script: 'release-events',
    what: 'the unfinished events of an instance',
    prepare: (store) => givenEvent(store, ME.consumer),
    send: (client, store) => new EventStreamScripts(client, SESSION_ENTRIES).releaseEvents(store.keys, ME, []),
    reply: 'left',
  },
  {
    script: 'remove-consumer',
    what: 'an instance',
    prepare: (store) => givenEvent(store, 'dead'),
    send: (client, store) =>
      new EventStreamScripts(client, SESSION_ENTRIES).removeConsumer(store.keys, ME.group, ME.consumer),
    reply: 'removed',
  },
  {
    script: 'create-group',
    what: 'a group',
    prepare: openSession,
    send: (client, store) =>
      new EventStreamScripts(client, SESSION_ENTRIES).createGroup(store.keys, ME.group, 'oldest'),
    reply: oneOf('created', 'exists'),
  },
  {
    script: 'trim-events',
    what: 'surplus events',
    prepare: async (store) => {
      await givenEvent(store, ME.consumer);
      await sessionScripts(store.client, store).delete(ID);
    },
    send: (client, store) =>
      new EventStreamScripts(client, SESSION_ENTRIES).trim(
        store.keys,
        { grace: GRACE, retention: RETENTION, maxLength: 1 },
        100,
      ),
    reply: [oneOf('done', 'more'), expect.any(Number), expect.any(Array)],
  },
  {
    script: 'trim-dead-letters',
    what: 'surplus dead letters',
    prepare: async (store) => {
      await givenEvent(store, ME.consumer);
      await failedOnce(store.client, store, 1);
    },
    send: (client, store) =>
      new EventStreamScripts(client, SESSION_ENTRIES).trimDeadLetters(store.keys, { ...DEAD_LETTERS, maxSize: 1 }, 10),
    reply: ['done', expect.any(Array)],
  },
  {
    script: 'count-events',
    what: 'events',
    prepare: openSession,
    send: (client, store) => new EventStreamScripts(client, SESSION_ENTRIES).countEvents(store.keys, '0-0', 10),
    reply: ['all', 1],
    reads: true,
  },
  {
    script: 'look-at-groups',
    what: 'the groups',
    prepare: (store) => givenEvent(store, ME.consumer),
    send: (client, store) => new EventStreamScripts(client, SESSION_ENTRIES).lookAtGroups(store.keys, 10),
    reply: [[ME.group, 0, 0, 1, 0, 0, 0, 0]],
    reads: true,
  },
  {
    script: 'read-events',
    what: 'events',
    prepare: openSession,
    send: (client, store) =>
      new EventStreamScripts(client, SESSION_ENTRIES).readEvents(store.keys, '0-0', 10, ['created'], '0-0'),
    reply: ['read', [expect.any(Array)]],
    reads: true,
  },
  {
    script: 'raise-format',
    what: 'a newer format',
    prepare: ({ client, partitions }) => client.hset(partitions.meta, 'version', 1),
    send: (client, { partitions }) => namespaceScripts(client)('raise-format', [partitions.meta], ['version', 2]),
    reply: null,
  },
  {
    script: 'sign-instance',
    what: 'a new instance',
    prepare: openSession,
    send: (client, { partitions }) =>
      namespaceScripts(client)('sign-instance', [partitions.instances], ['me', 1000, 9000]),
    reply: [oneOfNumbers(0, 1), 'me'],
  },
  verification('verify-keys', ({ find }, { keys }) => find([keys.events], keys.prefix, 1000, 'stream', 'never')),
  verification('verify-sessions', ({ find }, { keys }) =>
    find([keys.bucketList, keys.events], keys.prefix, GRACE, RETENTION, 'all', ID),
  ),
  verification('verify-members', ({ find }, { keys }) => find([keys.ends, keys.bucketList], keys.prefix, '', 1000)),
  verification('verify-minutes', ({ find }, { keys }) => find([keys.bucketList], keys.prefix)),
  verification('verify-index', ({ find }, { keys }) => find([keys.index('principal', 'ann')], keys.prefix)),
  verification('verify-group', ({ find }, { keys }) =>
    find([keys.events, keys.failing(ME.group), keys.retries(ME.group)], ME.group),
  ),
  verification('verify-letters', async ({ scripts }, { keys }) => {
    const problems: unknown[] = [];
    for await (const some of scripts.letters(keys.deadLetters)) problems.push(...some);
    return problems;
  }),
  verification('verify-letter-records', ({ find }, { keys }) => find([keys.deadLetters], 1000)),
  verification('verify-deadlines', ({ find }) => find([DEADLINE_KEYS.names], DEADLINE_KEYS.prefix, 1000, 'all')),
  verification('verify-due', ({ find }) => {
    const { names, deadLetters, prefix } = DEADLINE_KEYS;
    return find([DEADLINE_KEYS.due('order'), names, deadLetters], prefix, 'order', 1000);
  }),
  {
    script: 'remove-lost-members',
    what: 'a member whose session is gone',
    prepare: ({ client, keys: { prefix } }) => client.sadd(`${prefix}of-spring`, 'a'),
    send: (client, { keys: { prefix } }) =>
      new SpringScripts(client).removeLost(`${prefix}of-spring`, [{ stored: Buffer.from('a'), session: `${prefix}a` }]),
    reply: undefined,
  },
  {
    script: 'erase-sessions',
    what: 'a session of the principal',
    prepare: (store) => store.create({ [PRINCIPAL_ATTRIBUTE]: '"ann"' }, { id: ID }),
    send: (client, { keys }) =>
      new ErasureScripts(client).sessions(keys, [ID], { hash: 'nobody', text: '"ann"' }, true),
    // A second call finds nothing.
    reply: expect.arrayContaining([]),
  },
  {
    script: 'erase-events',
    what: 'an event',
    prepare: (store) => givenEvent(store, ME.consumer),
    send: async (client, store) => new ErasureScripts(client).events(store.keys, [await firstEvent(store)]),
    reply: undefined,
  },
];
