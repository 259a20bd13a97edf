import { runInNewContext } from 'node:vm';
import { WarnOnce } from '../../src/logging/warn-once.js';
import { readData } from '../../src/events/event-data.js';
import { AttributeSerializer, SerializationProblem } from '../../src/session/attribute.serializer.js';
import { JsonAttributeSerializer } from '../../src/session/json-attribute.serializer.js';
import { SessionSnapshot } from '../../src/session/session-snapshot.js';
import { StoredAttributes } from '../../src/session/tracked-attributes.js';
import { RecordingWriter } from '../support/recording.writer.js';

const OWNER = [new WarnOnce(), () => 'session'] as const;

class Money {
  constructor(readonly cents: number) {}
}

class Items extends Array<string> {}

const circular: Record<string, unknown> = { secret: 'secret' };
circular.self = { back: circular };
const shared = { a: 1 };
const holed: unknown[] = [];
holed.length = 1;
let deep: unknown = [];
for (let i = 0; i < 100_000; i++) deep = [deep];

describe('JsonAttributeSerializer', () => {
  const serializer = new JsonAttributeSerializer();

  it.each<[string, unknown, unknown?]>([
    ['a string', 'täxt \u2028 \ud800'],
    ['a number', -1.5e300],
    ['a boolean', false],
    ['nested data', { a: [1, null, { b: '' }], c: {} }],
    ['an object twice', [shared, shared]],
    ['an object without prototype', Object.assign(Object.create(null), { a: 1 }), { a: 1 }],
    ['an object of another realm', runInNewContext('({ a: [1, {}] })'), { a: [1, {}] }],
    ['an object without its undefined members', { a: 1, b: undefined, c: { d: undefined } }, { a: 1, c: {} }],
    ['an object without its symbol keys', { a: 1, [Symbol('b')]: 2 }, { a: 1 }],
    ['the negative zero as zero', [-0], [0]],
  ])('restores %s', (_, value, expected = value) => {
    expect(serializer.deserialize(serializer.serialize(value))).toStrictEqual(expected);
  });

  it('names the place of a problem on one line, whatever the keys are', () => {
    const hostile = 'a\n[Nest] 1 LOG admin signed in\u001b[2K';
    const messageOf = (value: unknown) => {
      try {
        return serializer.serialize(value);
      } catch (error) {
        return (error as Error).message;
      }
    };
    expect(messageOf({ list: [{ [hostile]: 1n }] })).toContain(
      String.raw`at .list[0]["a\n[Nest] 1 LOG admin signed in\u001b[2K"] that is a bigint`,
    );
    expect(messageOf({ [hostile]: JSON.parse('{"__proto__":{}}') as object })).not.toContain('\n');
    const long = messageOf({ ['k'.repeat(90_000)]: { [`${hostile}${'x'.repeat(90_000)}`]: { a: 1n } } });
    expect(long).toContain(`["${'k'.repeat(39)}…"]["a\\n`);
    let nested: object = { at: 1n };
    for (let i = 0; i < 500; i++) nested = { key: nested };
    for (const message of [long, messageOf(nested)]) expect(message.length).toBeLessThan(500);
  });

  it.each<[string, unknown, string]>([
    ['a Date', { at: new Date() }, '.at that is a Date'],
    ['a Map', { secret: [0, new Map([['secret', 1]])] }, '.secret[1] that is a Map'],
    ['a Set', new Set(['secret']), 'a value that is a Set'],
    ['an instance of a class', { price: new Money(5) }, '.price that is a Money'],
    ['an instance of a class that extends Array', new Items(), 'a value that is a Items'],
    ['a boxed string', new String('secret'), 'a value that is a String'],
    ['undefined in an array', [undefined], '[0] that is undefined'],
    ['a hole', holed, '[0] that is undefined'],
    ['a BigInt', { n: 12345n }, '.n that is a bigint'],
    ['NaN', [NaN], '[0] that is NaN or infinite'],
    ['Infinity', -Infinity, 'a value that is NaN or infinite'],
    ['a function', { f: () => 'secret' }, '.f that is a function'],
    ['a symbol', Symbol('secret'), 'a value that is a symbol'],
    ['a circle', circular, '.self.back that refers back to itself'],
    ['a Buffer', Buffer.from('secret'), 'a value that is a Buffer'],
    ['a regular expression', { r: /secret/ }, '.r that is a RegExp'],
    ['an Error', new Error('secret'), 'a value that is a Error'],
    ['a value with toJSON', { toJSON: () => 'secret' }, 'a value that has a toJSON()'],
    ['100 000 levels', deep, 'a value that is nested too deeply'],
  ])(
    'refuses %s with an error that names the place and the serializer option, but not the value',
    (_, value, place) => {
      let problem: unknown;
      try {
        serializer.serialize(value);
      } catch (error) {
        problem = error;
      }
      expect(problem).toBeInstanceOf(SerializationProblem);
      const { message } = problem as Error;
      expect(message).toContain(place);
      expect(message).toContain('`serializer` option');
      expect(message.replace('.secret', '')).not.toMatch(/secret|12345/);
    },
  );

  it.each<[string, unknown, RegExp]>([
    ['a Date', new Date(), /store a number, its `getTime\(\)`, or/],
    ['a Map', new Map(), /store an array, `\[\.\.\.map\]`, or/],
    ['a Set', new Set(), /store an array, `\[\.\.\.set\]`, or/],
    ['a BigInt', 1n, /store a string, or/],
    ['NaN', NaN, /store null, or/],
    ['undefined in an array', [undefined], /store null, or/],
    ['an instance of a class', new Money(5), /store plain data, such as its id or the members that you need, or/],
  ])('says what to store instead of %s', (_, value, instead) => {
    expect(() => serializer.serialize(value)).toThrow(instead);
  });

  it.each<[string, unknown, string]>([
    ['the value', JSON.parse('{"__proto__":{"isAdmin":true}}'), 'holds a key `__proto__` at .__proto__, '],
    ['a nested value', { a: [0, JSON.parse('{"__proto__":1}')] }, 'holds a key `__proto__` at .a[1].__proto__, '],
  ])('refuses a key __proto__ of %s with an error that names the place', (_, value, problem) => {
    expect(() => serializer.serialize(value)).toThrow(SerializationProblem);
    expect(() => serializer.serialize(value)).toThrow(problem);
  });

  it.each([
    ['{"__proto__":{"isAdmin":true},"a":1}', { a: 1 }],
    ['[{"a":{"__proto__" : {"isAdmin":true}}}]', [{ a: {} }]],
    ['{"\\u005f_pr\\u006Fto__":{"isAdmin":true},"a":{"b":1}}', { a: { b: 1 } }],
    ['{"__proto__":null,"constructor":{"prototype":1}}', { constructor: { prototype: 1 } }],
  ])('leaves out keys that would set a prototype from what others have stored: %s', (text, expected) => {
    const value = serializer.deserialize(text);
    expect(JSON.stringify(value)).toBe(JSON.stringify(expected));
    expect(Object.assign({}, value)).not.toHaveProperty('isAdmin');
  });

  it('restores texts that only look as if they had a key __proto__', () => {
    const value = { a: '__proto__', b: '"__proto__":1', 'c"__proto__': 1, 'd\\u0041': 'A', constructor: 1 };
    expect(serializer.deserialize(serializer.serialize(value))).toEqual(value);
  });

  it('leads to an error that names the attribute', () => {
    const attributes = new StoredAttributes([], serializer, ...OWNER);
    expect(() => attributes.encode('cart', { at: new Date() })).toThrow(
      /^Session attribute "cart" holds a value at \.at that is a Date, .*`serializer` option/,
    );
  });

  it('leads to an error without the message of a serializer that fails', () => {
    const broken = new StoredAttributes(
      [],
      {
        serialize: () => {
          throw new Error('cannot encode "secret"');
        },
        deserialize: JSON.parse,
      },
      ...OWNER,
    );
    expect(() => broken.encode('cart', 'secret')).toThrow(/^Session attribute "cart" cannot be serialized$/);
  });
});

describe('a serializer of the application that reads keys __proto__', () => {
  const text = '{"__proto__":{"isAdmin":true},"a":[{"__proto__":{"isAdmin":true},"b":1}]}';
  const expected = { a: [{ b: 1 }] };

  class Plain extends AttributeSerializer {
    serialize(value: unknown) {
      return JSON.stringify(value);
    }

    deserialize(stored: string): unknown {
      return JSON.parse(stored);
    }
  }

  class Overriding extends JsonAttributeSerializer {
    override deserialize(stored: string): unknown {
      return JSON.parse(stored);
    }
  }

  class Mapped extends Plain {
    override deserialize(stored: string): unknown {
      const value = JSON.parse(stored) as Record<string, unknown>;
      value['map'] = new Map([['key', new Set([JSON.parse(stored)])]]);
      value['self'] = value;
      return value;
    }
  }

  it.each([new Plain(), new Overriding()])('gives the application none: %#', async (serializer) => {
    const writer = new RecordingWriter(serializer);
    const session = writer.restore({ cart: text });
    expect(JSON.stringify(session.getAttribute('cart'))).toBe(JSON.stringify(expected));
    let updated: unknown;
    await session.updateAttribute('cart', (current) => {
      updated = Object.assign({}, current);
      return null;
    });
    expect(updated).toEqual(expected);
    expect(updated).not.toHaveProperty('isAdmin');
    const times = { creationTime: 1000, lastAccessedTime: 2000, maxInactiveInterval: 1800, absoluteTimeout: -1 };
    const record = { id: session.id, ...times, timeToLive: undefined, attributes: [['cart', text]] as const };
    const snapshot = new SessionSnapshot(record, serializer);
    expect(Object.assign({}, snapshot.getAttribute('cart'))).not.toHaveProperty('isAdmin');
    expect(readData('reminder', text, serializer, Error)).toEqual(expected);
    expect(JSON.stringify(readData('reminder', text, serializer, Error))).toBe(JSON.stringify(expected));
  });

  it('does not write back what was only read', async () => {
    const writer = new RecordingWriter(new Plain());
    const session = writer.restore({ cart: text });
    session.getAttribute('cart');
    await session.save();
    expect(writer.attributes.filter((each) => 'cart' in each)).toEqual([]);
  });

  it('gives none in a map, a set, or behind a circle', () => {
    const session = new RecordingWriter(new Mapped()).restore({ cart: text });
    const { map } = session.getAttribute<{ map: Map<string, Set<object>> }>('cart')!;
    expect(JSON.stringify([...map.get('key')!])).toBe(JSON.stringify([expected]));
  });
});
