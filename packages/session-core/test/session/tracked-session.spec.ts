import { inspect } from 'node:util';
import { PRINCIPAL_ATTRIBUTE } from '../../src/session/attribute-names.js';
import { SessionAttributeError, SessionStateError, SessionStoreError } from '../../src/errors/session.errors.js';
import type { Session } from '../../src/session/session.js';
import { UNBOUNDED } from '../support/unbounded.js';
import { TrackedSession } from '../../src/session/tracked-session.js';
import { RecordingWriter } from '../support/recording.writer.js';

const TIMEOUTS = { maxInactiveInterval: 1800, absoluteTimeout: -1 };

describe('TrackedSession', () => {
  let writer: RecordingWriter;

  beforeEach(() => {
    writer = new RecordingWriter();
  });

  describe('that is new', () => {
    it('is not stored and has no token to send until an attribute is set', async () => {
      const session = TrackedSession.create(writer, TIMEOUTS);
      session.maxInactiveInterval = 60;
      session.changeSessionId();
      session.removeAttribute('nothing');
      expect(session.isDirty).toBe(false);
      await expect(session.save()).resolves.toBe('saved');
      expect(writer.writes).toEqual([]);
      expect(session).toMatchObject({ isNew: true, tokenToSend: undefined, storedId: undefined });
    });

    it('is created under its own id with the presented ids, and takes over the times of the store', async () => {
      const session = TrackedSession.create(writer, TIMEOUTS, ['presented']);
      session.setAttribute('a', 1);
      writer.reply({ outcome: 'created', creationTime: 42 });
      await session.save();
      expect(writer.writes).toEqual([
        {
          kind: 'create',
          id: session.id,
          presentedIds: ['presented'],
          ...TIMEOUTS,
          attributes: new Map([['a', '1']]),
          indexes: new Map(),
          bounds: UNBOUNDED,
        },
      ]);
      expect(session).toMatchObject({ isNew: false, creationTime: 42, lastAccessedTime: 42, storedId: session.id });
      expect(session.tokenToSend).toBeDefined();
    });

    it('draws another id when its own is taken, and fails when the store refuses every id', async () => {
      const session = TrackedSession.create(writer, TIMEOUTS);
      const first = session.id;
      session.setAttribute('a', 1);
      writer.reply({ outcome: 'collision' });
      await expect(session.save()).resolves.toBe('saved');
      expect(session.id).not.toBe(first);
      expect(writer.writes[1]).toMatchObject({ kind: 'create', id: session.id });

      const unlucky = TrackedSession.create(writer, TIMEOUTS);
      unlucky.setAttribute('a', 1);
      writer.reply({ outcome: 'collision' }, { outcome: 'collision' }, { outcome: 'collision' });
      await expect(unlucky.save()).rejects.toThrow(SessionStoreError);
    });

    it('refuses attributes once no cookie can be sent', () => {
      const session = TrackedSession.create(writer, TIMEOUTS);
      session.bindTo({ headersSent: true });
      expect(() => session.setAttribute('a', 1)).toThrow(SessionStateError);
      const stored = writer.restore();
      stored.bindTo({ headersSent: true });
      expect(() => stored.setAttribute('a', 1)).not.toThrow();
    });

    it('refuses a rotation once no cookie can be sent', () => {
      const stored = writer.restore();
      const { id } = stored;
      stored.bindTo({ headersSent: true });
      expect(() => stored.changeSessionId()).toThrow(SessionStateError);
      expect(stored.id).toBe(id);
      expect(stored.isDirty).toBe(false);
    });

    it('is not stored when it is invalidated or has an interval of 0', async () => {
      const invalidated = TrackedSession.create(writer, TIMEOUTS);
      invalidated.setAttribute('a', 1);
      invalidated.invalidate();
      await invalidated.save();
      const ending = TrackedSession.create(writer, TIMEOUTS);
      ending.setAttribute('a', 1);
      ending.maxInactiveInterval = 0;
      await ending.save();
      expect(writer.writes).toEqual([]);
      expect(invalidated.tokenToSend ?? ending.tokenToSend).toBeUndefined();
    });

    it('sets the attribute in updateAttribute() without a write', async () => {
      const session = TrackedSession.create(writer, TIMEOUTS);
      await expect(session.updateAttribute<number>('n', (n = 0) => n + 1)).resolves.toBe(1);
      expect(writer.writes).toEqual([]);
      expect(session.isDirty).toBe(true);
    });
  });

  describe('changeSessionId()', () => {
    it('takes effect at the save, together with the other changes', async () => {
      const session = writer.restore({ a: '1' });
      const before = session.id;
      const after = session.changeSessionId();
      session.setAttribute('user', 'ann');
      expect(session).toMatchObject({ id: after, storedId: before, tokenToSend: undefined });
      await session.save();
      expect(writer.writes).toMatchObject([{ kind: 'update', id: before, newId: after }]);
      expect(session.storedId).toBe(after);
      expect(session.tokenToSend).toBeDefined();
      session.setAttribute('b', 1);
      await session.save();
      expect(writer.writes[1]).toMatchObject({ id: after, newId: undefined });
    });

    it('draws an id that may replace the stored one, even after a save without a reply', async () => {
      const stored = writer.restore();
      stored.changeSessionId();
      const session = TrackedSession.create(writer, TIMEOUTS);
      session.changeSessionId();
      const created = session.id;
      session.setAttribute('a', 1);
      writer.reply(() => {
        throw new SessionStoreError('away');
      });
      await expect(session.save()).rejects.toThrow('away');
      session.changeSessionId();
      expect(writer.replaced).toEqual([stored.storedId, undefined, undefined, created]);
    });

    it('reveals no token when the session is gone', async () => {
      const session = writer.restore();
      session.changeSessionId();
      writer.reply({ outcome: 'gone' });
      await session.save();
      expect(session.tokenToSend).toBeUndefined();
    });
  });

  describe('invalidate()', () => {
    it('makes reads return undefined and writes throw, and deletes at the save', async () => {
      const session = writer.restore({ a: '1' });
      session.setAttribute('b', 2);
      session.invalidate();
      session.invalidate();
      expect(session.getAttribute('a')).toBeUndefined();
      expect(session.attributeNames).toEqual([]);
      for (const write of [
        () => session.setAttribute('a', 1),
        () => session.changeSessionId(),
        () => (session.maxInactiveInterval = 5),
        () => (session.absoluteTimeout = 5),
        () => (session.principalName = 'ann'),
      ]) {
        expect(write).toThrow(SessionStateError);
      }
      await expect(session.updateAttribute('a', () => 1)).rejects.toThrow(SessionStateError);
      await expect(session.save()).resolves.toBe('saved');
      await expect(session.save()).resolves.toBe('saved');
      expect(writer.writes).toEqual([{ kind: 'delete', id: session.id, reason: 'invalidated' }]);
      expect(session.isDeleted).toBe(true);
    });

    it('keeps reads empty and reports no deletion when another request has ended the session first', async () => {
      const session = writer.restore({ a: '1' });
      session.invalidate();
      writer.reply({ outcome: 'gone' });
      await expect(session.save()).resolves.toBe('gone');
      expect(session.getAttribute('a')).toBeUndefined();
      expect(() => session.setAttribute('a', 1)).toThrow(SessionStateError);
      expect(session.isDeleted).toBe(false);
    });

    it('ends a session whose creation is under way', async () => {
      const session = TrackedSession.create(writer, TIMEOUTS);
      session.setAttribute('a', 1);
      writer.reply(() => {
        session.invalidate();
        return { outcome: 'saved' };
      });
      await session.save();
      await session.save();
      expect(writer.writes.map(({ kind }) => kind)).toEqual(['create', 'delete']);
    });
  });

  describe('attributes', () => {
    it('throw by name when a required one is missing, and fall back to defaults', () => {
      const session = writer.restore({ zero: '0', empty: '""' });
      expect(() => session.getRequiredAttribute('cart')).toThrow(
        new SessionAttributeError('cart', 'is required and missing'),
      );
      expect(session.getRequiredAttribute('zero')).toBe(0);
      expect(session.getAttributeOrDefault('zero', 1)).toBe(0);
      expect(session.getAttributeOrDefault('cart', 'none')).toBe('none');
    });

    it('refuse a value that cannot be stored at once, and keep the one before', () => {
      const session = writer.restore({ a: '1' });
      expect(() => session.setAttribute('a', new Date())).toThrow(SessionAttributeError);
      expect(session.getAttribute('a')).toBe(1);
      expect(session.isDirty).toBe(false);
      expect(() => session.setAttribute('', 1)).toThrow(TypeError);
    });

    it('hold the principal under a name of the library', async () => {
      const session = writer.restore();
      session.principalName = 'ann';
      expect(session.principalName).toBe('ann');
      await session.save();
      expect(writer.attributes).toEqual([{ [PRINCIPAL_ATTRIBUTE]: '"ann"' }]);
      expect(() => (session.principalName = '')).toThrow(TypeError);
      session.principalName = undefined;
      await session.save();
      expect(writer.attributes[1]).toEqual({ [PRINCIPAL_ATTRIBUTE]: null });
    });

    it('are no properties: an assignment throws', () => {
      const sessions = [writer.restore(), TrackedSession.create(writer, TIMEOUTS)] as unknown as Record<
        string,
        unknown
      >[];
      for (const session of sessions) {
        expect(() => (session.visits = 1)).toThrow('Cannot add property visits, object is not extensible');
        expect(() => Object.assign(session, { cart: [] })).toThrow('Cannot add property cart');
        expect(session.visits).toBeUndefined();
      }
    });
  });

  it('that discards its changes has what the store has', async () => {
    const session = writer.restore({ a: '{"n":1}', b: '2' });
    session.getAttribute<{ n: number }>('a')!.n = 2;
    session.removeAttribute('b');
    session.maxInactiveInterval = 60;
    session.discard();
    expect([session.getAttribute('a'), session.getAttribute('b'), session.maxInactiveInterval]).toEqual([
      { n: 1 },
      2,
      1800,
    ]);
    expect(session.isDirty).toBe(false);
  });

  it('that is replaced has what was loaded later, and writes only what changes then', async () => {
    const session = writer.restore({ a: '1' });
    session.setAttribute('lost', 1);
    session.replaceBy(writer.restore({ a: '2' }, { id: session.id, lastAccessedTime: 3000 }));
    expect([session.attributeNames, session.getAttribute('a'), session.lastAccessedTime]).toEqual([['a'], 2, 3000]);
    session.setAttribute('b', 1);
    await session.save();
    expect(writer.attributes).toEqual([{ b: '1' }]);
  });

  it('takes no callback of save(), which would never be called', () => {
    const save = writer.restore().save.bind(writer.restore()) as unknown as (callback: () => void) => unknown;
    expect(() => save(() => {})).toThrow('await session.save()');
  });

  it('prints neither its token nor a value', async () => {
    const session = TrackedSession.create(writer, TIMEOUTS);
    session.setAttribute('pin', 'top-secret');
    await session.save();
    const token = session.tokenToSend!.reveal();
    const printed = [
      inspect(session, { depth: 10, showHidden: true }),
      inspect({ token: session.tokenToSend }, { showHidden: true, depth: 10 }),
      JSON.stringify({ session, token: session.tokenToSend }),
      `${session as unknown as string} ${session.tokenToSend as unknown as string}`,
    ].join('\n');
    expect(printed).toContain(session.id);
    expect(printed).toContain('pin');
    expect(printed).not.toContain(token);
    expect(printed).not.toContain('top-secret');
    expect(printed).toContain('[session token]');
  });

  it('is the only implementation of Session', () => {
    expect(() => TrackedSession.of({} as Session)).toThrow(TypeError);
  });
});
