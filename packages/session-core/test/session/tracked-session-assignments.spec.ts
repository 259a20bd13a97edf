import { SessionAttributeError, SessionStateError, SessionStoreError } from '../../src/errors/session.errors.js';
import { AttributeSerializer } from '../../src/session/attribute.serializer.js';
import { UNBOUNDED } from '../support/unbounded.js';
import { RecordingWriter } from '../support/recording.writer.js';

describe('assignAttribute()', () => {
  let writer: RecordingWriter;

  beforeEach(() => {
    writer = new RecordingWriter();
  });

  it('writes no value that the store has, whether it was read before or not', async () => {
    const session = writer.restore({ text: '"de"', object: '{"a":[1,{"b":null}]}', read: '{"n":1}', number: '0' });
    session.getAttribute('read');
    session.assignAttribute('text', 'de');
    session.assignAttribute('object', { a: [1, { b: null }], c: undefined });
    session.assignAttribute('read', session.getAttribute('read'));
    session.assignAttribute('number', -0);
    session.assignAttribute('missing', undefined);
    session.assignAttribute('absent', null);
    expect(session.isDirty).toBe(false);
    await expect(session.save()).resolves.toBe('saved');
    expect(writer.writes).toEqual([]);
    expect(session.attributeNames).toEqual(['text', 'object', 'read', 'number']);
  });

  it('writes no value that another language has formatted differently', async () => {
    const session = writer.restore({ object: '{ "a": 1.0 }', text: '"\\u00e4"' });
    session.assignAttribute('object', { a: 1 });
    session.assignAttribute('text', 'ä');
    expect(session.isDirty).toBe(false);
  });

  it('writes every other value, and removals', async () => {
    const session = writer.restore({ text: '"de"', object: '{"a":1,"b":2}', removed: '1', nulled: '1' });
    session.assignAttribute('text', 'fr');
    session.assignAttribute('object', { a: 1 });
    session.assignAttribute('removed', undefined);
    session.assignAttribute('nulled', null);
    session.assignAttribute('added', 0);
    await session.save();
    expect(writer.attributes).toEqual([{ text: '"fr"', object: '{"a":1}', removed: null, nulled: null, added: '0' }]);
  });

  it('writes an object that was changed in place and assigned back', async () => {
    const session = writer.restore({ cart: '[]' });
    const cart = session.getAttribute<number[]>('cart')!;
    cart.push(1);
    session.assignAttribute('cart', cart);
    expect(session.isDirty).toBe(true);
    await session.save();
    expect(writer.attributes).toEqual([{ cart: '[1]' }]);
  });

  it('writes an object that was equal when it was assigned, and changed in place afterwards', async () => {
    const session = writer.restore({ cart: '[]' });
    const cart: number[] = [];
    session.assignAttribute('cart', cart);
    expect(session.isDirty).toBe(false);
    cart.push(1);
    expect(session.getAttribute('cart')).toBe(cart);
    expect(session.isDirty).toBe(true);
    await session.save();
    cart.push(2);
    await session.save();
    expect(writer.attributes).toEqual([{ cart: '[1]' }, { cart: '[1,2]' }]);
  });

  it('writes nothing when the value that was loaded is assigned again after another', async () => {
    const session = writer.restore({ lang: '"de"', cart: '[1]' });
    session.assignAttribute('lang', 'fr');
    session.assignAttribute('added', 1);
    session.getAttribute<number[]>('cart')!.push(2);
    session.assignAttribute('lang', 'de');
    session.assignAttribute('added', undefined);
    session.assignAttribute('cart', [1]);
    expect(session.isDirty).toBe(false);
    expect(session.attributeNames).toEqual(['lang', 'cart']);
    expect(session.getAttribute('lang')).toBe('de');
  });

  it('writes the value that was loaded when another was saved in between', async () => {
    const session = writer.restore({ lang: '"de"' });
    session.assignAttribute('lang', 'fr');
    await session.save();
    session.assignAttribute('lang', 'fr');
    expect(session.isDirty).toBe(false);
    session.assignAttribute('lang', 'de');
    await session.save();
    expect(writer.attributes).toEqual([{ lang: '"fr"' }, { lang: '"de"' }]);
  });

  it('writes the value that was loaded when it is assigned during the save of another', async () => {
    const session = writer.restore({ lang: '"de"', n: '1' });
    session.assignAttribute('lang', 'fr');
    session.assignAttribute('added', 1);
    writer.reply(() => {
      session.assignAttribute('lang', 'de');
      session.assignAttribute('added', undefined);
      return { outcome: 'saved' };
    });
    await session.save();
    await session.save();
    writer.reply(() => {
      session.assignAttribute('n', 1);
      return { outcome: 'saved' };
    });
    await session.updateAttribute<number>('n', (n = 0) => n + 1);
    await session.save();
    expect(writer.attributes.slice(1)).toEqual([{ lang: '"de"', added: null }, { n: '2' }, { n: '1' }]);
  });

  it.each(['', ', and a sign-in'])(
    'writes the value that was loaded after a lost save of another%s',
    async (signIn) => {
      const session = writer.restore({ lang: '"de"' });
      session.assignAttribute('lang', 'fr');
      writer.reply(() => {
        throw new SessionStoreError('No reply');
      });
      await expect(session.save()).rejects.toThrow(SessionStoreError);
      if (signIn) session.signIn('ada');
      session.assignAttribute('lang', 'de');
      await session.save();
      expect(writer.attributes).toMatchObject([{ lang: '"fr"' }, { lang: '"de"' }]);
    },
  );

  it('leaves updateAttribute() to compare when the value was not changed', async () => {
    const session = writer.restore({ n: '1' });
    session.assignAttribute('n', 1);
    session.assignAttribute('none', undefined);
    await session.updateAttribute<number>('n', (n = 0) => n + 1);
    await session.updateAttribute<number>('none', (n = 0) => n + 1);
    expect(writer.writes).toMatchObject([
      { expected: { name: 'n', text: '1' } },
      { expected: { name: 'none', text: undefined } },
    ]);
  });

  it('writes a value that the session keeps in a regeneration', async () => {
    const session = writer.restore({ lang: '"de"' });
    session.startAnew();
    session.assignAttribute('lang', 'de');
    await session.save();
    expect(writer.attributes).toEqual([{ lang: '"de"' }]);
  });

  it('keeps what a sign-in keeps, and writes what it does not', async () => {
    writer.visitorAttributes = ['cart'];
    const session = writer.restore({ lang: '"de"', cart: '[1]' });
    session.signIn('ada');
    session.assignAttribute('lang', 'de');
    session.assignAttribute('cart', [1]);
    await session.save();
    expect(Object.keys(writer.attributes[0]!)).not.toContain('lang');
    expect(writer.attributes[0]).toMatchObject({ cart: '[1]' });
  });

  it('replaces a value that the store cannot read, or the serializer cannot decode', async () => {
    const unread = { bytes: 1, read: () => { throw new SessionStoreError('The key is unknown'); } }; // prettier-ignore
    const session = writer.restore({}, { attributes: [['sealed', unread], ['broken', '{']] }); // prettier-ignore
    session.assignAttribute('sealed', 1);
    session.assignAttribute('broken', undefined);
    await session.save();
    expect(writer.attributes).toEqual([{ sealed: '1', broken: null }]);
  });

  it('writes each value of a serializer that gives it another text each time', async () => {
    let salt = 0;
    class Salting extends AttributeSerializer {
      serialize = (value: unknown) => `${salt++}:${JSON.stringify(value)}`;
      deserialize = (text: string): unknown => JSON.parse(text.replace(/^\d+:/, ''));
    }
    const salting = new RecordingWriter(new Salting());
    const session = salting.restore({ n: 'old:1' });
    session.assignAttribute('n', 1);
    await session.save();
    expect(Object.keys(salting.attributes[0]!)).toEqual(['n']);
  });

  it('refuses what setAttribute() refuses, and counts only what is written', () => {
    writer.bounds = { ...UNBOUNDED, maxAttributeSize: 3, maxSessionSize: 14 };
    const session = writer.restore({ long: '"longer"' });
    session.assignAttribute('long', 'longer');
    session.assignAttribute('a', 1);
    session.assignAttribute('a', undefined);
    session.assignAttribute('b', 1);
    session.assignAttribute('b', undefined);
    expect(session.isDirty).toBe(false);
    expect(() => session.assignAttribute('a', 'long')).toThrow('"a"');
    expect(() => session.assignAttribute('a', NaN)).toThrow(SessionAttributeError);
    expect(() => session.assignAttribute('', 1)).toThrow(TypeError);
    session.invalidate();
    expect(() => session.assignAttribute('long', 'longer')).toThrow(SessionStateError);
  });
});
