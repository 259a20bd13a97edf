import { inspect } from 'node:util';
import { SessionAttributeError, SessionBoundError } from '@nest-session/core';
import { RedisSessionRepository } from '@nest-session/redis';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { RedisServer } from '@nest-session/testing';
import fc from 'fast-check';
import { Redis } from 'ioredis';
import { App } from '../support/app.fixture.js';
import { codePoint } from '../support/code-point.js';

LeakGuard.install();

const PROTOTYPE_NAMES = ['__proto__', 'constructor', 'prototype', 'toString', 'hasOwnProperty', 'valueOf', 'then'];
const KEY_NAMES = [
  '*',
  '{x}',
  'expires:x',
  'moved:x',
  'a:b',
  '[a-z]',
  '?',
  '\\',
  '\r\n',
  '\0',
  ' ',
  'ä',
  '😀',
  '%0d%0a',
];

const names = fc.oneof(
  fc.constantFrom(...PROTOTYPE_NAMES, ...KEY_NAMES),
  fc.string({ minLength: 1, unit: 'grapheme' }),
  fc.string({ minLength: 1, unit: codePoint }).filter((name) => !/\p{Surrogate}/u.test(name)),
);

/** Without keys `__proto__`, which are refused. */
const storable = fc.jsonValue().filter((value) => !JSON.stringify(value).includes('"__proto__":'));

let server: RedisServer;
let client: Redis;
let app: App;
let sessions: RedisSessionRepository;
beforeAll(async () => {
  server = await RedisServer.start();
  client = new Redis(server.url);
  app = await App.start({ redis: { url: server.url, commandTimeout: '1m' }, handlers: false });
  sessions = app.nest.get(RedisSessionRepository, { strict: false });
});
afterAll(async () => {
  await app.stop();
  client.disconnect();
  await server.stop();
});

describe('names with a meaning in JavaScript or Redis', () => {
  it('are valid names of attributes', async () => {
    await fc.assert(
      fc.asyncProperty(fc.dictionary(names, storable), async (attributes) => {
        const given = Object.entries(attributes).filter(([, value]) => value !== null);
        const session = sessions.createSession();
        session.setAttribute('first', true);
        for (const [name, value] of given) session.setAttribute(name, value);
        expect(await session.save()).toBe('saved');

        const loaded = (await sessions.findById(session.id))!;
        expect(loaded.attributeNames.toSorted()).toEqual([...new Set(['first', ...given.map(([n]) => n)])].toSorted());
        // JSON has no -0.
        for (const [name, value] of given) expect(loaded.getAttribute(name)).toEqual(JSON.parse(JSON.stringify(value)));
        for (const name of PROTOTYPE_NAMES) {
          if (!Object.hasOwn(attributes, name)) expect(loaded.getAttribute(name)).toBeUndefined();
        }
        for (const [name] of given) loaded.removeAttribute(name);
        loaded.setAttribute('first', false);
        await loaded.save();
        expect((await sessions.findById(session.id))!.attributeNames).toEqual(['first']);
      }),
      { numRuns: 200 },
    );
    expect(Object.keys(Object.prototype)).toEqual([]);
  });

  it('are valid names of principals, each found by exactly its name', async () => {
    await fc.assert(
      fc.asyncProperty(names, names, async (name, other) => {
        const session = sessions.createSession();
        session.principalName = name;
        await session.save();
        const found = async (principal: string) => (await sessions.findByPrincipalName(principal)).map(({ id }) => id);
        expect(await found(name)).toContain(session.id);
        if (other !== name) expect(await found(other)).not.toContain(session.id);
        expect((await sessions.findById(session.id))!.principalName).toBe(name);
        await sessions.deleteById(session.id);
        expect(await found(name)).not.toContain(session.id);
      }),
      { numRuns: 200 },
    );
    expect(await client.keys('nest:session:index:*')).toEqual([]);
  });

  it('are ids of no session', async () => {
    await fc.assert(
      fc.asyncProperty(fc.oneof(names, fc.string({ unit: codePoint })), async (id) => {
        expect(await sessions.findById(id)).toBeNull();
        expect(await sessions.deleteById(id)).toBe(false);
      }),
    );
  });

  it('find no session in an unknown index', async () => {
    for (const name of [...PROTOTYPE_NAMES, ...KEY_NAMES]) expect(await sessions.findByIndex(name, name)).toEqual([]);
  });
});

describe('values that cannot be stored', () => {
  const SECRET = 'hunter2';
  const circular: Record<string, unknown> = { SECRET };
  circular['self'] = circular;
  const deep = () => {
    let value: object = { SECRET };
    for (let depth = 0; depth < 100_000; depth++) value = { value };
    return value;
  };

  it.each<[string, () => unknown, string]>([
    ['a BigInt', () => 1234567890123n, 'holds a value that is a bigint'],
    ['a BigInt inside', () => ({ SECRET, n: [1n] }), 'holds a value at .n[0] that is a bigint'],
    ['an object that refers to itself', () => circular, 'holds a value at .self that refers back to itself'],
    ['an object nested too deeply', deep, 'holds a value that is nested too deeply'],
    ['undefined in an array', () => ({ SECRET, a: [undefined] }), 'holds a value at .a[0] that is undefined'],
    ['an instance of a class', () => ({ SECRET, a: new (class Dto {})() }), 'holds a value at .a that is a Dto'],
    ['a function', () => () => SECRET, 'holds a value that is a function'],
    ['a symbol', () => Symbol(SECRET), 'holds a value that is a symbol'],
    ['a date', () => new Date(0), 'holds a value that is a Date'],
    ['a key __proto__', () => [JSON.parse('{"__proto__":{}}')], 'holds a key `__proto__` at [0].__proto__'],
  ])('are rejected at setAttribute, with the name of the attribute: %s', async (_, make, problem) => {
    const session = sessions.createSession();
    session.setAttribute('kept', 1);
    const error = errorOf(() => session.setAttribute('__proto__', make()));
    expect(error).toBeInstanceOf(SessionAttributeError);
    expect((error as Error).message).toContain(`Session attribute "__proto__" ${problem}`);
    expect(inspect(error, { depth: Infinity })).not.toContain(SECRET);

    await session.save();
    const stored = (await sessions.findById(session.id))!;
    await expect(stored.updateAttribute('list', make)).rejects.toThrow(`Session attribute "list" ${problem}`);
    expect((await sessions.findById(session.id))!.attributeNames).toEqual(['kept']);
  });

  it.each<[string, () => unknown, string]>([
    ['5 MB', () => SECRET.padEnd(5 * 1024 * 1024), 'takes 5242882 bytes, more than the bound `maxAttributeSize`'],
    ['5 MB in many pieces', () => Array(800_000).fill(SECRET), 'takes 8000001 bytes, more than the bound'],
    ['5 MB that are 2 MB of characters', () => '\u20ac'.repeat(2 ** 20), 'takes 3145730 bytes, more than the bound'],
  ])('are rejected when they exceed a bound, with the name of the attribute: %s', async (_, make, problem) => {
    const session = sessions.createSession();
    session.setAttribute('kept', 1);
    const error = errorOf(() => session.setAttribute('__proto__', make()));
    expect(error).toBeInstanceOf(SessionBoundError);
    expect((error as Error).message).toContain(`Session attribute "__proto__" ${problem}`);
    expect(inspect(error, { depth: Infinity })).not.toContain(SECRET);

    await session.save();
    const stored = (await sessions.findById(session.id))!;
    await expect(stored.updateAttribute('list', make)).rejects.toThrow(`Session attribute "list" ${problem}`);
    expect((await sessions.findById(session.id))!.attributeNames).toEqual(['kept']);
  });

  it('are rejected at the save when an object has become one', async () => {
    const session = sessions.createSession();
    const list: string[] = [];
    session.setAttribute('list', list);
    await session.save();
    const stored = (await sessions.findById(session.id))!;
    stored.getRequiredAttribute<string[]>('list').push(SECRET.repeat(200_000));
    await expect(stored.save()).rejects.toThrow('Session attribute "list" takes 1400004 bytes');
    expect((await sessions.findById(session.id))!.getAttribute('list')).toEqual([]);
  });

  it('remove the attribute when they are undefined or null', async () => {
    const session = sessions.createSession();
    session.setAttribute('a', 1);
    session.setAttribute('b', undefined);
    session.principalName = undefined;
    await session.save();
    expect((await sessions.findById(session.id))!.attributeNames).toEqual(['a']);
  });

  it.each<[unknown, string]>([
    ['', 'is a non-empty string'],
    ['\ud800', 'of well-formed Unicode'],
    [Symbol.iterator, 'is a non-empty string'],
    [{ toString: () => 'name' }, 'is a non-empty string'],
  ])('are rejected as names, too: %p', (name, problem) => {
    expect(() => sessions.createSession().setAttribute(name as string, 1)).toThrow(problem);
  });
});

function errorOf(action: () => void): unknown {
  try {
    action();
    return undefined;
  } catch (error) {
    return error;
  }
}
