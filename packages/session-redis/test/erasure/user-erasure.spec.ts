import { PRINCIPAL_NAME_INDEX_NAME } from '@nest-session/core';
import { PRINCIPAL_ATTRIBUTE } from '@nest-session/core/internal';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { UserErasure } from '../../src/erasure/user-erasure.js';
import { hashOfValue } from '../support/hash-of-value.js';
import { dump } from '../support/store.dump.js';
import { Store } from '../support/store.fixture.js';

LeakGuard.install();

const GROUP = 'default';

describe.each([1, 4])('the erasure of a user, partitions: %i', (partitions) => {
  let store: Store;
  let others: string[];
  beforeEach(async () => {
    store = await Store.open({ partitions });
    others = await Promise.all(['otto', 'otto', undefined].map((name) => createSession(name)));
  });
  afterEach(() => store.close());

  async function createSession(name?: string, { text = JSON.stringify(name), indexed = name } = {}): Promise<string> {
    const id = store.id();
    const session = { kind: 'create', presentedIds: [], maxInactiveInterval: 1800, absoluteTimeout: -1 } as const;
    const indexes = new Map(indexed === undefined ? [] : [[PRINCIPAL_NAME_INDEX_NAME, hashOfValue(indexed)]]);
    const attributes = new Map(name === undefined ? [] : [[PRINCIPAL_ATTRIBUTE, text]]);
    await store.scripts.create({ ...session, id, indexes, attributes });
    return id;
  }

  function erase({ isRehearsal = false, name = 'ann', onProgress = () => {} } = {}) {
    const options = { isRehearsal, signal: new AbortController().signal, onProgress };
    return new UserErasure(store.client, store.partitions, name, options).run();
  }

  const indexOf = (id: string, name: string) => store.keysOf(id).index(PRINCIPAL_NAME_INDEX_NAME, hashOfValue(name));

  it('ends the sessions of the user, and no other one', async () => {
    const ids = await Promise.all(['ann', 'ann'].map((name) => createSession(name)));
    expect(await erase()).toMatchObject({ live: 2, ended: 0 });
    for (const id of ids) {
      expect([await store.isAlive(id), await store.session(id)]).toEqual([false, {}]);
      expect((await store.eventTypes(id)).at(-1)).toBe('deleted');
    }
    for (const id of others) expect([await store.isAlive(id), await store.eventTypes(id)]).toEqual([true, ['created']]);
    for (const id of others.slice(0, 2)) expect(await store.client.zscore(indexOf(id, 'otto'), id)).not.toBeNull();
  });

  it('only counts in a rehearsal', async () => {
    await createSession('ann');
    await store.scripts.delete(await createSession('ann'));
    const before = await dump(store.client);
    expect(await erase({ isRehearsal: true })).toMatchObject({ live: 1, ended: 1 });
    expect(await dump(store.client)).toEqual(before);
  });

  it('finds an encrypted name by the index, which lists a long one by its hash', async () => {
    const name = 'a'.repeat(257);
    const id = await createSession(name, { text: 'enc1:AAAA', indexed: `sha256:${hashOfValue(name)}` });
    expect(await erase({ name })).toMatchObject({ live: 1 });
    expect(await store.isAlive(id)).toBe(false);
  });

  it('leaves the sessions of a user whose name ends with the other one in quotation marks', async () => {
    const id = await createSession('not"ann');
    expect(await erase()).toMatchObject({ live: 0 });
    expect(await store.isAlive(id)).toBe(true);
  });

  it('finds each session, however often all of them are rotated meanwhile', async () => {
    await Promise.all(Array.from({ length: 1500 }, () => createSession()));
    let ids = await Promise.all(Array.from({ length: 20 }, () => createSession('ann')));
    const rotations: Promise<unknown>[] = [];
    const rotate = (id: string) => {
      const newId = store.id(id);
      // Redis gets it before the next call of the erasure.
      rotations.push(store.save(id, { newId }));
      return newId;
    };
    // As often as the scan of the sessions tells of its progress.
    const onProgress = () => void (rotations.length < 600 && (ids = ids.map(rotate)));
    expect(await erase({ onProgress })).toMatchObject({ live: 20 });
    await Promise.all(rotations);
    for (const id of ids) expect(await store.session(id)).toEqual({});
    for (const keys of store.partitions.all)
      expect(await store.client.exists(keys.index(PRINCIPAL_NAME_INDEX_NAME, hashOfValue('ann')))).toBe(0);
  });

  it('takes a session from its index whose end nobody has noticed', async () => {
    const id = await createSession('ann');
    await store.runOut(id);
    expect(await erase()).toMatchObject({ live: 0, ended: 1 });
    expect([await store.session(id), await store.client.exists(indexOf(id, 'ann'))]).toEqual([{}, 0]);
  });

  it('removes an event with the name from the group that has it, and no other event', async () => {
    const keys = store.keysOf(others[0]!);
    const who = { [`sessionAttr:${PRINCIPAL_ATTRIBUTE}`]: '"ann"' };
    await store.client.xadd(keys.events, '*', 'type', 'signed-in', 'session', store.id(), 'who', JSON.stringify(who));
    await store.client.xgroup('CREATE', keys.events, GROUP, '0');
    await store.client.xreadgroup('GROUP', GROUP, 'host:1', 'STREAMS', keys.events, '>');
    const pending = async () => Number((await store.client.xpending(keys.events, GROUP))[0]);
    const before = await pending();
    expect(await erase()).toMatchObject({ events: 1 });
    expect(await pending()).toBe(before - 1);
    expect(await store.eventTypes(others[0]!)).toEqual(['created']);
  });
});
