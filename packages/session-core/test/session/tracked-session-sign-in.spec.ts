import { PRINCIPAL_ATTRIBUTE } from '../../src/session/attribute-names.js';
import { SessionStateError, TooManySessionsError } from '../../src/errors/session.errors.js';
import type { UpdateSession } from '../../src/session/session-change.js';
import { PRINCIPAL_NAME_INDEX_NAME } from '../../src/session/session.js';
import { TrackedSession } from '../../src/session/tracked-session.js';
import { RecordingWriter } from '../support/recording.writer.js';

const TIMEOUTS = { maxInactiveInterval: 1800, absoluteTimeout: -1 };

describe('TrackedSession', () => {
  let writer: RecordingWriter;

  beforeEach(() => {
    writer = new RecordingWriter();
  });

  it.each<[string, (session: TrackedSession) => unknown]>([
    ['signIn()', (session) => session.signIn('ann')],
    ['principalName', (session) => (session.principalName = 'ann')],
    ['startAnew()', (session) => session.startAnew()],
  ])('changes nothing under its old token where no other one can be drawn: %s', async (_, change) => {
    const session = writer.restore({ a: '1' });
    session.bindTo({ headersSent: false });
    writer.drawKey = () => {
      throw new Error('no randomness');
    };
    expect(() => change(session)).toThrow('no randomness');
    expect([session.principalName, session.getAttribute('a')]).toEqual([undefined, 1]);
    await session.save();
    expect(writer.writes).toEqual([]);
  });

  it.each<[string, unknown]>([
    ...['undefined', 'null', 'NaN', 'Infinity', '[object Object]', '[object Promise]'].map((text) => [
      'is the text',
      text,
    ]),
    ['is a non-empty string', ''],
    ['must be a string, not number', NaN],
    ['must be a string, not bigint', 1n],
    ['must be a string, not object', { toString: () => 'ann' }],
    ['must be a string, not object', Promise.resolve('ann')],
    ['must be a string, not boolean', true],
  ] as [string, unknown][])('signs nobody in by a name that %s: %p', async (message, name) => {
    const session = writer.restore({ a: '1' });
    expect(() => session.signIn(name as string)).toThrow(message);
    expect(() => (session.principalName = name as string)).toThrow(message);
    await session.save();
    expect(writer.writes).toEqual([]);
  });

  it('takes a list of the attributes that it keeps, and no name alone', async () => {
    const session = writer.restore({ items: '1' });
    session.bindTo({ headersSent: false });
    expect(() => session.signIn('ann', { keep: 'items' as unknown as string[] })).toThrow(
      '`keep` of signIn() is a list',
    );
    expect([session.principalName, session.getAttribute('items')]).toEqual([undefined, 1]);
  });

  it('changes nothing under its old token where a resolver remembers it for no whole seconds', async () => {
    const session = writer.restore({ a: '1' });
    session.bindTo({ headersSent: false, rememberedFor: 1.5 });
    expect(() => session.signIn('ann', { remember: true })).toThrow(RangeError);
    await session.save();
    expect(writer.writes).toEqual([]);
  });

  it('is not refused again, once the store has refused what it never does', async () => {
    const session = TrackedSession.create(writer, TIMEOUTS);
    session.signIn('ann');
    session.maxInactiveInterval = 'never';
    writer.reply(() => Promise.reject(new SessionStateError('A session must have an idle timeout')));
    await expect(session.save()).rejects.toThrow(SessionStateError);
    session.maxInactiveInterval = 60;
    expect(await session.save()).toBe('saved');
    expect(writer.writes).toMatchObject([{ maxInactiveInterval: -1 }, { maxInactiveInterval: 60 }]);
  });

  describe('that starts anew', () => {
    const changes = () => writer.writes.map(({ kind, ...write }) => ({ kind, ...write }) as Partial<UpdateSession>);

    it('is rotated and cleared in one write, with what is set after it', async () => {
      const session = writer.restore({ a: '1' });
      session.setAttribute('b', 2);
      session.startAnew();
      session.setAttribute('c', 3);
      expect(session.attributeNames).toEqual(['c']);
      await session.save();
      expect(changes()).toEqual([expect.objectContaining({ kind: 'update', newId: session.id, clears: true })]);
      expect(writer.attributes).toEqual([{ c: '3' }]);
      expect(changes()[0]!.indexes).toEqual(new Map([[PRINCIPAL_NAME_INDEX_NAME, null]]));
      session.setAttribute('c', 4);
      await session.save();
      expect(changes()[1]!.clears).toBeUndefined();
    });

    it('during a save keeps nothing of what that save writes', async () => {
      const session = writer.restore({ a: '1' });
      session.setAttribute('b', 2);
      const saving = session.save();
      session.startAnew();
      session.setAttribute('c', 3);
      await saving;
      expect(session.attributeNames).toEqual(['c']);
      await session.save();
      expect(changes().map(({ clears = false }) => clears)).toEqual([false, true]);
      expect(writer.attributes).toEqual([{ b: '2' }, { c: '3' }]);
    });

    it('again during a save is cleared again', async () => {
      const session = writer.restore({ a: '1' });
      session.startAnew();
      session.setAttribute('b', 2);
      const saving = session.save();
      await Promise.resolve();
      session.startAnew();
      await saving;
      await session.save();
      expect(changes().map(({ clears = false }) => clears)).toEqual([true, true]);
    });

    it('after a creation without a reply is cleared in the store as well', async () => {
      const session = TrackedSession.create(writer, TIMEOUTS);
      session.setAttribute('a', 1);
      writer.reply(() => Promise.reject(new Error('lost')));
      await expect(session.save()).rejects.toThrow('lost');
      session.startAnew();
      session.setAttribute('b', 2);
      await session.save();
      expect(changes().map(({ kind, clears = false }) => [kind, clears])).toEqual([
        ['create', false],
        ['create', false],
        ['update', true],
      ]);
    });

    it('is created as any other when it is new', async () => {
      const session = TrackedSession.create(writer, TIMEOUTS);
      session.setAttribute('a', 1);
      session.startAnew();
      session.setAttribute('b', 2);
      await session.save();
      session.setAttribute('b', 3);
      await session.save();
      expect(writer.attributes).toEqual([{ b: '2' }, { b: '3' }]);
      expect(changes()[1]!.clears).toBeUndefined();
    });
  });

  describe('with a limit of sessions', () => {
    const limits = () => writer.writes.map((change) => ('limit' in change ? change.limit : undefined));
    const limit = { principal: 'ann', atMost: 2, whenReached: 'refuse' };
    beforeEach(() => (writer.maxSessions = { perPrincipal: 2, whenReached: 'refuse' }));

    it('names it where it gets a principal, or another id while it has one', async () => {
      const session = TrackedSession.create(writer, TIMEOUTS);
      session.setAttribute('a', 1);
      await session.save();
      session.signIn('ann');
      await session.save();
      session.changeSessionId();
      await session.save();
      session.setAttribute('a', 2);
      await session.save();
      session.principalName = undefined;
      session.changeSessionId();
      await session.save();
      const created = TrackedSession.create(writer, TIMEOUTS);
      created.signIn('ann');
      await created.save();
      expect(limits()).toEqual([undefined, limit, limit, undefined, undefined, limit]);
    });

    it('names the principal as its index does', async () => {
      const session = writer.restore({ a: '1' });
      session.signIn('a'.repeat(300));
      await session.save();
      session.changeSessionId();
      await session.save();
      expect(limits().map((each) => each?.principal)).toEqual(Array(2).fill(expect.stringMatching(/^sha256:/)));
    });

    it('stays as it was when the store refuses it, and can be saved again', async () => {
      const session = writer.restore({ a: '1' });
      const { id } = session;
      session.signIn('ann');
      writer.reply({ outcome: 'refused' }, { outcome: 'refused' });
      await expect(session.save()).rejects.toThrow(TooManySessionsError);
      await expect(session.save()).rejects.toThrow(/already has 2 sessions/);
      expect([session.storedId, session.isDirty, session.tokenToSend]).toEqual([id, true, undefined]);
      expect(await session.save()).toBe('saved');
      expect(session.storedId).toBe(session.id);
      const fresh = TrackedSession.create(writer, TIMEOUTS);
      fresh.signIn('ann');
      writer.reply({ outcome: 'refused' });
      await expect(fresh.save()).rejects.toThrow(TooManySessionsError);
      expect(fresh.isNew).toBe(true);
    });
  });

  describe('that signs in', () => {
    const VISITORS = 'nest-session.visitor.token';
    const updates = () => writer.writes as UpdateSession[];

    it('is rotated in one write, with the rule of what stays, both timeouts, and what is set after it', async () => {
      writer.visitorAttributes = ['captcha'];
      const session = writer.restore({ a: '1', captcha: '1', [VISITORS]: '1' }, { absoluteTimeout: 60 });
      session.setAttribute('captcha', 2);
      session.setAttribute('b', 2);
      session.signIn('ann');
      expect(session.attributeNames).toEqual(['a', 'b', PRINCIPAL_ATTRIBUTE]);
      session.setAttribute(VISITORS, 3);
      writer.reply({ outcome: 'saved', authenticatedAt: 5000 });
      await session.save();
      expect(session.authenticatedAt).toBe(5000);
      expect(updates()).toEqual([
        expect.objectContaining({
          newId: session.id,
          signIn: {
            butNot: ['captcha', 'nest-session.rememberMe', 'nest-session.cookieMaxAge'],
          },
          maxInactiveInterval: 1800,
          absoluteTimeout: -1,
        }),
      ]);
      expect(writer.attributes).toEqual([{ b: '2', [PRINCIPAL_ATTRIBUTE]: '"ann"', [VISITORS]: '3' }]);
      session.setAttribute('b', 4);
      await session.save();
      expect(updates()[1]).not.toHaveProperty('signIn');
      expect(updates()[1]!.absoluteTimeout).toBeUndefined();
    });

    it('during a save keeps what that save writes, and leaves the rest behind', async () => {
      const session = writer.restore({ a: '1' });
      session.setAttribute('a', 2);
      session.setAttribute(VISITORS, 2);
      const saving = session.save();
      session.signIn('ann');
      await saving;
      await session.save();
      expect(updates().map(({ signIn }) => signIn !== undefined)).toEqual([false, true]);
      expect(session.attributeNames).toEqual(['a', PRINCIPAL_ATTRIBUTE]);
    });

    it('during a save of a sign-in signs in again', async () => {
      const session = writer.restore({ a: '1' });
      session.signIn('ann');
      writer.reply({ outcome: 'saved', authenticatedAt: 5000 }, { outcome: 'saved', authenticatedAt: 6000 });
      const saving = session.save();
      await Promise.resolve();
      session.signIn('bob', { keep: [] });
      await saving;
      await session.save();
      expect(updates().map(({ signIn }) => signIn?.only)).toEqual([undefined, []]);
      expect([session.principalName, session.authenticatedAt]).toEqual(['bob', 6000]);
    });

    it('is sent again unchanged when the reply was lost, and then has its time', async () => {
      const session = writer.restore({ a: '1' });
      session.signIn('ann');
      writer.reply(() => Promise.reject(new Error('lost')), { outcome: 'saved', authenticatedAt: 5000 });
      await expect(session.save()).rejects.toThrow('lost');
      session.setAttribute('b', 2);
      await session.save();
      expect(updates()[1]).toEqual(updates()[0]);
      expect(updates()[2]).not.toHaveProperty('signIn');
      expect(session.authenticatedAt).toBe(5000);
    });

    it("sets an attribute that was left behind, instead of comparing it with the visitor's", async () => {
      const session = writer.restore({ [VISITORS]: '1' });
      session.signIn('ann');
      expect(await session.updateAttribute<number>(VISITORS, (n = 0) => n + 5)).toBe(5);
      expect(writer.writes).toEqual([]);
      await session.save();
      expect(writer.attributes[0]).toMatchObject({ [VISITORS]: '5' });
    });

    it('is forgotten when it discards its changes, but for the new id', async () => {
      const session = writer.restore({ a: '1', [VISITORS]: '1' });
      session.signIn('ann');
      session.discard();
      expect([session.principalName, session.authenticatedAt]).toEqual([undefined, undefined]);
      expect(session.attributeNames).toEqual(['a', VISITORS]);
      await session.save();
      expect(updates()).toEqual([expect.not.objectContaining({ signIn: expect.anything() })]);
      expect(updates()[0]!.newId).toBe(session.id);
    });

    it('leaves behind what it does not keep, also when it is taken back or another one follows', async () => {
      const texts = { a: '1', [VISITORS]: '1', [PRINCIPAL_ATTRIBUTE]: '"ann"' };
      const takenBack = writer.restore(texts);
      takenBack.signIn('bob', { keep: [] });
      takenBack.principalName = undefined;
      const followed = writer.restore(texts);
      followed.signIn('bob', { keep: [VISITORS] });
      followed.signIn('bob');
      expect([takenBack, followed].map((session) => session.attributeNames)).toEqual([[], [PRINCIPAL_ATTRIBUTE]]);
      await takenBack.save();
      await followed.save();
      expect(writer.attributes).toEqual([
        { a: null, [VISITORS]: null, [PRINCIPAL_ATTRIBUTE]: null },
        { a: null, [PRINCIPAL_ATTRIBUTE]: '"bob"' },
      ]);
      expect(updates()[0]!.indexes).toEqual(new Map([[PRINCIPAL_NAME_INDEX_NAME, null]]));
      expect([takenBack, followed].map((session) => session.attributeNames)).toEqual([[], [PRINCIPAL_ATTRIBUTE]]);
    });

    it('counts as an access, whatever the route says', async () => {
      const session = writer.restore({ a: '1' });
      session.keepIdle();
      session.signIn('ann');
      await session.save();
      expect(updates()[0]).not.toHaveProperty('keepsIdle');
    });

    it('tells the store when the user has signed out', async () => {
      const session = writer.restore({ [PRINCIPAL_ATTRIBUTE]: '"ann"' }, { authenticatedAt: 1500 });
      session.principalName = 'anna';
      await session.save();
      expect([session.authenticatedAt, updates()[0]!.signsOut]).toEqual([1500, undefined]);
      session.principalName = undefined;
      await session.save();
      expect([session.authenticatedAt, updates()[1]!.signsOut]).toEqual([undefined, true]);
      session.setAttribute('a', 1);
      await session.save();
      expect(updates()[2]).not.toHaveProperty('signsOut');
    });

    it('gets one new id when its principal is set, however often, and none when it is new', async () => {
      const stored = writer.restore({ a: '1' });
      const created = TrackedSession.create(writer, TIMEOUTS);
      for (const session of [stored, created]) {
        session.bindTo({ headersSent: false });
        const before = session.id;
        const ids = ['ann', 'bob', undefined, 'ann'].map((name) => {
          session.principalName = name;
          return session.id;
        });
        expect(new Set(ids).size).toBe(1);
        expect(ids[0] === before).toBe(session === created);
        await session.save();
        expect(session.id).toBe(ids[0]);
      }
    });

    it('ends its companions before itself, and again after a failure', async () => {
      const session = writer.restore({ a: '1' });
      const ended: string[] = [];
      let isFailing = true;
      const end = () => (isFailing ? Promise.reject(new Error('down')) : Promise.resolve(ended.push('other')));
      session.bindTo({ headersSent: false }, { companions: [end] });
      session.signOut();
      expect([session.isDirty, session.isSet]).toEqual([true, true]);
      await expect(session.save()).rejects.toThrow('down');
      expect([session.isDirty, writer.writes]).toEqual([true, []]);
      isFailing = false;
      await session.save();
      expect([session.isDirty, ended, writer.writes.map(({ kind }) => kind)]).toEqual([false, ['other'], ['delete']]);
    });

    it('ends its companions although it is gone itself', async () => {
      const session = writer.restore({ a: '1' });
      const ended: string[] = [];
      session.bindTo({ headersSent: false }, { companions: [() => Promise.resolve(ended.push('other'))] });
      session.setAttribute('a', 2);
      writer.reply({ outcome: 'gone' });
      await session.save();
      session.signOut();
      expect(session.isSet).toBe(true);
      expect(await session.save()).toBe('gone');
      expect(ended).toEqual(['other']);
    });
  });
});

describe('a sign-in that follows a save without a reply', () => {
  const signInAfterLoss = async (keep?: string[]) => {
    const writer = new RecordingWriter();
    const session = writer.restore({ a: '1' });
    session.signIn('ann');
    session.setAttribute('count', 1);
    writer.reply(() => Promise.reject(new Error('lost')));
    await expect(session.save()).rejects.toThrow('lost');
    session.signIn('ann', { keep });
    await session.save();
    return writer.attributes.map((attributes) => attributes['count']);
  };

  it('does not write again what the store has and keeps, because another request may have changed it', async () => {
    expect(await signInAfterLoss()).toEqual(['1', '1', undefined]);
  });

  it('leaves out what it does not keep', async () => {
    expect(await signInAfterLoss(['a'])).toEqual(['1', '1', undefined]);
  });
});
