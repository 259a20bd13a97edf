import { SessionScripts } from '../../src/scripts/session/session.scripts.js';
import { type Changes, KEEPING_RULES, Store } from '../support/store.fixture.js';
import type { SessionKeys } from '../../src/keys/session-keys.js';

const ID = 'i'.repeat(43);
const NEW_ID = 'n'.repeat(43);

let store: Store;
/** The minute of the bucket that the session is in. */
let minute: string;
beforeAll(async () => {
  store = await Store.open();
});
afterAll(() => store.close());
beforeEach(async () => {
  await store.client.flushall();
  await store.create({ a: '1' }, { id: ID, principal: 'ann' });
  minute = (await store.buckets(ID))[0]!;
});

/** Everything in Redis, byte for byte, with the times to live. */
async function content(): Promise<Record<string, unknown>> {
  const keys = await store.client.keys('*');
  const contents = keys.map(async (key) => [
    key,
    await store.client.dumpBuffer(key),
    await store.client.pexpiretime(key),
  ]);
  return Object.fromEntries((await Promise.all(contents)).map(([key, ...rest]) => [key, rest]));
}

async function plant(key: string): Promise<void> {
  await store.client.del(key);
  const type = key === store.keys.shadow(ID) ? 'list' : 'string';
  await (type === 'list' ? store.client.rpush(key, 'planted') : store.client.set(key, 'planted'));
}

const save = (changes: Changes) => () => store.save(ID, changes);
const newSession = () => ({
  id: NEW_ID,
  maxInactiveInterval: 1800,
  absoluteTimeout: -1,
  attributes: new Map([['a', '1']]),
  indexes: new Map([['principal', 'bob']]),
});
const calls = {
  'create-session': () => store.create({ a: '1' }, { id: NEW_ID, principal: 'bob' }),
  'take-over-session': () => store.scripts.takeOver(newSession(), 60_000),
  'save-attributes': save({ attributes: [['a', '2']] }),
  'change-session with an earlier end': save({ attributes: [['a', '2']], maxInactiveInterval: 60 }),
  'change-session with another index value': save({ attributes: [['a', '2']], indexes: [['principal', 'bob']] }),
  'rotate-session': save({ attributes: [['a', '2']], newId: NEW_ID }),
  'rotate-session with an earlier end': save({ newId: NEW_ID, maxInactiveInterval: 60 }),
  'rotate-session, kept idle': save({ newId: NEW_ID, keepsIdle: true }),
  'rotate-session that clears': save({ attributes: [['b', '2']], newId: NEW_ID, clears: true }),
  'change-session with an end': save({ attributes: [['a', '2']], maxInactiveInterval: 0 }),
  'touch-session': () => store.scripts.touch(ID),
  'delete-session': () => store.scripts.delete(ID),
};
type Call = keyof typeof calls;

const keys = {
  'session hash': (names: SessionKeys) => names.session(ID),
  'shadow key': (names: SessionKeys) => names.shadow(ID),
  bucket: (names: SessionKeys) => names.bucket(minute),
  'bucket list': (names: SessionKeys) => names.bucketList,
  'events stream': (names: SessionKeys) => names.events,
  'index set': (names: SessionKeys) => names.index('principal', 'bob'),
};
type Key = keyof typeof keys;

const OF_SESSION: readonly Key[] = ['session hash', 'shadow key'];
/** The keys without which each call fails; with any other stray key it does its work. */
const NEEDED: Record<Call, readonly Key[]> = {
  'create-session': ['bucket list', 'events stream', 'index set'],
  'take-over-session': ['bucket list', 'events stream', 'index set'],
  'save-attributes': OF_SESSION,
  'change-session with an earlier end': [...OF_SESSION, 'bucket list'],
  'change-session with another index value': [...OF_SESSION, 'index set'],
  'rotate-session': [...OF_SESSION, 'events stream'],
  'rotate-session with an earlier end': [...OF_SESSION, 'bucket list', 'events stream'],
  'rotate-session, kept idle': [...OF_SESSION, 'events stream'],
  'rotate-session that clears': [...OF_SESSION, 'events stream'],
  'change-session with an end': [...OF_SESSION, 'bucket list', 'events stream'],
  'touch-session': OF_SESSION,
  'delete-session': [...OF_SESSION, 'bucket list', 'events stream'],
};

describe.each(Object.keys(calls) as Call[])('%s', (call) => {
  it.each(NEEDED[call])('writes nothing when its %s is foreign, and names that key without an id', async (name) => {
    const key = keys[name](store.keys);
    await plant(key);
    const before = await content();
    const error: unknown = await calls[call]().catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(Error);
    const shown = key.replace(ID, '...').replace('bob', '...');
    expect(String(error)).toContain(`WRONGTYPE ${shown} is a ${await store.client.type(key)}, not a `);
    expect(String(error)).not.toContain(ID);
    expect(await content()).toEqual(before);
  });

  const others = (Object.keys(keys) as Key[]).filter((name) => !NEEDED[call].includes(name));
  if (call === 'create-session' || call === 'take-over-session') return;
  it.each(others)('does not look at a foreign %s, which it does not write', async (name) => {
    await plant(keys[name](store.keys));
    await calls[call]();
    expect(await store.client.type(keys[name](store.keys))).toBe('string');
  });
});

it('raises any error of a typed read except that of a stray key', async () => {
  // As in a slot under migration: one key of the call cannot be read.
  await store.client.call('ACL', 'SETUSER', 'limited', 'on', 'nopass', '~*', '+@all', '-sismember');
  const limited = store.client.duplicate({ username: 'limited', password: 'x' });
  try {
    const before = await content();
    const scripts = new SessionScripts(limited, store.partitions, KEEPING_RULES);
    await expect(scripts.touch(ID)).rejects.toThrow(/can't run this command|no permissions to run/);
    expect(await content()).toEqual(before);
  } finally {
    limited.disconnect();
  }
});
