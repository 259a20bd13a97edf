import { PRINCIPAL_NAME_INDEX_NAME } from '@nest-session/core';
import { PRINCIPAL_ATTRIBUTE } from '@nest-session/core/internal';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { UserErasure } from '../../src/erasure/user-erasure.js';
import { exactDump } from '../../../session-redis/test/support/exact.dump.js';
import { FATES, type Fate, HandlingGroup } from '../../../session-redis/test/support/handled-events.js';
import { hashOfValue } from '../../../session-redis/test/support/hash-of-value.js';
import { dump } from '../../../session-redis/test/support/store.dump.js';
import { Store } from '../../../session-redis/test/support/store.fixture.js';

LeakGuard.install();

const HASH = hashOfValue('ann');
const FIELD = `sessionAttr:${PRINCIPAL_ATTRIBUTE}`;

/** What is in events and dead letters of sessions that nothing else tells of. */
const OF_USER = {
  'the name': { who: JSON.stringify({ [FIELD]: '"ann"' }) },
  'the name, behind that of another': { who: JSON.stringify({ [FIELD]: '{"left":"not\\"ann","is":"ann"}' }) },
  'data with the name': { data: JSON.stringify({ a: '1', [FIELD]: '"ann"' }) },
  'data with the hash of the name': {
    data: JSON.stringify({ [FIELD]: 'enc1:AAAA', index: JSON.stringify([['principal', HASH]]) }),
  },
};
const OF_OTHERS = {
  'the name of another': { who: JSON.stringify({ [FIELD]: '"otto"' }) },
  'a name that ends with the other one in quotation marks': {
    who: JSON.stringify({ [FIELD]: JSON.stringify('not"ann') }),
    data: JSON.stringify({ [FIELD]: JSON.stringify('not"ann') }),
  },
  'the hash in another index': { data: JSON.stringify({ index: JSON.stringify([['email', HASH]]) }) },
  'no data': { data: '{}' },
};

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

  it('removes the records of how many sessions the user has, and no other one', async () => {
    const ledgers = (name: string) => store.partitions.all.map((keys) => keys.ledger(hashOfValue(name)));
    for (const key of ledgers('otto')) await store.client.hset(key, store.id(), '1 0 - -');
    const before = await exactDump(store.client);
    for (const key of ledgers('ann')) await store.client.hset(key, store.id(), '1 0 - -');
    expect(await erase({ isRehearsal: true })).toMatchObject({ ledgers: partitions });
    expect(await erase()).toEqual({ live: 0, ended: 0, events: 0, deadLetters: 0, ledgers: partitions });
    expect(await exactDump(store.client)).toEqual(before);
  });

  describe('of events and dead letters', () => {
    let group: HandlingGroup;
    beforeEach(async () => (group = await HandlingGroup.create(store)));

    it.each(FATES)(
      'removes those with the name or the data, which are %s, and leaves all else as it was',
      async (fate) => {
        for (const fields of Object.values(OF_OTHERS)) await record(store.id(), fields, fate);
        const before = await exactDump(store.client);
        const theirs = Object.values(OF_USER);
        for (const fields of theirs) await record(store.id(), fields, fate);
        const what = fate === 'dead' ? 'deadLetters' : 'events';
        expect(await erase()).toMatchObject({ live: 0, events: 0, deadLetters: 0, [what]: theirs.length });
        expect(await exactDump(store.client)).toEqual(before);
      },
    );

    it.each([
      { told: 'unread', of: 'unread' },
      { told: 'unread', of: 'dead' },
      { told: 'dead', of: 'unread' },
      { told: 'dead', of: 'dead' },
    ] as const)(
      'removes those of every former id of a session, of which $told ones tell, and which are $of',
      async ({ told, of }) => {
        const [last, other] = [await createSession('ann'), await createSession('otto')];
        for (const id of [last, other]) await store.scripts.delete(id);
        const theirs = await recordFormerIds(last, told);
        const former = await recordFormerIds(other, told);
        for (const id of former) await record(id, { data: '{"sessionAttr:a":"1"}' }, of);
        const before = await exactDump(store.client);
        for (const id of theirs) await record(id, { data: '{"sessionAttr:a":"1"}' }, of);
        const what = of === 'dead' ? 'deadLetters' : 'events';
        // A dead letter of the session goes also when it has nothing but ids.
        const ofTale = told === 'dead' ? theirs.length : 0;
        const found = { events: 0, deadLetters: 0, [what]: theirs.length };
        expect(await erase()).toMatchObject({ ended: 1, ...found, deadLetters: found.deadLetters + ofTale });
        const left = await exactDump(store.client);
        expect(left).not.toHaveProperty([store.keysOf(last).session(last)]);
        for (const id of theirs) expect(JSON.stringify(left)).not.toContain(`"created","session","${id}"`);
        for (const id of former) expect(JSON.stringify(left)).toContain(`"created","session","${id}"`);
        if (told === 'dead') return;
        // What tells of the ids has nothing else.
        delete before[store.keysOf(last).session(last)];
        expect(left).toEqual(before);
      },
    );

    it.each(FATES)(
      'removes all of a session that is gone where one of them has the name, which are %s',
      async (fate) => {
        const before = await exactDump(store.client);
        const first = store.id();
        await record(first, { data: '{"sessionAttr:a":"1"}' }, fate);
        const id = store.id(first);
        await record(id, OF_USER['the name'], fate);
        // It had another id before, without the name, which only a dead letter tells.
        const fields = { type: 'id-changed', session: id, previous: first };
        await group.record(store.keysOf(id), fields, 'dead');
        await record(id, { data: '{"sessionAttr:a":"2"}' }, fate);
        await erase();
        expect(await exactDump(store.client)).toEqual(before);
      },
    );

    it.each(FATES)('leaves those of another user whose session it was before, which are %s', async (fate) => {
      const [visitor, otto, id] = [store.id(), store.id(), store.id()];
      await record(visitor, { data: '{"sessionAttr:a":"1"}' }, fate);
      await record(otto, OF_OTHERS['the name of another'], fate);
      await record(otto, { data: '{"sessionAttr:a":"2"}' }, fate);
      await group.record(store.keysOf(otto), { type: 'id-changed', session: otto, previous: visitor }, 'unread');
      await group.record(store.keysOf(id), { type: 'id-changed', session: id, previous: otto }, 'unread');
      // An application that assigns a principal keeps the id.
      await record(id, OF_OTHERS['a name that ends with the other one in quotation marks'], fate);
      const before = await exactDump(store.client);
      await record(id, OF_USER['the name'], fate);
      await record(id, { data: '{"sessionAttr:a":"3"}' }, fate);
      expect(await erase()).toMatchObject({ [fate === 'dead' ? 'deadLetters' : 'events']: 2 });
      expect(await exactDump(store.client)).toEqual(before);
    });

    const record = (id: string, fields: Readonly<Record<string, string>>, fate: Fate) =>
      group.record(store.keysOf(id), { type: 'created', session: id, ...fields }, fate);

    /** Three ids that a session had, each in another partition, as after a move to another number of them. */
    async function recordFormerIds(last: string, fate: Fate): Promise<string[]> {
      const ids: string[] = [];
      for (let id = last; ids.length < 3; id = ids.at(-1)!) {
        ids.push(idElsewhere(id));
        const fields = { type: 'id-changed', session: id, previous: ids.at(-1)! };
        await group.record(store.keysOf(id), fields, fate);
      }
      return ids;
    }

    function idElsewhere(id: string): string {
      const other = store.id();
      return partitions > 1 && store.keysOf(other) === store.keysOf(id) ? idElsewhere(id) : other;
    }
  });
});
