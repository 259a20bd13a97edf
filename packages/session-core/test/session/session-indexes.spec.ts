import { Controller, Get, Post } from '@nestjs/common';
import { PRINCIPAL_ATTRIBUTE } from '../../src/session/attribute-names.js';
import {
  InvalidSessionOptionsError,
  JsonAttributeSerializer,
  MapSessionRepository,
  PRINCIPAL_NAME_INDEX_NAME,
  Session,
  type SessionIndex,
  SessionIndexError,
} from '../../src/index.js';
import { SessionIndexes } from '../../src/internal.js';
import { resolveSessionOptions } from '../../src/configuration/session.options.js';
import { GatedRepository } from '../support/gated.repository.js';
import { closeApps, startApp } from '../support/session.app.js';

afterEach(closeApps);

interface User {
  readonly tenant?: unknown;
}

const tenant: SessionIndex = (session) => session.getAttribute<{ tenant?: string }>('user')?.tenant;

function changesOf(indexes: Record<string, SessionIndex>, attributes: Record<string, unknown>) {
  const serializer = new JsonAttributeSerializer();
  const texts = Object.entries(attributes).map(
    ([name, value]) => [name, value === null ? null : serializer.serialize(value)] as const,
  );
  return Object.fromEntries(new SessionIndexes(indexes).changesOf(new Map(texts), serializer));
}

describe('the changes of indexes', () => {
  it('follow from the attribute that each index reads, and from no other', () => {
    expect(changesOf({ tenant }, { user: { tenant: 'acme' }, other: 1 })).toEqual({ tenant: 'acme' });
    expect(changesOf({ tenant }, { other: 1 })).toEqual({});
    expect(changesOf({ tenant }, { [PRINCIPAL_ATTRIBUTE]: 'ann' })).toEqual({
      [PRINCIPAL_NAME_INDEX_NAME]: 'ann',
    });
    for (const user of [null, {}, { tenant: '' }]) expect(changesOf({ tenant }, { user })).toEqual({ tenant: null });
  });

  it('can follow from the name of the principal, and from an attribute with a default', () => {
    const company: SessionIndex = ({ principalName }) => principalName?.split('@')[1];
    const changes = changesOf({ company }, { [PRINCIPAL_ATTRIBUTE]: 'ann@acme' });
    expect(changes).toEqual({ [PRINCIPAL_NAME_INDEX_NAME]: 'ann@acme', company: 'acme' });
    const first: SessionIndex = ({ getAttributeOrDefault }) => getAttributeOrDefault<string[]>('groups', [])[0];
    expect(changesOf({ first }, { groups: ['a', 'b'] })).toEqual({ first: 'a' });
  });

  it('are derived from copies, which one index cannot change for another', () => {
    const spoils: SessionIndex = ({ getAttribute }) => {
      const user = getAttribute<{ tenant?: string }>('user');
      if (user) user.tenant = 'spoilt';
      return user?.tenant;
    };
    expect(changesOf({ spoils, tenant }, { user: { tenant: 'acme' } })).toEqual({ spoils: 'spoilt', tenant: 'acme' });
  });

  it('have values of at most 256 bytes: longer ones are hashed, and so is what looks like a hash', () => {
    const termOf = (value: string) => changesOf({ tenant }, { user: { tenant: value } })['tenant']!;
    const plain = ['a', 'a:b', 'v'.repeat(256), 'é'.repeat(128)];
    for (const value of plain) expect(termOf(value)).toBe(value);
    const hashed = ['v'.repeat(257), 'é'.repeat(129), termOf('v'.repeat(257)), 'sha256:'];
    const terms = hashed.map(termOf);
    for (const term of terms) expect(term).toMatch(/^sha256:[\w-]{43}$/);
    expect(new Set(terms).size).toBe(terms.length);
  });

  it.each([
    [
      'returns a number',
      (user: User) => user.tenant,
      { tenant: 7 },
      'has a function that returns a value of type number',
    ],
    ['returns an object', (user: User) => user, {}, 'has a function that returns a value of type object'],
    ['is not well-formed', (user: User) => user.tenant, { tenant: 'x\ud800' }, 'is not well-formed Unicode'],
    [
      'returns String() of nothing',
      (user: User) => String(user.tenant),
      {},
      'returns the text "undefined", which a missing',
    ],
    [
      'returns String() of an object',
      (user: User) => Object.prototype.toString.call(user),
      {},
      'returns the text "[object Object]"',
    ],
    ['returns String() of no number', (user: User) => String(Number(user.tenant)), {}, 'returns the text "NaN"'],
  ])('fail with an error that names the index when its function %s', (_, read, user, message) => {
    const broken = (session: { getAttribute<T>(name: string): T | undefined }) => {
      const value = session.getAttribute<User>('user');
      return value && (read(value) as string);
    };
    const fail = () => changesOf({ broken }, { user });
    expect(fail).toThrow(SessionIndexError);
    expect(fail).toThrow(`Session index "broken" `);
    expect(fail).toThrow(message);
  });

  it('fail when a function reads another attribute later, and show what it has thrown, but no value', () => {
    const wanders: SessionIndex = ({ getAttribute }) => getAttribute<string>('user') && getAttribute<string>('other');
    expect(() => changesOf({ wanders }, { user: 'secret' })).toThrow(
      'Session index "wanders" has a function that reads more than the attribute "user": keep in one attribute all that ' +
        'it depends on',
    );
    const thrown = new Error('secret');
    const throws: SessionIndex = ({ getAttribute }) => {
      if (getAttribute('user')) throw thrown;
      return undefined;
    };
    let error: unknown;
    try {
      changesOf({ throws }, { user: 'secret' });
    } catch (caught) {
      error = caught;
    }
    expect(error).toMatchObject({
      name: 'SessionIndexError',
      indexName: 'throws',
      message: 'Session index "throws" has a function that throws',
      cause: thrown,
    });
  });
});

it('a session leaves the indexes of the attributes that it loses, and no others', () => {
  const indexes = new SessionIndexes({ tenant, 'a:b': ({ getAttribute }) => getAttribute<string>('other') });
  const names = [PRINCIPAL_NAME_INDEX_NAME, 'tenant', 'a%3Ab'];
  expect(indexes.leave()).toEqual(new Map(names.map((name) => [name, null])));
  expect(indexes.leave((attribute) => attribute !== 'user')).toEqual(new Map([['tenant', null]]));
});

describe('a save whose index cannot be derived', () => {
  const indexes = new SessionIndexes({ tenant });

  it('rejects, stores nothing, and can be repeated with another value', async () => {
    const store = new MapSessionRepository({ indexes });
    const session = store.createSession();
    session.setAttribute('user', { tenant: 7 });
    await expect(session.save()).rejects.toThrow(SessionIndexError);
    expect(await store.findById(session.id)).toBeNull();
    session.setAttribute('user', { tenant: 'acme' });
    expect(await session.save()).toBe('saved');
    await expect(session.updateAttribute('user', () => ({ tenant: 7 }))).rejects.toThrow(SessionIndexError);
    expect((await store.findById(session.id))!.getAttribute('user')).toEqual({ tenant: 'acme' });
    expect(await store.findByIndex('tenant', 'acme')).toHaveLength(1);
  });

  it('is a 500 response', async () => {
    @Controller()
    class UserController {
      @Post('user')
      set(@Session() session: Session) {
        session.setAttribute('user', { tenant: 7 });
      }

      @Get('user')
      get(@Session() session: Session) {
        return { user: session.getAttribute('user') ?? null };
      }
    }
    const { agent, log } = await startApp({
      controllers: [UserController],
      store: new GatedRepository({ indexes }),
    });
    const client = agent();
    const { status, setCookies } = await client.post('/user');
    expect({ status, setCookies }).toEqual({ status: 500, setCookies: [] });
    expect(log.lines.join('\n')).toContain('Session index "tenant"');
    expect((await client.get('/user')).json()).toEqual({ user: null });
  });
});

it('a principal whose name is half a character is not stored under the name of another', async () => {
  const store = new MapSessionRepository();
  const signIn = async (name: string) => {
    const session = store.createSession();
    session.principalName = name;
    await session.save();
  };
  await signIn('x\ufffd');
  await expect(signIn('x\ud800')).rejects.toThrow();
  await expect(signIn('x\udfff')).rejects.toThrow();
  expect(await store.findByPrincipalName('x\ufffd')).toHaveLength(1);
  expect(await store.findByPrincipalName('x\ud800')).toEqual([]);
});

describe('the option indexes', () => {
  it.each([
    [{ '': tenant }, 'the index "" must have a name.'],
    [{ 'a\ud800': tenant }, 'must have a name of well-formed Unicode.'],
    [{ ['a'.repeat(257)]: tenant }, 'must have a name of at most 256 bytes.'],
    [{ [PRINCIPAL_NAME_INDEX_NAME]: tenant }, 'has the name of the index of principals, which is always there.'],
    [{ tenant: () => 'acme' }, 'the index "tenant" must return undefined for a session without attributes.'],
    [{ tenant: () => undefined }, 'the index "tenant" must read one attribute, the same one for every session'],
    [
      { tenant: (session) => session.getAttribute<string>('a') ?? session.getAttribute<string>('b') },
      'the index "tenant" must read one attribute, the same one for every session: keep in one attribute all that',
    ],
    [
      { tenant: (session) => session.getAttribute<User>('user')!.tenant as string },
      'the index "tenant" must return undefined for a session without attributes.',
    ],
    [{ tenant: (async () => undefined) as unknown as SessionIndex }, 'must return undefined'],
  ] as [Record<string, SessionIndex>, string][])('refuses %p at start: %s', (indexes, problem) => {
    expect(() => resolveSessionOptions({ indexes })).toThrow(InvalidSessionOptionsError);
    expect(() => resolveSessionOptions({ indexes })).toThrow(problem);
  });

  it.each([[[tenant]], [{ tenant: 'user' }], ['tenant']])('refuses %p, which is no object of functions', (indexes) => {
    expect(() => resolveSessionOptions({ indexes: indexes as never })).toThrow(
      'Option `indexes` must be an object of functions, by the names of the indexes.',
    );
  });

  it('reports all problems at once', () => {
    expect(() => resolveSessionOptions({ timeout: 5 as never, indexes: { a: () => 'x', b: () => 'y' } })).toThrow(
      /`timeout`.*the index "a".*the index "b"/,
    );
  });
});
