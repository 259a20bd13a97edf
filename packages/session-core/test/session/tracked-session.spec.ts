import { jest } from '@jest/globals';
import { inspect } from 'node:util';
import {
  SessionAttributeError,
  SessionStateError,
  SessionStoreError,
  TooManySessionsError,
} from '../../src/errors/session.errors.js';
import type { UpdateSession } from '../../src/session/session-change.js';
import type { Session } from '../../src/session/session.js';
import { JsonAttributeSerializer } from '../../src/session/json-attribute.serializer.js';
import { PRINCIPAL_NAME_INDEX_NAME } from '../../src/session/session.js';
import { UNBOUNDED } from '../../src/session/session-bounds.js';
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

  describe('writes', () => {
    it('only the changes', async () => {
      const session = writer.restore({ a: '1', b: '2', c: '3' });
      session.getAttribute('a');
      session.setAttribute('b', 20);
      session.setAttribute('c', null);
      session.setAttribute('d', [4]);
      session.removeAttribute('e');
      await session.save();
      await session.save();
      expect(writer.writes).toEqual([
        {
          kind: 'update',
          id: session.id,
          newId: undefined,
          maxInactiveInterval: undefined,
          attributes: new Map([
            ['b', '20'],
            ['c', null],
            ['d', '[4]'],
          ]),
          indexes: new Map(),
          bounds: UNBOUNDED,
        },
      ]);
      expect(session.attributeNames.sort()).toEqual(['a', 'b', 'd']);
    });

    it('an object that was changed in place after it was read or set', async () => {
      const session = writer.restore({ read: '{"items":["a"]}' });
      session.getAttribute<{ items: string[] }>('read')!.items.push('b');
      const set = { items: ['c'] };
      session.setAttribute('set', set);
      set.items.push('d');
      await session.save();
      set.items.push('e');
      await session.save();
      expect(session.isDirty).toBe(false);
      expect(writer.attributes).toEqual([
        { read: '{"items":["a","b"]}', set: '{"items":["c","d"]}' },
        { set: '{"items":["c","d","e"]}' },
      ]);
    });

    it('an object that was changed in place, by a serializer that only serializes', async () => {
      const plain = new RecordingWriter({ serialize: (value) => JSON.stringify(value), deserialize: JSON.parse });
      const session = plain.restore({ read: '{"items":["a"]}' });
      const read = session.getAttribute<{ items: string[] }>('read')!;
      expect(session.isDirty).toBe(false);
      read.items.push('b');
      await session.save();
      expect(plain.attributes).toEqual([{ read: '{"items":["a","b"]}' }]);
    });

    it('no object whose text is still the stored one', async () => {
      const session = writer.restore({ order: '{"at":"2026-01-01T00:00:00.000Z"}' });
      const order = session.getAttribute<{ at: unknown; total?: unknown }>('order')!;
      order.at = new Date(String(order.at));
      expect(session.isDirty).toBe(false);
      order.total = new Date(0);
      await expect(session.save()).rejects.toThrow(SessionAttributeError);
      expect(writer.writes).toEqual([]);
    });

    it('no text that another language formatted differently, until its value is changed', async () => {
      const session = writer.restore({ foreign: '{"a": 1, "b":[ 2.0 ]}', infinite: '{"a":1e999}' });
      expect(session.getAttribute('foreign')).toEqual({ a: 1, b: [2] });
      expect(session.getAttribute('infinite')).toEqual({ a: Infinity });
      expect(session.isDirty).toBe(false);
      session.getAttribute<{ a: number }>('foreign')!.a = 2;
      await session.save();
      expect(writer.attributes).toEqual([{ foreign: '{"a":2,"b":[2]}' }]);
    });

    it('changes that were made during a save with the next one', async () => {
      const session = writer.restore({ old: '0' });
      const list = ['x'];
      session.setAttribute('set', 1);
      session.setAttribute('removed', 1);
      session.setAttribute('list', list);
      writer.reply(() => {
        session.setAttribute('set', 2);
        session.removeAttribute('removed');
        list.push('y');
        return { outcome: 'saved' };
      });
      await session.save();
      expect(session.isDirty).toBe(true);
      await session.save();
      expect(writer.attributes[1]).toEqual({ set: '2', removed: null, list: '["x","y"]' });
      expect(session.isDirty).toBe(false);
    });

    it('without encoding values again that cannot have changed', async () => {
      const serializer = new JsonAttributeSerializer();
      const recording = new RecordingWriter(serializer);
      const session = recording.restore({ read: '{"n":1}', one: '1' });
      const spies = [jest.spyOn(serializer, 'serialize'), jest.spyOn(serializer, 'hasText')];
      const encodedBy = async (step: () => unknown) => {
        for (const spy of spies) spy.mockClear();
        await step();
        return spies.flatMap((spy) => spy.mock.calls.map(([value]) => value));
      };
      const ask = () => Array.from({ length: 3 }, () => session.isDirty);
      const object = { n: 2 };

      expect(await encodedBy(() => session.setAttribute('two', 2))).toEqual([2]);
      expect(await encodedBy(() => session.setAttribute('one', null))).toEqual([]);
      expect(await encodedBy(ask)).toEqual([]);
      expect(await encodedBy(() => session.save())).toEqual([]);
      expect(await encodedBy(ask)).toEqual([]);
      // An object may have been changed in place wherever the application had its turn.
      expect(await encodedBy(() => session.setAttribute('object', object))).toEqual([object]);
      expect(await encodedBy(ask)).toEqual([]);
      expect(await encodedBy(() => session.save())).toEqual([object]);
      expect(await encodedBy(() => session.getAttribute('read'))).toEqual([]);
      expect(await encodedBy(() => session.isDirty)).toEqual([object, { n: 1 }]);
      expect(recording.attributes).toEqual([{ two: '2', one: null }, { object: '{"n":2}' }]);
    });

    it('no value that became unstorable during a save, and throws at the next one', async () => {
      const session = writer.restore();
      const object: { when?: Date } = {};
      session.setAttribute('object', object);
      writer.reply(() => {
        object.when = new Date();
        return { outcome: 'saved' };
      });
      await expect(session.save()).resolves.toBe('saved');
      await expect(session.save()).rejects.toThrow(SessionAttributeError);
      delete object.when;
      await session.save();
      expect(writer.attributes).toEqual([{ object: '{}' }]);
    });

    it('again after the store failed', async () => {
      const session = writer.restore();
      session.setAttribute('a', 1);
      writer.reply(() => {
        throw new SessionStoreError('away');
      });
      await expect(session.save()).rejects.toThrow('away');
      await expect(session.save()).resolves.toBe('saved');
      expect(writer.attributes).toEqual([{ a: '1' }, { a: '1' }]);
    });

    it('one after the other', async () => {
      const session = writer.restore();
      let open!: () => void;
      writer.reply(
        () => new Promise((resolve) => (open = () => resolve({ outcome: 'saved' }))),
        () => ({ outcome: 'saved' }),
      );
      session.setAttribute('a', 1);
      const first = session.save();
      await Promise.resolve();
      session.setAttribute('b', 2);
      const second = session.save();
      await Promise.resolve();
      expect(writer.writes).toHaveLength(1);
      open();
      await Promise.all([first, second]);
      expect(writer.attributes).toEqual([{ a: '1' }, { b: '2' }]);
    });

    it('nothing once the session is gone, and still reads attributes', async () => {
      const session = writer.restore({ a: '1' });
      session.setAttribute('b', 2);
      writer.reply({ outcome: 'gone' });
      await expect(session.save()).resolves.toBe('gone');
      await expect(session.save()).resolves.toBe('gone');
      expect(writer.writes).toHaveLength(1);
      expect(session.getAttribute('a')).toBe(1);
      expect(session).toMatchObject({ isDeleted: false, tokenToSend: undefined });
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

    it('draws an id that may replace the stored one, also after a save without a reply', async () => {
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
      expect(writer.writes).toEqual([{ kind: 'delete', id: session.id }]);
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

  describe('updateAttribute()', () => {
    it('compares with the stored text, and repeats on a conflict with the current value', async () => {
      const session = writer.restore({ items: '["a"]' });
      writer.reply({ outcome: 'conflict', current: '["a","b"]' }, { outcome: 'conflict', current: undefined });
      const seen: unknown[] = [];
      const result = await session.updateAttribute<string[]>('items', (items = []) => {
        seen.push([...items]);
        items.push('c');
        return items;
      });
      expect(seen).toEqual([['a'], ['a', 'b'], []]);
      expect(writer.writes).toMatchObject([
        { expected: { name: 'items', text: '["a"]' } },
        { expected: { name: 'items', text: '["a","b"]' } },
        { expected: { name: 'items', text: undefined } },
      ]);
      expect(writer.attributes).toEqual([{ items: '["a","c"]' }, { items: '["a","b","c"]' }, { items: '["c"]' }]);
      expect(result).toEqual(['c']);
      expect(session.isDirty).toBe(false);
      result!.push('d');
      expect(session.isDirty).toBe(true);
    });

    it('removes the attribute for undefined and null', async () => {
      const session = writer.restore({ a: '1' });
      await expect(session.updateAttribute('a', () => undefined)).resolves.toBeUndefined();
      expect(writer.attributes).toEqual([{ a: null }]);
      expect(session.attributeNames).toEqual([]);
    });

    it('leaves other changes to the commit', async () => {
      const session = writer.restore({ n: '1' });
      const newId = session.changeSessionId();
      session.setAttribute('other', 1);
      await session.updateAttribute<number>('n', (n = 0) => n + 1);
      expect(writer.writes[0]).toEqual({
        kind: 'update',
        id: session.storedId,
        attributes: new Map([['n', '2']]),
        indexes: new Map(),
        bounds: UNBOUNDED,
        expected: { name: 'n', text: '1' },
      });
      await session.save();
      expect(writer.writes[1]).toMatchObject({ newId, attributes: new Map([['other', '1']]) });
    });

    it('keeps both of two updates that a request makes at once', async () => {
      const session = writer.restore({ items: '[]' });
      await Promise.all(
        ['a', 'b', 'c'].map((item) => session.updateAttribute<string[]>('items', (items = []) => [...items, item])),
      );
      expect(writer.attributes.at(-1)).toEqual({ items: '["a","b","c"]' });
      expect(writer.writes.at(-1)).toMatchObject({ expected: { text: '["a","b"]' } });
    });

    it('starts from the value that this request has set before, and stores it without comparing', async () => {
      const session = writer.restore({ n: '1', o: '2' });
      session.setAttribute('n', 10);
      session.removeAttribute('unknown');
      await expect(session.updateAttribute<number>('n', (n = 0) => n + 1)).resolves.toBe(11);
      expect(writer.writes[0]).not.toHaveProperty('expected');
      await expect(session.updateAttribute<number>('unknown', (n = 0) => n + 1)).resolves.toBe(1);
      expect(session.isDirty).toBe(false);
      expect(writer.attributes).toEqual([{ n: '11' }, { unknown: '1' }]);
    });

    it('keeps a value that is set while it waits', async () => {
      const session = writer.restore({ n: '1' });
      writer.reply(() => {
        session.setAttribute('n', 5);
        return { outcome: 'saved' };
      });
      await session.updateAttribute<number>('n', (n = 0) => n + 1);
      await session.save();
      expect(writer.attributes).toEqual([{ n: '2' }, { n: '5' }]);
    });

    it('keeps a removal that happens while it waits', async () => {
      const session = writer.restore();
      writer.reply(() => {
        session.removeAttribute('n');
        return { outcome: 'saved' };
      });
      await session.updateAttribute('n', () => 1);
      await session.save();
      expect(writer.attributes).toEqual([{ n: '1' }, { n: null }]);
    });

    it('stores nothing of a failed update at the commit', async () => {
      const session = writer.restore({ items: '[]' });
      writer.reply(() => {
        throw new SessionStoreError('away');
      });
      const push = (items: string[] = []) => {
        items.push('a');
        return items;
      };
      await expect(session.updateAttribute<string[]>('items', push)).rejects.toThrow('away');
      await expect(
        session.updateAttribute<string[]>('items', (items) => {
          push(items);
          throw new Error('changed its mind');
        }),
      ).rejects.toThrow('changed its mind');
      expect(session.isDirty).toBe(false);
      expect(session.getAttribute('items')).toEqual([]);
    });

    it('returns undefined when the session has ended', async () => {
      const session = writer.restore({ n: '1' });
      writer.reply({ outcome: 'gone' });
      await expect(session.updateAttribute('n', () => 2)).resolves.toBeUndefined();
      await expect(session.updateAttribute('n', () => 3)).resolves.toBeUndefined();
      expect(writer.writes).toHaveLength(1);
      await expect(session.save()).resolves.toBe('gone');
    });
  });

  describe('maxInactiveInterval', () => {
    it('is written only when it changed, and ends the session when it is 0', async () => {
      const session = writer.restore({ a: '1' });
      session.maxInactiveInterval = 60;
      await session.save();
      session.maxInactiveInterval = 60;
      session.setAttribute('a', 2);
      await session.save();
      session.maxInactiveInterval = 0;
      await session.save();
      expect(writer.writes.map((changes) => 'maxInactiveInterval' in changes && changes.maxInactiveInterval)).toEqual([
        60,
        undefined,
        0,
      ]);
      expect(session.isDeleted).toBe(true);
      expect(session.getAttribute('a')).toBeUndefined();
    });
  });

  describe('absoluteTimeout', () => {
    it('is written only when it changed', async () => {
      const session = writer.restore({ a: '1' });
      expect(session.absoluteTimeout).toBe(-1);
      session.absoluteTimeout = 60;
      await session.save();
      session.absoluteTimeout = 60;
      expect(session.isDirty).toBe(false);
      session.absoluteTimeout = -1;
      await session.save();
      expect(writer.writes).toMatchObject([
        { absoluteTimeout: 60, maxInactiveInterval: undefined },
        { absoluteTimeout: -1, maxInactiveInterval: undefined },
      ]);
    });
  });

  describe.each(['maxInactiveInterval', 'absoluteTimeout'] as const)('%s', (timeout) => {
    it.each([
      [90, 90],
      ['90s', 90],
      ['30m', 1800],
      ['1.5h', 5400],
      ['never', -1],
      [-1, -1],
      [-2, -1],
    ])('takes %p and reads as %d seconds', async (given, seconds) => {
      const session = writer.restore();
      session[timeout] = given;
      expect(session[timeout]).toBe(seconds);
      const created = TrackedSession.create(writer, TIMEOUTS);
      created[timeout] = given;
      created.setAttribute('a', 1);
      await created.save();
      expect(writer.writes).toMatchObject([{ kind: 'create', [timeout]: seconds }]);
    });

    it.each([0, '0', '0s'])(
      'ends a stored session when set to %p, and keeps a new one from being stored',
      async (now) => {
        const session = writer.restore({ a: '1' });
        session[timeout] = now;
        await expect(session.save()).resolves.toBe('saved');
        expect(writer.writes).toMatchObject([{ kind: 'update', maxInactiveInterval: 0 }]);
        expect(session.isDeleted).toBe(true);
        const created = TrackedSession.create(writer, TIMEOUTS);
        created[timeout] = now;
        created.setAttribute('a', 1);
        expect(created.isDirty).toBe(false);
      },
    );

    it.each([1.5, NaN, Infinity, 2 ** 31, '60', '1500ms', 'forever', '', null, true])('refuses %p', (given) => {
      const session = writer.restore();
      expect(() => (session[timeout] = given as number)).toThrow(RangeError);
      expect(session.isDirty).toBe(false);
    });
  });

  describe('kept idle', () => {
    it('marks all its writes, and none otherwise', async () => {
      const session = writer.restore({ n: '1' });
      session.setAttribute('a', 1);
      await session.save();
      session.keepIdle();
      session.setAttribute('a', 2);
      await session.save();
      await session.updateAttribute<number>('n', (n = 0) => n + 1);
      expect(writer.writes.map((changes) => 'keepsIdle' in changes && changes.keepsIdle)).toEqual([false, true, true]);
    });
  });

  describe('idleTime', () => {
    it.each([
      { what: 'of a session that expires', given: { timeToLive: 1_790_000 }, idleTime: 10_000 },
      {
        what: 'when the absolute end comes first',
        given: { absoluteTimeout: 60, timeToLive: 50_000 },
        // It was accessed a second after its creation.
        idleTime: 59_000 - 50_000,
      },
      {
        what: 'when only that comes',
        given: { maxInactiveInterval: -1, absoluteTimeout: 60, timeToLive: 59_000 },
        idleTime: 0,
      },
      {
        what: 'of a session without end',
        given: { maxInactiveInterval: -1, timeToLive: undefined },
        idleTime: undefined,
      },
    ])('is computed from the time to live: $what', ({ given, idleTime }) => {
      expect(writer.restore({}, given).idleTime).toBe(idleTime);
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

    it('hold the principal under the name that Spring uses', async () => {
      const session = writer.restore();
      session.principalName = 'ann';
      expect(session.principalName).toBe('ann');
      await session.save();
      expect(writer.attributes).toEqual([{ [PRINCIPAL_NAME_INDEX_NAME]: '"ann"' }]);
      expect(() => (session.principalName = '')).toThrow(TypeError);
      session.principalName = undefined;
      await session.save();
      expect(writer.attributes[1]).toEqual({ [PRINCIPAL_NAME_INDEX_NAME]: null });
    });

    it('are no properties: an assignment throws and names setAttribute', () => {
      const session = writer.restore() as unknown as Record<string, unknown>;
      expect(() => (session.visits = 1)).toThrow("use session.setAttribute('visits', value)");
      expect(() => Object.assign(session, { cart: [] })).toThrow("session.setAttribute('cart', value)");
      expect(session.visits).toBeUndefined();
    });

    it('are not deleted as properties: it throws and names removeAttribute', () => {
      const session = writer.restore({ visits: '1' }) as unknown as Record<string, unknown>;
      expect(() => delete session.visits).toThrow("use session.removeAttribute('visits')");
    });
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
      await expect(session.save()).rejects.toThrow(/may have 2 sessions/);
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
      expect(session.attributeNames).toEqual(['a', 'b', PRINCIPAL_NAME_INDEX_NAME]);
      session.setAttribute(VISITORS, 3);
      writer.reply({ outcome: 'saved', authenticatedAt: 5000 });
      await session.save();
      expect(session.authenticatedAt).toBe(5000);
      expect(updates()).toEqual([
        expect.objectContaining({
          newId: session.id,
          signIn: { butNot: ['captcha', 'nest-session.rememberMe', 'nest-session.cookieMaxAge'] },
          maxInactiveInterval: 1800,
          absoluteTimeout: -1,
        }),
      ]);
      expect(writer.attributes).toEqual([{ b: '2', [PRINCIPAL_NAME_INDEX_NAME]: '"ann"', [VISITORS]: '3' }]);
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
      expect(session.attributeNames).toEqual(['a', PRINCIPAL_NAME_INDEX_NAME]);
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

    it('sets an attribute that was left behind, instead of comparing it with that of the visitor', async () => {
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

    it('counts as an access, whatever the route says', async () => {
      const session = writer.restore({ a: '1' });
      session.keepIdle();
      session.signIn('ann');
      await session.save();
      expect(updates()[0]).not.toHaveProperty('keepsIdle');
    });

    it('tells the store when nobody is signed in any more', async () => {
      const session = writer.restore({ [PRINCIPAL_NAME_INDEX_NAME]: '"ann"' }, { authenticatedAt: 1500 });
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

    it('ends its companions before itself, and again after a failure', async () => {
      const session = writer.restore({ a: '1' });
      const ended: string[] = [];
      let isFailing = true;
      session.accompanyBy([
        () => (isFailing ? Promise.reject(new Error('down')) : Promise.resolve(ended.push('other'))),
      ]);
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
      session.accompanyBy([() => Promise.resolve(ended.push('other'))]);
      session.setAttribute('a', 2);
      writer.reply({ outcome: 'gone' });
      await session.save();
      session.signOut();
      expect(session.isSet).toBe(true);
      expect(await session.save()).toBe('gone');
      expect(ended).toEqual(['other']);
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

  it('runs an action before each save, which also writes what the action changes, and none when it ends', async () => {
    const session = writer.restore({ a: '1' });
    let runs = 0;
    session.beforeSave(() => session.setAttribute('runs', ++runs));
    session.setAttribute('a', 2);
    await session.save();
    expect(writer.attributes).toEqual([{ a: '2', runs: '1' }]);
    session.invalidate();
    await session.save();
    expect([runs, writer.writes.at(-1)!.kind]).toEqual([1, 'delete']);
  });

  it.each<[code: string, use: (session: any) => unknown, instead: string]>([
    ['session.save(callback)', (session) => session.save(() => {}), 'await session.save()'],
    ['session.regenerate()', (session) => session.regenerate(() => {}), 'session.changeSessionId()'],
    ['session.destroy()', (session) => session.destroy(() => {}), 'session.invalidate()'],
    ['session.reload()', (session) => session.reload(() => {}), 'SessionRepository.findById()'],
    ['session.touch()', (session) => session.touch(), 'nothing'],
    ['session.resetMaxAge()', (session) => session.resetMaxAge(), 'nothing'],
    ['session.cookie', (session) => (session.cookie.maxAge = 1), 'session.maxInactiveInterval'],
    ['delete session.x', (session) => delete session.x, "session.removeAttribute('x')"],
  ])('names the package of express-session in the error for %s', (code, use, instead) => {
    const session = writer.restore();
    expect(() => use(session)).toThrow(
      expect.objectContaining({
        message: expect.stringMatching(
          /^`(.*)` is of express-session: use (.*), or import .*@nest-session\/express-session/,
        ),
      }),
    );
    expect(() => use(session)).toThrow(`\`${code}\` is of express-session: use ${instead}`);
  });

  it.each(['getAttribute', 'setAttribute', 'updateAttribute', 'changeSessionId', 'invalidate', 'save'] as const)(
    'says what to write when %s() is called without it',
    (name) => {
      const { id, [name]: detached } = writer.restore();
      expect(id).not.toBe('');
      const call = detached as (...args: unknown[]) => unknown;
      expect(() => call('items', 1)).toThrow(`call session.${name}()`);
      expect(() => Object.assign({}, { call }).call('items', 1)).toThrow(`${name}() was called without its session`);
    },
  );

  it('refuses to be spread or copied, which would give an empty object', () => {
    const session: Session = writer.restore();
    expect(() => ({ ...session })).toThrow('A session cannot be copied or spread');
    expect(() => Object.assign({}, session)).toThrow('A session cannot be copied or spread');
    expect(() => {
      const { id, ...others } = session;
      return [id, others];
    }).toThrow('A session cannot be copied or spread');
    expect([Object.keys(session), JSON.stringify(session)]).toEqual([[], expect.stringContaining(session.id)]);
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
