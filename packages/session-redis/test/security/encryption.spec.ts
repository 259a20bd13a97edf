import { jest } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { PRINCIPAL_NAME_INDEX_NAME, type Session, SessionStoreError } from '@nest-session/core';
import { storePrimitivesOf, type UnreadText, PRINCIPAL_ATTRIBUTE } from '@nest-session/core/internal';
import { SessionEncryptionError } from '@nest-session/redis';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { KeyRing } from '../../src/encryption/key-ring.js';
import { RedisForeignSessions } from '../../src/repository/redis-foreign-sessions.js';
import { LimitAcrossPartitions } from '../../src/limits/limit-across-partitions.js';
import { RequestConnection } from '../../../redis-events/src/connection/request.connection.js';
import { SingleNode } from '../../../redis-events/src/connection/redis-nodes.js';
import { commandStats } from '../support/command.stats.js';
import {
  attributesOf,
  encryptionOf,
  encryptionWith,
  instanceOf,
  keyOf,
  load,
  stored,
} from '../support/encryption.fixture.js';
import { dump } from '../support/store.dump.js';
import { MINUTE, Store } from '../support/store.fixture.js';
import { hashOfValue } from '../support/hash-of-value.js';

LeakGuard.install();

const [A, B] = [keyOf('2026-10'), keyOf('2026-11')];
const SECRET = 'very-secret';

let store: Store;
let error: jest.SpiedFunction<Logger['error']>;
beforeAll(async () => {
  store = await Store.open();
});
beforeEach(() => {
  error = jest.spyOn(Logger.prototype, 'error').mockImplementation(() => undefined);
});
afterEach(async () => {
  error.mockRestore();
  await store.client.flushall();
});
afterAll(() => store.close());

const fieldOf = (name: string) => `sessionAttr:${name}`;
const hashOf = (id: string) => store.keysOf(id).session(id);
const textOf = async (id: string, name: string) => (await store.client.hget(hashOf(id), fieldOf(name)))!;
const dataKeyOf = async (id: string) => (await store.client.hget(hashOf(id), 'dataKey'))!;

/** What throws, and is neither a key nor an id nor a value. */
async function problemOf(call: () => unknown): Promise<SessionEncryptionError> {
  try {
    await call();
  } catch (thrown) {
    expect(thrown).toBeInstanceOf(SessionEncryptionError);
    expect((thrown as Error).message).not.toContain(SECRET);
    return thrown as SessionEncryptionError;
  }
  throw new Error('Nothing was thrown');
}

/** The content of every key. */
const everything = async () => (await dump(store.client)).join('\n');

async function numberOf(call: () => Promise<unknown>): Promise<number> {
  await store.client.config('RESETSTAT');
  await call();
  const stats = await commandStats(store.client);
  return (stats.get('evalsha')?.calls ?? 0) + (stats.get('eval')?.calls ?? 0);
}

describe('the attributes of a session', () => {
  it('are read by every instance that has the key', async () => {
    const { id } = await stored(instanceOf(store, encryptionOf(A)), { cart: [{ item: 'Äpfel 🍎' }], n: 1 });
    const other = instanceOf(store, encryptionOf(B, A));
    expect(await attributesOf(other, id)).toEqual({ cart: [{ item: 'Äpfel 🍎' }], n: 1 });
  });

  it('take as much of the bounds as without encryption, of a session that was created, saved or loaded', async () => {
    const name = 'text';
    const maxSessionSize = 1000;
    // A character of two bytes, and with the quotes and the name exactly this many.
    const textOf = (bytes: number) => 'ä'.repeat((bytes - name.length - 2) / 2);
    for (const encryption of [undefined, encryptionOf(A), encryptionOf(B, A)]) {
      const repository = instanceOf(store, encryption, { maxSessionSize, maxAttributeSize: 900 });
      const created = await stored(repository, { half: textOf(500) });
      for (const session of [created, await load(repository, created.id)]) {
        for (let again = 0; again < 2; again++) {
          session.setAttribute(name, textOf(500));
          expect(() => session.setAttribute(name, textOf(502))).toThrow('maxSessionSize');
          expect(await session.save()).toBe('saved');
          expect(await session.updateAttribute(name, () => textOf(300))).toBe(textOf(300));
          await expect(session.updateAttribute(name, () => textOf(502))).rejects.toThrow('maxSessionSize');
        }
      }
    }
  });

  it('stand in no key of Redis in plain text, whatever a request does', async () => {
    const repository = instanceOf(store, encryptionOf(A));
    const session = await stored(repository, { cart: SECRET });
    await session.updateAttribute('cart', (cart) => `${String(cart)}-2`);
    const again = await load(repository, session.id);
    again.setAttribute('list', [SECRET]);
    again.signIn('ann');
    await again.save();
    (await load(repository, again.id)).getAttribute<string[]>('list')!.push(SECRET);
    const late = await load(repository, again.id);
    late.getAttribute<string[]>('list')!.push(`${SECRET}-3`);
    await late.save();
    expect(await attributesOf(repository, again.id)).toMatchObject({ list: [SECRET, `${SECRET}-3`] });
    await store.scripts.delete(again.id);
    expect(await everything()).not.toContain(SECRET);
    // The test would notice: without encryption it stands there.
    await stored(instanceOf(store), { cart: SECRET });
    expect(await everything()).toContain(SECRET);
  });

  it('are encrypted differently for each session, name and write', async () => {
    const repository = instanceOf(store, encryptionOf(A));
    const one = await stored(repository, { a: SECRET, b: SECRET });
    const two = await stored(repository, { a: SECRET });
    const texts = [await textOf(one.id, 'a'), await textOf(one.id, 'b'), await textOf(two.id, 'a')];
    one.setAttribute('a', SECRET);
    await one.save();
    texts.push(await textOf(one.id, 'a'));
    expect(new Set(texts)).toHaveProperty('size', 4);
  });

  it('are compared in plain text, so that reading an object writes nothing', async () => {
    const repository = instanceOf(store, encryptionOf(A));
    const { id } = await stored(repository, { cart: { n: 1 } });
    const before = await textOf(id, 'cart');
    const session = await load(repository, id);
    expect(session.getAttribute('cart')).toEqual({ n: 1 });
    expect(await numberOf(() => session.save())).toBe(0);
    expect(await textOf(id, 'cart')).toBe(before);
  });

  it('are found by principal and by index, which has hashes of the values', async () => {
    const repository = instanceOf(store, encryptionOf(A));
    const session = repository.createSession();
    session.signIn('ann');
    await session.save();
    const [found] = await repository.findByPrincipalName('ann');
    expect(found?.principalName).toBe('ann');
    expect(await textOf(session.id, PRINCIPAL_ATTRIBUTE)).not.toContain('ann');
    expect(await store.client.hget(hashOf(session.id), 'index')).toContain(hashOfValue('ann'));
  });

  it('of an old session of connect-redis are encrypted when it is taken over', async () => {
    const encryption = encryptionOf(A);
    const connection = new RequestConnection(new SingleNode(store.client), { commandTimeout: 10 * MINUTE });
    const { scripts, partitions } = store;
    const ledger = new LimitAcrossPartitions(connection, () => scripts, partitions, { commandTimeout: 1000 });
    const foreign = new RedisForeignSessions(connection, () => scripts, { encryption }, ledger, partitions);
    await store.client.set('sess:old', SECRET, 'EX', 600);
    const id = store.id();
    await foreign.move('sess:old', id, (text) => ({ attributes: new Map([['cart', text]]), principalName: 'ann' }));
    expect(await everything()).not.toContain(SECRET);
    expect(await attributesOf(instanceOf(store, encryption), id)).toMatchObject({ cart: SECRET });
  });
});

describe('one script makes', () => {
  it('each save, of a new session, an encrypted one and a rotation', async () => {
    const repository = instanceOf(store, encryptionOf(A));
    const session = repository.createSession();
    session.setAttribute('a', 1);
    expect(await numberOf(() => session.save())).toBe(1);
    session.setAttribute('a', 2);
    expect(await numberOf(() => session.save())).toBe(1);
    const again = await load(repository, session.id);
    again.setAttribute('a', 3);
    expect(await numberOf(() => again.save())).toBe(1);
    expect(await numberOf(() => again.updateAttribute('a', () => 4))).toBe(1);
    again.changeSessionId();
    expect(await numberOf(() => again.save())).toBe(1);
    expect(await attributesOf(repository, again.id)).toEqual({ a: 4 });
  });

  it('the first save of a session from before encryption', async () => {
    const { id } = await stored(instanceOf(store), { a: 1 });
    const repository = instanceOf(store, encryptionOf(A));
    const session = await load(repository, id);
    session.setAttribute('b', 2);
    expect(await numberOf(() => session.save())).toBe(1);
    expect(await attributesOf(repository, id)).toEqual({ a: 1, b: 2 });
  });
});

describe('a change of id', () => {
  it('wraps the data key anew, and encrypts no attribute anew', async () => {
    const repository = instanceOf(store, encryptionOf(A));
    const session = await stored(repository, { a: 1 });
    const [text, dataKey] = [await textOf(session.id, 'a'), await dataKeyOf(session.id)];
    session.changeSessionId();
    await session.save();
    expect(await textOf(session.id, 'a')).toBe(text);
    expect(await dataKeyOf(session.id)).not.toBe(dataKey);
    expect(await attributesOf(repository, session.id)).toEqual({ a: 1 });
  });

  it('leaves saves from the old id readable', async () => {
    const repository = instanceOf(store, encryptionOf(A));
    const session = await stored(repository, { a: 1 });
    session.signIn('ann');
    await session.save();
    const [login, slow] = [await load(repository, session.id), await load(repository, session.id)];
    login.signIn('ann');
    await login.save();
    slow.setAttribute('b', 2);
    await slow.save();
    expect(await attributesOf(repository, login.id)).toMatchObject({ a: 1, b: 2 });
  });

  it('leaves saves from the old id readable while the keys are being rotated', async () => {
    const { id } = await stored(instanceOf(store, encryptionOf(A)), { a: 1 });
    const [login, slow] = [
      await load(instanceOf(store, encryptionOf(A, B)), id),
      await load(instanceOf(store, encryptionOf(B, A)), id),
    ];
    login.changeSessionId();
    await login.save();
    slow.setAttribute('b', 2);
    await slow.save();
    expect(await attributesOf(instanceOf(store, encryptionOf(A)), login.id)).toEqual({ a: 1, b: 2 });
  });

  it('leaves the attributes readable that a sign-in takes along which lost against another one', async () => {
    const repository = instanceOf(store, encryptionOf(A));
    const { id } = await stored(repository, { a: 1, b: 1 });
    const [first, second] = [await load(repository, id), await load(repository, id)];
    for (const session of [first, second]) {
      session.signIn('ann');
      await session.save();
    }
    for (const session of [first, second])
      expect(await attributesOf(repository, session.id)).toMatchObject({ a: 1, b: 1 });
    expect(await textOf(second.id, 'a')).not.toBe(await textOf(first.id, 'a'));
  });

  it('that also clears the session leaves it readable', async () => {
    const repository = instanceOf(store, encryptionOf(A));
    const session = await stored(repository, { a: 1 });
    const { id, newId } = { id: session.id, newId: store.id(session.id) };
    const { memo } = (await storePrimitivesOf(repository).load([id]))[0]!;
    const change = { kind: 'update', id, newId, clears: true, indexes: new Map(), memo } as const;
    await storePrimitivesOf(repository).write({ ...change, attributes: new Map([['b', '2']]) });
    expect(await attributesOf(repository, newId)).toEqual({ b: 2 });
  });

  it('that ends the session leaves its data readable under the old id', async () => {
    const encryption = encryptionOf(A);
    const { id } = await stored(instanceOf(store), { a: 1 });
    const session = await load(instanceOf(store, encryption), id);
    session.setAttribute('b', 2);
    session.changeSessionId();
    session.maxInactiveInterval = 0;
    await session.save();
    const { [fieldOf('b')]: text, dataKey } = await store.session(id);
    const times = { creationTime: 0, lastAccessedTime: 0, maxInactiveInterval: 0, absoluteTimeout: -1, timeToLive: 0 };
    const { attributes } = encryption.decrypted({ id, ...times, attributes: [['b', text!]], dataKey });
    expect([...attributes].map(([, text]) => (text as UnreadText).read())).toEqual(['2']);
  });

  it('whose reply was lost leaves the session readable', async () => {
    const repository = instanceOf(store, encryptionOf(A));
    const { id } = await stored(instanceOf(store), { a: 1 });
    const session = await load(repository, id);
    session.setAttribute('b', 2);
    session.changeSessionId();
    losesReply();
    await expect(session.save()).rejects.toBeInstanceOf(SessionStoreError);
    session.setAttribute('c', 3);
    await session.save();
    expect(await attributesOf(repository, session.id)).toEqual({ a: 1, b: 2, c: 3 });
  });
});

it('a creation whose reply was lost leaves the session readable', async () => {
  const repository = instanceOf(store, encryptionOf(A));
  const session = repository.createSession();
  session.setAttribute('a', 1);
  losesReply('create');
  await expect(session.save()).rejects.toBeInstanceOf(SessionStoreError);
  session.setAttribute('b', 2);
  await session.save();
  expect(await attributesOf(repository, session.id)).toEqual({ a: 1, b: 2 });
});

/** The next call is made, and its reply is lost. */
function losesReply(name: 'create' | 'save' = 'save'): void {
  const scripts = store.scripts as unknown as Record<string, (...args: unknown[]) => Promise<unknown>>;
  const call = scripts[name]!.bind(store.scripts);
  jest.spyOn(scripts, name).mockImplementationOnce(async (...args) => {
    await call(...args);
    throw new Error('The connection was lost');
  });
}

describe('requests at once', () => {
  it('that encrypt a session first agree on one data key', async () => {
    const { id } = await stored(instanceOf(store), { a: 1 });
    const repositories = [encryptionOf(A), encryptionOf(A), encryptionOf(B, A)].map((each) => instanceOf(store, each));
    const sessions = await Promise.all(repositories.map((each) => load(each, id)));
    for (const [i, session] of sessions.entries()) session.setAttribute(`n${i}`, i);
    await Promise.all(sessions.map((session) => session.save()));
    const both = instanceOf(store, encryptionOf(A, B));
    expect(await attributesOf(both, id)).toEqual({ a: 1, n0: 0, n1: 1, n2: 2 });
    // They go on with the data key that the session has.
    for (const [i, session] of sessions.entries()) session.setAttribute(`n${i}`, i + 10);
    await Promise.all(sessions.map((session) => session.save()));
    expect(await attributesOf(both, id)).toEqual({ a: 1, n0: 10, n1: 11, n2: 12 });
  });

  it.each([
    ['encrypted', encryptionOf(A)],
    ['plain', undefined],
  ])('one of which rotates the session, as %s, while the other encrypts it first', async (_, login) => {
    const { id } = await stored(instanceOf(store), { a: 1 });
    const repository = instanceOf(store, encryptionOf(A));
    const [rotating, slow] = [await load(instanceOf(store, login), id), await load(repository, id)];
    rotating.changeSessionId();
    await rotating.save();
    slow.setAttribute('b', 2);
    expect(await slow.save()).toBe('saved');
    expect(await textOf(rotating.id, 'b')).toMatch(/^enc1:/);
    expect(await attributesOf(repository, rotating.id)).toEqual({ a: 1, b: 2 });
  });

  it('one of which rotates a session that the other has just encrypted', async () => {
    const { id } = await stored(instanceOf(store), { a: 1 });
    const repository = instanceOf(store, encryptionOf(A));
    const preparing = instanceOf(store, encryptionWith('write', A));
    const [quick, rotating, last] = [await load(repository, id), await load(repository, id), await load(preparing, id)];
    quick.setAttribute('b', 2);
    await quick.save();
    rotating.setAttribute('c', 3);
    rotating.changeSessionId();
    await rotating.save();
    expect(await attributesOf(repository, rotating.id)).toEqual({ a: 1, b: 2, c: 3 });
    // Its old id: nothing of a rotation is forwarded.
    last.changeSessionId();
    expect(await last.save()).toBe('gone');
    const another = await load(preparing, rotating.id);
    another.changeSessionId();
    await another.save();
    expect(await attributesOf(repository, another.id)).toEqual({ a: 1, b: 2, c: 3 });
  });

  it.each([undefined, 'other'] as const)(
    'compare and set a value that others have just encrypted, with %j',
    async (b) => {
      const { id } = await stored(instanceOf(store), { a: 1 });
      const preparing = await load(instanceOf(store, encryptionWith('write', A)), id);
      const other = await load(instanceOf(store, encryptionOf(A)), id);
      other.setAttribute('a', b ?? 1);
      await other.save();
      expect(await preparing.updateAttribute('a', (a) => [a])).toEqual([b ?? 1]);
      expect(await attributesOf(instanceOf(store, encryptionOf(A)), id)).toEqual({ a: [b ?? 1] });
    },
  );

  it('lose no update of one attribute', async () => {
    const { id } = await stored(instanceOf(store), { n: 0 });
    const repositories = [encryptionOf(A), encryptionOf(B, A)].map((each) => instanceOf(store, each));
    const sessions = await Promise.all(Array.from({ length: 20 }, (_, i) => load(repositories[i % 2]!, id)));
    await Promise.all(sessions.map((each) => each.updateAttribute<number>('n', (n = 0) => n + 1)));
    expect(await attributesOf(instanceOf(store, encryptionOf(A, B)), id)).toEqual({ n: 20 });
  });

  it('by many requests of an instance at once takes as few scripts as without encryption', async () => {
    const repository = instanceOf(store, encryptionOf(A));
    const { id } = await stored(repository, { n: 0 });
    const sessions = await Promise.all(Array.from({ length: 40 }, () => load(repository, id)));
    const increments = () => Promise.all(sessions.map((each) => each.updateAttribute<number>('n', (n = 0) => n + 1)));
    // The first one, all that gathered meanwhile, and those for which there was no room.
    expect(await numberOf(increments)).toBeLessThanOrEqual(3);
    expect(await attributesOf(repository, id)).toEqual({ n: 40 });
  });

  it('compare what was encrypted in between by its plain text', async () => {
    const repository = instanceOf(store, encryptionOf(A));
    const { id } = await stored(repository, { n: 1 });
    const session = await load(repository, id);
    const other = await load(repository, id);
    other.setAttribute('n', 1);
    await other.save();
    const update = jest.fn((n: number | undefined) => n! + 1);
    expect(await session.updateAttribute<number>('n', update)).toBe(2);
    expect(update).toHaveBeenCalledTimes(1);
    await other.updateAttribute('n', () => undefined);
    expect(await session.updateAttribute<number>('n', (n) => n ?? 0)).toBe(0);
  });
});

it('many instances may store what is there already, at once', async () => {
  const instances = Array.from({ length: 12 }, () => instanceOf(store, encryptionOf(A)));
  const { id } = await stored(instances[0]!, { n: 1 });
  const sessions = await Promise.all(instances.map((each) => load(each, id)));
  const updates = sessions.map((each) => each.updateAttribute<number>('n', (n) => n));
  expect(new Set(await Promise.all(updates))).toEqual(new Set([1]));
});

describe('a new first key', () => {
  it('is used at the next save, and then the old one is needed no more', async () => {
    const { id } = await stored(instanceOf(store, encryptionOf(A)), { a: 1, b: 1 });
    const rotating = instanceOf(store, encryptionOf(B, A));
    expect(await dataKeyOf(id)).toContain(`:${A.id}:`);
    const session = await load(rotating, id);
    session.setAttribute('a', 2);
    expect(await numberOf(() => session.save())).toBe(1);
    expect(await dataKeyOf(id)).toContain(`:${B.id}:`);
    session.setAttribute('a', 3);
    await session.save();
    expect(await attributesOf(instanceOf(store, encryptionOf(B)), id)).toEqual({ a: 3, b: 1 });
  });

  it('is used at a rotation', async () => {
    const session = await load(
      instanceOf(store, encryptionOf(B, A)),
      (await stored(instanceOf(store, encryptionOf(A)), { a: 1 })).id,
    );
    session.changeSessionId();
    await session.save();
    expect(await attributesOf(instanceOf(store, encryptionOf(B)), session.id)).toEqual({ a: 1 });
  });
});

describe('without the right key', () => {
  const readers = [
    ['without any key', undefined, /under the key "2026-10", but option `encryption.keys` lacks it/],
    ['with other keys', encryptionOf(B), /under the key "2026-10", but option `encryption.keys` lacks it/],
    [
      'with another key of the same id',
      encryptionOf(keyOf(A.id, 'other')),
      /cannot be decrypted with the key "2026-10"/,
    ],
  ] as const;

  it.each(readers)('%s, a load fails with one error and nothing is lost', async (_, encryption, message) => {
    const owner = instanceOf(store, encryptionOf(A));
    const { id } = await stored(owner, { a: SECRET });
    const before = await store.session(id);
    const problem = await problemOf(() => instanceOf(store, encryption).findById(id));
    expect(problem.message).toMatch(message);
    expect(problem).toMatchObject({ keyId: A.id, name: 'SessionEncryptionError' });
    expect(problem.message).not.toContain(id);
    expect(problem).toBeInstanceOf(SessionStoreError);
    expect(problem.getStatus()).toBe(503);
    expect(JSON.stringify(problem.getResponse())).not.toContain(A.id);
    expect(await store.session(id)).toEqual(before);
    expect(await attributesOf(owner, id)).toEqual({ a: SECRET });
  });

  it('an instance writes nothing that others cannot read', async () => {
    const owner = instanceOf(store, encryptionOf(A));
    const { id } = await stored(instanceOf(store), { a: 1 });
    const sessions = await Promise.all([owner, instanceOf(store, encryptionOf(B))].map((each) => load(each, id)));
    const [first, second] = sessions as [Session, Session];
    first.setAttribute('b', 2);
    await first.save();
    second.setAttribute('c', 3);
    await problemOf(() => second.save());
    expect(await attributesOf(owner, id)).toEqual({ a: 1, b: 2 });
  });

  it('an instance without keys does not rotate a session that was encrypted since its load', async () => {
    const owner = instanceOf(store, encryptionOf(A));
    const { id } = await stored(instanceOf(store), { a: 1 });
    const [first, second] = [await load(owner, id), await load(instanceOf(store), id)];
    first.setAttribute('b', 2);
    await first.save();
    second.changeSessionId();
    expect((await problemOf(() => second.save())).message).toMatch(/Another instance encrypts/);
    expect(await attributesOf(owner, id)).toEqual({ a: 1, b: 2 });
  });

  it('a session can be listed, touched and ended', async () => {
    const session = await stored(instanceOf(store, encryptionOf(A)), { a: 1 });
    session.principalName = 'ann';
    await session.save();
    const other = instanceOf(store, encryptionOf(B));
    const listed: string[] = [];
    for await (const { id } of other.listByIndex(PRINCIPAL_NAME_INDEX_NAME, 'ann')) listed.push(id);
    expect(listed).toEqual([session.id]);
    expect(await other.touch(session)).toBe('touched');
    expect(await other.deleteByIndex(PRINCIPAL_NAME_INDEX_NAME, 'ann')).toBe(1);
  });
});

describe('what was changed in Redis is an error of its attribute:', () => {
  const repositoryOf = () => instanceOf(store, encryptionOf(A));

  it.each([
    ['a value of another attribute', async (id: string) => textOf(id, 'b')],
    ['a value of another session', async () => textOf((await stored(repositoryOf(), { a: SECRET })).id, 'a')],
    ['a changed byte', async (id: string) => changed(await textOf(id, 'a'))],
    ['a changed tag', async (id: string) => (await textOf(id, 'a')).slice(0, -3) + 'AAA'],
    ['a truncated value', async (id: string) => (await textOf(id, 'a')).slice(0, -8)],
    ['almost nothing', async () => 'enc1:'],
    ['no base64', async () => 'enc1:!!!'],
  ])('%s', async (_, forge) => {
    const { id } = await stored(repositoryOf(), { a: SECRET, b: 'other', c: 1 });
    const original = await textOf(id, 'a');
    await store.client.hset(hashOf(id), fieldOf('a'), await forge(id));
    const session = await load(repositoryOf(), id);
    const problem = await problemOf(() => session.getAttribute('a'));
    await problemOf(() => session.getAttribute('a'));
    expect(problem.message).toBe('Session attribute "a" cannot be decrypted: it was changed in Redis');
    expect(problem.attributeName).toBe('a');
    expect(error.mock.calls.map(([line]) => String(line))).toEqual([problem.message]);
    expect(session.getAttribute('c')).toBe(1);
    session.setAttribute('c', 2);
    await session.save();
    await store.client.hset(hashOf(id), fieldOf('a'), original);
    expect(await attributesOf(repositoryOf(), id)).toEqual({ a: SECRET, b: 'other', c: 2 });
  });

  it('a value without the data key, which is an error of the session', async () => {
    const { id } = await stored(repositoryOf(), { a: SECRET });
    const dataKey = await dataKeyOf(id);
    await store.client.hdel(hashOf(id), 'dataKey');
    expect((await problemOf(() => repositoryOf().findById(id))).message).toMatch(/"a" cannot be decrypted/);
    await store.client.hset(hashOf(id), { dataKey });
    expect(await attributesOf(repositoryOf(), id)).toEqual({ a: SECRET });
  });

  it('a data key that is gone is stored again by the next save', async () => {
    const { id } = await stored(repositoryOf(), { a: SECRET });
    const [one, two] = [await load(repositoryOf(), id), await load(instanceOf(store, encryptionOf(B, A)), id)];
    await store.client.hdel(hashOf(id), 'dataKey');
    one.changeSessionId();
    await one.save();
    expect(await attributesOf(repositoryOf(), one.id)).toEqual({ a: SECRET });
    await store.client.hdel(hashOf(one.id), 'dataKey');
    // Not under another id: it may be that of a session to which somebody has led the save.
    two.setAttribute('b', 1);
    expect((await problemOf(() => two.save())).message).toContain('led to a session with another data key');
    expect(await textOf(one.id, 'b')).toBeNull();
  });

  describe.each<[string, () => ReturnType<typeof repositoryOf>]>([
    ['while the keys are not rotated', repositoryOf],
    ['while the keys are rotated', () => instanceOf(store, encryptionWith('refuse', B, A))],
  ])('a forwarding mark that leads a save to the session of somebody else, %s', (_, repository) => {
    const lead = async (from: string, to: string) => {
      await store.client.rename(store.keysOf(from).shadow(from), 'aside');
      await store.client.set(store.keysOf(from).forwardingMark(from), to, 'PX', MINUTE);
    };
    const readBy = async (id: string, name: string) => {
      try {
        return (await load(repository(), id)).getAttribute(name) ?? null;
      } catch {
        return null;
      }
    };

    it.each([
      ['', async () => undefined],
      ['without its data key', (id: string) => store.client.hdel(hashOf(id), 'dataKey')],
      ['without all that it held', (id: string) => store.client.hdel(hashOf(id), 'dataKey', fieldOf('a'))],
    ] as const)('lets them read nothing of it, nor write what its user would read %s', async (_how, prepare) => {
      const [ann, mallory] = [await stored(repositoryOf(), { a: 1 }), await stored(repositoryOf(), { a: 2 })];
      const wrapped = await dataKeyOf(mallory.id);
      const changing = [
        await load(repository(), ann.id),
        await load(repository(), ann.id),
        await load(repository(), ann.id),
      ];
      await prepare(mallory.id);
      await lead(ann.id, mallory.id);
      changing[0]!.setAttribute('card', SECRET);
      changing[2]!.setAttribute('other', SECRET);
      await changing[0]!.save().catch((problem: unknown) => expect(problem).toBeInstanceOf(SessionEncryptionError));
      await changing[1]!
        .updateAttribute('card', () => SECRET)
        .catch((problem: unknown) => expect(problem).toBeInstanceOf(SessionEncryptionError));
      // What a failed save knows of the session to which it was led does not count at the next one.
      for (let time = 0; time < 2; time++) await changing[2]!.save().catch(() => undefined);
      expect([await readBy(mallory.id, 'card'), await readBy(mallory.id, 'other')]).toEqual([null, null]);
      await store.client.hset(hashOf(mallory.id), { dataKey: wrapped });
      expect([await readBy(mallory.id, 'card'), await readBy(mallory.id, 'other')]).toEqual([null, null]);
    });
  });

  it.each([
    ['of another session', async () => dataKeyOf((await stored(repositoryOf(), { a: 1 })).id)],
    ['with a changed byte', async (id: string) => changed(await dataKeyOf(id))],
    ['that says that it is another one', async (id: string) => (await dataKeyOf(id)).replace(/^1:..../, '1:AAAA')],
    ['that is malformed', async () => '"1:x"'],
    ['that is empty', async () => ''],
  ])('a data key %s, which is an error of the session', async (_, forge) => {
    const { id } = await stored(repositoryOf(), { a: SECRET });
    const original = await dataKeyOf(id);
    await store.client.hset(hashOf(id), 'dataKey', await forge(id));
    await problemOf(() => repositoryOf().findById(id));
    await store.client.hset(hashOf(id), 'dataKey', original);
    expect(await attributesOf(repositoryOf(), id)).toEqual({ a: SECRET });
  });

  it.each([
    { kind: 'deadline', namespace: 'nest:session' },
    { kind: 'session', namespace: 'nest:sessions' },
    { kind: 'session', namespace: 'nest' },
  ] as const)('a data key that was wrapped for a $kind of namespace $namespace', async (scope) => {
    const { id } = await stored(repositoryOf(), { a: SECRET });
    const original = await dataKeyOf(id);
    const bytes = Buffer.from(A.key, 'base64');
    const { dataKey } = new KeyRing([{ id: A.id, bytes }]).unwrap(original, id);
    await store.client.hset(hashOf(id), 'dataKey', new KeyRing([{ id: A.id, bytes }], scope).wrap(dataKey, id));
    expect((await problemOf(() => repositoryOf().findById(id))).keyId).toBe(A.id);
    await store.client.hset(hashOf(id), 'dataKey', original);
    expect(await attributesOf(repositoryOf(), id)).toEqual({ a: SECRET });
  });

  it('a whole session under another id', async () => {
    const [from, to] = [await stored(repositoryOf(), { a: SECRET }), await stored(repositoryOf(), { a: 1 })];
    const fields = await store.session(from.id);
    await store.client.hset(hashOf(to.id), { dataKey: fields['dataKey'], [fieldOf('a')]: fields[fieldOf('a')] });
    expect((await problemOf(() => repositoryOf().findById(to.id))).keyId).toBe(A.id);
  });
});

/** The text with another character in the middle. */
function changed(text: string): string {
  const middle = text.length >> 1;
  return text.slice(0, middle) + (text[middle] === 'A' ? 'B' : 'A') + text.slice(middle + 1);
}

describe('plain values', () => {
  it('of sessions from before are read, and each is encrypted when it is written', async () => {
    const { id } = await stored(instanceOf(store), { a: 1, b: 1 });
    const repository = instanceOf(store, encryptionOf(A));
    const session = await load(repository, id);
    expect(session.getAttribute('b')).toBe(1);
    session.setAttribute('a', 2);
    await session.save();
    expect([await textOf(id, 'a'), await textOf(id, 'b')]).toEqual([expect.stringMatching(/^enc1:/), '1']);
    expect(await session.updateAttribute<number>('b', (b) => b! + 1)).toBe(2);
    expect(await textOf(id, 'b')).toMatch(/^enc1:/);
    expect(await attributesOf(repository, id)).toEqual({ a: 2, b: 2 });
  });

  it('are written, and encrypted ones read, with `write`', async () => {
    const preparing = instanceOf(store, encryptionWith('write', A));
    const plain = await stored(preparing, { a: 1 });
    expect(await store.session(plain.id)).not.toHaveProperty('dataKey');
    const { id } = await stored(instanceOf(store, encryptionOf(A)), { a: 1, b: 1 });
    const session = await load(preparing, id);
    session.setAttribute('a', 2);
    expect(await session.updateAttribute<number>('b', (b) => b! + 1)).toBe(2);
    session.changeSessionId();
    await session.save();
    expect(await textOf(session.id, 'a')).toBe('2');
    expect(await attributesOf(instanceOf(store, encryptionOf(A)), session.id)).toEqual({ a: 2, b: 2 });
  });

  it('are an error with `refuse`, and the session stays', async () => {
    const refusing = instanceOf(store, encryptionWith('refuse', A));
    const { id } = await stored(instanceOf(store), { a: SECRET });
    const problem = await problemOf(() => refusing.findById(id));
    expect(problem.message).toBe(
      `Session attribute "a" is not encrypted, and option \`encryption.plainValues\` is 'refuse'`,
    );
    expect(await attributesOf(instanceOf(store, encryptionOf(A)), id)).toEqual({ a: SECRET });
  });

  it('that were planted in an encrypted session are an error with `refuse`', async () => {
    const refusing = instanceOf(store, encryptionWith('refuse', A));
    const { id } = await stored(refusing, { a: 1 });
    await store.client.hset(hashOf(id), fieldOf('role'), '"admin"');
    const session = await load(refusing, id);
    expect(session.getAttribute('a')).toBe(1);
    await problemOf(() => session.getAttribute('role'));
  });
});
