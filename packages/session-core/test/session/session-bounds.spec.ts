import { inspect } from 'node:util';
import { type SessionBound, SessionBoundError } from '../../src/errors/session.errors.js';
import {
  COOKIE_MAX_AGE_ATTRIBUTE,
  CSRF_ATTRIBUTE,
  REMEMBER_ME_ATTRIBUTE,
  PRINCIPAL_ATTRIBUTE,
} from '../../src/session/attribute-names.js';
import { type Session } from '../../src/session/session.js';
import { UNBOUNDED } from '../support/unbounded.js';
import { TrackedSession } from '../../src/session/tracked-session.js';
import { SecurityEvents } from '../../src/security-events/security-events.js';
import { RecordingWriter } from '../support/recording.writer.js';

const SECRET = 'hunter2';

describe('a session with bounds', () => {
  let writer: RecordingWriter;
  beforeEach(() => {
    writer = new RecordingWriter();
    writer.bounds = { maxAttributes: 3, maxAttributeNameSize: 10, maxAttributeSize: 100, maxSessionSize: 200 };
  });

  const created = () => TrackedSession.create(writer, { ...writer.timeouts });
  /** So many attributes of 5 bytes each: a name of two and a text of three. */
  const attributes = (count: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, i) => [`a${i}`, '"x"'] as const));

  it.each<[SessionBound, (session: Session) => void, string]>([
    ['maxAttributes', (s) => s.setAttribute('d', 1), 'Session attribute "d" would be attribute 4 of its session, more'],
    ['maxAttributeNameSize', (s) => s.setAttribute('äöüäöü', 1), 'Session attribute "äöüäöü" has a name of 12 bytes'],
    ['maxAttributeSize', (s) => s.setAttribute('a0', 'ä'.repeat(50)), 'Session attribute "a0" takes 102 bytes, more'],
    [
      'maxSessionSize',
      (s) => ['a0', 'a1', 'a2'].forEach((name) => s.setAttribute(name, 'x'.repeat(80))),
      'Session attribute "a2" would make its session take 252 bytes, more',
    ],
  ])('refuses where it is set what exceeds %s', async (bound, change, message) => {
    const session = writer.restore(attributes(3));
    const error = errorOf(() => change(session));
    expect(error).toBeInstanceOf(SessionBoundError);
    expect(error).toMatchObject({ bound, limit: writer.bounds[bound], message: expect.stringContaining(message) });
    expect((error as Error).message).toContain(`the bound \`${bound}\` allows (${writer.bounds[bound]}): `);
  });

  it('responds with 413, and names neither the attribute nor the bound to the client', () => {
    const error = errorOf(() => created().setAttribute('a', SECRET.repeat(20))) as SessionBoundError;
    expect(error.getStatus()).toBe(413);
    expect(error.getResponse()).toEqual({
      statusCode: 413,
      message: 'Session data too large',
      error: 'Payload Too Large',
      reason: 'session-too-large',
    });
    expect(inspect(error, { depth: Infinity })).not.toContain(SECRET);
  });

  it('shows only the beginning of a name that is too long', () => {
    const error = errorOf(() => created().setAttribute('n'.repeat(100_000), 1)) as SessionBoundError;
    expect(error.message).toContain(`"${'n'.repeat(64)}..." has a name of 100000 bytes`);
    expect(error.attributeName.length).toBeLessThan(100);
  });

  it('rejects a save and an update for which the store returns a bound, and keeps all changes', async () => {
    const reached: unknown[] = [];
    writer.securityEvents = new SecurityEvents({ shownId: (id) => id, factsOf: () => ({}) });
    writer.securityEvents.listen({
      listensTo: () => true,
      replacesLog: () => true,
      hear: ({ limit }) => reached.push(limit),
    });
    const [first, second] = [writer.restore(attributes(2)), writer.restore(attributes(2))];
    first.setAttribute('b', 1);
    first.removeAttribute('a0');
    writer.reply({ outcome: 'full', bound: 'maxAttributes' }, { outcome: 'full', bound: 'maxSessionSize' });
    const message =
      'Session attribute "b" is too much together with what other requests have stored, ' +
      'more than the bound `maxAttributes` allows (3): ';
    const errors = [
      { bound: 'maxAttributes', limit: 3, attributeName: 'b', message: expect.stringContaining(message) as string },
      { bound: 'maxSessionSize', limit: 200, attributeName: 'c' },
    ];
    await expect(first.save()).rejects.toMatchObject(errors[0]!);
    await expect(second.updateAttribute('c', () => 1)).rejects.toMatchObject(errors[1]!);
    expect(reached).toEqual(['maxAttributes', 'maxSessionSize']);
    expect([first.isDirty, first.isGone, second.isDirty, second.isGone]).toEqual([true, false, false, false]);
    await expect(first.save()).resolves.toBe('saved');
    expect(writer.attributes).toEqual([{ b: '1', a0: null }, { c: '1' }, { b: '1', a0: null }]);
  });

  it('keeps an attribute as it was when a change of it is refused', async () => {
    const session = writer.restore({ a: '[1]' });
    expect(() => session.setAttribute('a', 'x'.repeat(200))).toThrow(SessionBoundError);
    expect(session.getAttribute('a')).toEqual([1]);
    await session.save();
    expect(writer.writes).toEqual([]);
  });

  it('takes exactly as much as the bounds allow', async () => {
    const session = created();
    session.setAttribute('a', 'x'.repeat(98));
    session.setAttribute('b', 'x'.repeat(94));
    session.setAttribute('c', 1);
    expect(() => session.setAttribute('c', 10)).toThrow('would make its session take 201 bytes');
    await session.save();
    expect(writer.attributes).toEqual([{ a: `"${'x'.repeat(98)}"`, b: `"${'x'.repeat(94)}"`, c: '1' }]);
  });

  // Each with as many bytes as UTF-8 gives a character; the last one has two UTF-16 units.
  it.each([
    ['a', 1],
    ['ä', 2],
    ['中', 3],
    ['😀', 4],
  ])('counts bytes of UTF-8, however few characters they are: %s', (character, bytes) => {
    const boundFor = (change: (session: Session) => void): SessionBound | undefined => {
      try {
        change(created());
      } catch (error) {
        return (error as SessionBoundError).bound;
      }
      return undefined;
    };
    for (let count = 1; count <= 120; count++) {
      const text = character.repeat(count);
      expect([
        count,
        boundFor((session) => session.setAttribute(text, 1)),
        boundFor((session) => session.setAttribute('a', text)),
      ]).toEqual([
        count,
        count * bytes > 10 ? 'maxAttributeNameSize' : undefined,
        count * bytes + 2 > 100 ? 'maxAttributeSize' : undefined,
      ]);
    }
  });

  it('has room again for what was removed, in the same request and in a later one', async () => {
    const session = writer.restore(attributes(3));
    session.removeAttribute('a0');
    session.setAttribute('d', 1);
    await session.save();
    expect(() => session.setAttribute('e', 1)).toThrow('would be attribute 4');
    session.removeAttribute('d');
    session.setAttribute('e', 1);
    await session.save();
    expect(writer.attributes).toEqual([
      { a0: null, d: '1' },
      { d: null, e: '1' },
    ]);
  });

  it('refuses at the save what objects have become that were changed in place, each time', async () => {
    const session = writer.restore({ a: '[]', b: '[]', c: '[]' });
    for (const name of ['a', 'b', 'c']) session.getRequiredAttribute<string[]>(name).push('x'.repeat(80));
    await expect(session.save()).rejects.toMatchObject({ bound: 'maxSessionSize' });
    await expect(session.save()).rejects.toMatchObject({ bound: 'maxSessionSize' });
    session.getRequiredAttribute<string[]>('a').push('x'.repeat(80));
    await expect(session.save()).rejects.toMatchObject({ bound: 'maxAttributeSize' });
    expect(writer.writes).toEqual([]);
    for (const name of ['a', 'b']) session.getRequiredAttribute<string[]>(name).length = 0;
    await expect(session.save()).resolves.toBe('saved');
  });

  it('refuses at the save what an object has become since it was set, each time', async () => {
    const session = created();
    const lists = ['a', 'b', 'c'].map((name) => {
      const list: string[] = [];
      session.setAttribute(name, list);
      return list;
    });
    for (const list of lists) list.push('x'.repeat(80));
    await expect(session.save()).rejects.toMatchObject({ bound: 'maxSessionSize' });
    await expect(session.save()).rejects.toMatchObject({ bound: 'maxSessionSize' });
    expect(writer.writes).toEqual([]);
  });

  it('refuses what updateAttribute() would store, before it is written', async () => {
    const session = writer.restore(attributes(3));
    await expect(session.updateAttribute('d', () => 1)).rejects.toMatchObject({ bound: 'maxAttributes' });
    await expect(session.updateAttribute('a0', () => 'x'.repeat(200))).rejects.toMatchObject({
      bound: 'maxAttributeSize',
    });
    await expect(session.updateAttribute('n'.repeat(11), () => 1)).rejects.toMatchObject({
      bound: 'maxAttributeNameSize',
    });
    await session.updateAttribute('a0', () => 'x'.repeat(90));
    await session.updateAttribute('a1', () => 'x'.repeat(90));
    await expect(session.updateAttribute('a2', () => 'x'.repeat(90))).rejects.toMatchObject({
      bound: 'maxSessionSize',
    });
    expect(writer.writes).toHaveLength(2);
    await expect(created().updateAttribute('a', () => 'x'.repeat(200))).rejects.toThrow(SessionBoundError);
  });

  it.each([
    ['of a new session', created],
    ['that was read', () => writer.restore({ a: '[]' })],
  ])('let an update of an object %s that has grown too large in place throw its own error', async (_, open) => {
    const session = open();
    if (session.isNew) session.setAttribute('a', []);
    session.getAttribute<string[]>('a')!.push('x'.repeat(200));
    const update = session.updateAttribute<string[]>('a', (list = []) => {
      list.push('changed');
      throw new Error('mine');
    });
    await expect(update).rejects.toThrow('mine');
    expect(session.getAttribute('a')).toEqual(['x'.repeat(200)]);
    await expect(session.save()).rejects.toThrow(SessionBoundError);
  });

  it('reads and changes what was stored before, as long as it does not grow', async () => {
    const large = JSON.stringify({ list: ['x'.repeat(300)] });
    const session = writer.restore({ ...attributes(3), 'a long name': '1', large });
    expect(session.getAttribute('large')).toEqual({ list: ['x'.repeat(300)] });
    session.setAttribute('a0', 'y');
    session.setAttribute('a long name', 2);
    await expect(session.save()).resolves.toBe('saved');
    expect(() => session.setAttribute('a0', 'longer')).toThrow('would make its session take');
    session.removeAttribute('large');
    expect(() => session.setAttribute('new', 1)).not.toThrow();
    session.removeAttribute('a1');
    await expect(session.save()).resolves.toBe('saved');
    expect(() => session.setAttribute('newer', 1)).toThrow(SessionBoundError);
  });

  it('never drops an object in silence that is too large and was changed in place', async () => {
    const session = writer.restore({ large: JSON.stringify(Array(200).fill(1)) });
    await expect(session.save()).resolves.toBe('saved');
    session.getRequiredAttribute<number[]>('large').push(2);
    await expect(session.save()).rejects.toMatchObject({ bound: 'maxAttributeSize' });
  });

  it("does not count the library's own attributes, so a planted full session locks no user out", async () => {
    writer.bounds = { ...writer.bounds, maxAttributeNameSize: 128 };
    const session = writer.restore({ ...attributes(3), a2: JSON.stringify('x'.repeat(180)) });
    session.signIn('ann');
    session.setOwnAttribute(CSRF_ATTRIBUTE, 'token');
    session.setOwnAttribute(REMEMBER_ME_ATTRIBUTE, true);
    session.setOwnAttribute(COOKIE_MAX_AGE_ATTRIBUTE, 60);
    await session.save();
    expect(writer.writes[0]).toMatchObject({ kind: 'update', signIn: expect.anything() });
    expect(() => session.setAttribute('nest-session.mine', 1)).toThrow(SessionBoundError);
    expect(() => session.setAttribute('nest-session.visitor.mine', 1)).toThrow(SessionBoundError);
  });

  it("does not apply to the texts of the library's own attributes, but for the principal", async () => {
    writer.bounds = { ...writer.bounds, maxAttributeNameSize: 128, maxAttributeSize: 3 };
    const session = writer.restore();
    session.setOwnAttribute(REMEMBER_ME_ATTRIBUTE, true);
    await session.updateOwnAttribute(CSRF_ATTRIBUTE, () => 'x'.repeat(88));
    await session.save();
    expect(writer.attributes).toEqual([
      { [CSRF_ATTRIBUTE]: expect.any(String) as string },
      { [REMEMBER_ME_ATTRIBUTE]: 'true' },
    ]);
    expect(() => session.signIn('ann')).toThrow(SessionBoundError);
  });

  it('lets a user sign in while an object of a full session changes in place', async () => {
    writer.bounds = { ...writer.bounds, maxAttributeNameSize: 128 };
    const session = writer.restore({ a: JSON.stringify(['x'.repeat(95)]), b: JSON.stringify('x'.repeat(97)) });
    expect(() => session.setAttribute('c', 1)).toThrow('would make its session take 202 bytes');
    session.getRequiredAttribute<string[]>('a')[0] = 'y'.repeat(95);
    session.signIn('ann');
    await expect(session.save()).resolves.toBe('saved');
  });

  it('lets a user sign in if the attributes that the sign-in keeps exceed a bound', async () => {
    writer.bounds = { ...writer.bounds, maxAttributeNameSize: 128 };
    const large = JSON.stringify('x'.repeat(300));
    const session = writer.restore({ ...attributes(3), 'nest-session.visitor.v': large });
    session.setAttribute('nest-session.visitor.v', 'x');
    for (const name of ['a0', 'a1', 'a2']) session.setAttribute(name, 'x'.repeat(80));
    session.signIn('ann');
    await expect(session.save()).resolves.toBe('saved');
    expect(writer.attributes[0]).toMatchObject({ [PRINCIPAL_ATTRIBUTE]: '"ann"' });
  });

  it('changes nothing in a sign-in with a name that is too long', async () => {
    const session = writer.restore({ [PRINCIPAL_ATTRIBUTE]: '"ann"', 'nest-session.visitor.a': '1' });
    const { id } = session;
    expect(() => session.signIn('x'.repeat(1000))).toThrow(SessionBoundError);
    expect(() => (session.principalName = 'x'.repeat(1000))).toThrow(SessionBoundError);
    expect(session).toMatchObject({ id, principalName: 'ann', authenticatedAt: undefined, isDirty: false });
    expect(session.getAttribute('nest-session.visitor.a')).toBe(1);
    await session.save();
    expect(writer.writes).toEqual([]);
  });

  it('takes 10,000 attributes in a moment where it may', () => {
    writer.bounds = { ...UNBOUNDED, maxAttributes: 10_000, maxSessionSize: 2 ** 29 };
    const session = writer.restore(attributes(3));
    for (let i = 0; i < 10_000; i++) session.setAttribute(`a${i}`, i);
    expect(() => session.setAttribute('one more', 1)).toThrow('would be attribute 10001 of its session');
  });
});

function errorOf(action: () => void): unknown {
  try {
    action();
  } catch (error) {
    return error;
  }
  throw new Error('Nothing was refused');
}
