import { jest } from '@jest/globals';
import { SessionAttributeError, SessionStoreError } from '../../src/errors/session.errors.js';
import { JsonAttributeSerializer } from '../../src/session/json-attribute.serializer.js';
import { UNBOUNDED } from '../support/unbounded.js';
import { TrackedSession } from '../../src/session/tracked-session.js';
import { RecordingWriter } from '../support/recording.writer.js';

describe('TrackedSession', () => {
  let writer: RecordingWriter;

  beforeEach(() => {
    writer = new RecordingWriter();
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

    it('refuses to lose what the update has changed in place and does not return', async () => {
      const session = writer.restore({ items: '["a"]' });
      const change = (items: string[] | undefined): string[] | undefined => void items!.push('b');
      await expect(session.updateAttribute<string[]>('items', change)).rejects.toThrow(
        'The update of session attribute "items" has changed the value in place and returned nothing',
      );
      await session.updateAttribute<string[]>('items', (items) => void items);
      expect(writer.attributes).toEqual([{ items: null }]);
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

    it.each(['of a new session', 'that was changed in place'])(
      'leaves an attribute %s as it was when it throws, or its result cannot be stored',
      async (which) => {
        const isNew = which === 'of a new session';
        const timeouts = { maxInactiveInterval: 1800, absoluteTimeout: -1 };
        const session = isNew ? TrackedSession.create(writer, timeouts) : writer.restore({ cart: '[1]' });
        if (isNew) session.setAttribute('cart', [1]);
        session.getAttribute<unknown[]>('cart')!.push(2);
        const refused = session.updateAttribute<unknown[]>('cart', (cart = []) => {
          cart.push(3);
          throw new Error('full');
        });
        await expect(refused).rejects.toThrow('full');
        const unstorable = session.updateAttribute<unknown[]>('cart', (cart = []) => {
          cart.push(NaN);
          return cart;
        });
        await expect(unstorable).rejects.toThrow('NaN');
        expect(session.getAttribute('cart')).toEqual([1, 2]);
        await session.save();
        expect(writer.attributes).toEqual([{ cart: '[1,2]' }]);
      },
    );

    it('returns undefined when the session has ended', async () => {
      const session = writer.restore({ n: '1' });
      writer.reply({ outcome: 'gone' });
      await expect(session.updateAttribute('n', () => 2)).resolves.toBeUndefined();
      await expect(session.updateAttribute('n', () => 3)).resolves.toBeUndefined();
      expect(writer.writes).toHaveLength(1);
      await expect(session.save()).resolves.toBe('gone');
    });
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

  it('writes an object that is changed back in place after a save without a reply', async () => {
    const session = writer.restore({ a: '["x"]', b: '["y"]' });
    const [a, b] = ['a', 'b'].map((name) => session.getAttribute<string[]>(name)!);
    a!.push('changed');
    writer.reply(() => Promise.reject(new Error('lost')));
    await expect(session.save()).rejects.toThrow('lost');
    a!.pop();
    await session.save();
    await session.save();
    b!.push('changed');
    await session.save();
    expect(writer.attributes).toEqual([{ a: '["x","changed"]' }, { a: '["x"]' }, { b: '["y","changed"]' }]);
  });

  it('removes an attribute that a save without a reply may have stored', async () => {
    const lost = () => Promise.reject(new SessionStoreError('no reply'));
    writer.reply(lost, lost);
    const session = writer.restore({ n: '1' });
    session.setAttribute('a', 1);
    await expect(session.save()).rejects.toThrow('no reply');
    await expect(session.updateAttribute('b', () => 1)).rejects.toThrow('no reply');
    session.removeAttribute('a');
    session.removeAttribute('b');
    await session.save();
    expect(writer.attributes).toEqual([{ a: '1' }, { b: '1' }, { a: null, b: null }]);
    expect(session.isDirty).toBe(false);
  });

  it('is not created by what a sign-in has set that is taken back', async () => {
    const session = TrackedSession.create(writer, { maxInactiveInterval: 1800, absoluteTimeout: -1 });
    session.signIn('ann');
    session.principalName = undefined;
    await session.save();
    expect([writer.writes, session.isDirty]).toEqual([[], false]);
  });

  it('is repeated first when the reply to a creation was lost, and is stored once, however often that happens', async () => {
    const lost = () => Promise.reject(new SessionStoreError('no reply'));
    writer.reply(lost, lost, { outcome: 'collision' });
    const session = TrackedSession.create(writer, { maxInactiveInterval: 1800, absoluteTimeout: -1 });
    session.setAttribute('a', 1);
    await expect(session.save()).rejects.toThrow('no reply');
    session.setAttribute('b', 2);
    await expect(session.save()).rejects.toThrow('no reply');
    // The store has made the first attempt: nobody else draws this id.
    expect(await session.save()).toBe('saved');
    expect(writer.writes.map(({ kind }) => kind)).toEqual(['create', 'create', 'create', 'update']);
    expect(writer.attributes).toEqual([{ a: '1' }, { a: '1' }, { a: '1' }, { b: '2' }]);
    expect(session.isGone).toBe(false);
  });
});
