import { SerializationProblem } from '../../src/session/attribute.serializer.js';
import { DevalueAttributeSerializer } from '../../src/devalue.js';
import { JsonAttributeSerializer } from '../../src/session/json-attribute.serializer.js';

class Money {
  constructor(readonly cents: number) {}
}

const circular: Record<string, unknown> = {};
circular.self = { back: circular };
let deep: unknown = [new Date()];
for (let i = 0; i < 100_000; i++) deep = [deep];

/** The problem of a value. */
function problemOf(serializer: DevalueAttributeSerializer, value: unknown): SerializationProblem {
  try {
    serializer.serialize(value);
  } catch (error) {
    return error as SerializationProblem;
  }
  throw new Error('It was serialized');
}

describe('DevalueAttributeSerializer', () => {
  const serializer = new DevalueAttributeSerializer();

  it.each<[string, unknown]>([
    ['a Date', new Date(5)],
    ['a Date inside', { at: new Date(5) }],
    ['a Map', new Map([['a', new Set([1])]])],
    ['a Set', new Set(['a'])],
    ['a BigInt', 12345678901234567890n],
    ['NaN', [NaN, -Infinity]],
    ['undefined in an array', [undefined]],
    ['a regular expression', /a/g],
    ['bytes', new Uint8Array([1, 2])],
    ['a Buffer', { bytes: Buffer.from('ä') }],
    ['a circle', circular],
    ['plain data', { a: [1, null, { b: 'devalue:' }] }],
    ['a string that begins like its own texts', 'devalue:[]'],
  ])('restores %s', (_, value) => {
    expect(serializer.deserialize(serializer.serialize(value))).toStrictEqual(value);
  });

  it.each<[string, (buffer: ArrayBuffer) => ArrayBufferView]>([
    ['a Uint8Array', (buffer) => new Uint8Array(buffer, 16, 2)],
    ['a Float64Array', (buffer) => new Float64Array(buffer, 8, 2)],
    ['a DataView', (buffer) => new DataView(buffer, 3, 5)],
  ])('stores of %s no more of its memory than it shows', (_, viewOf) => {
    const memory = Uint8Array.from({ length: 8192 }, (__, i) => i % 251);
    const view = viewOf(memory.buffer);
    const text = serializer.serialize({ again: [view, view] });
    expect(text.length).toBeLessThan(200);
    const { again } = serializer.deserialize(text) as { again: [ArrayBufferView, ArrayBufferView] };
    expect(again).toStrictEqual([view, view]);
    expect(again[0].buffer.byteLength).toBe(view.byteLength);
    expect(again[1]).toBe(again[0]);
  });

  it('stores as JSON what JSON restores, and reads what was stored as JSON', () => {
    const json = new JsonAttributeSerializer();
    for (const value of ['ann', 5, [1, 2], { a: { b: undefined } }]) {
      expect(serializer.serialize(value)).toBe(json.serialize(value));
      expect(serializer.deserialize(json.serialize(value))).toEqual(value);
    }
    expect(() => json.deserialize(serializer.serialize(new Date()))).toThrow();
  });

  it('restores no keys __proto__ that others have stored', () => {
    expect(JSON.stringify(serializer.deserialize('{"__proto__":{"isAdmin":true},"a":1}'))).toBe('{"a":1}');
    expect(() => serializer.deserialize('devalue:[{"__proto__":1},{"isAdmin":2},true]')).toThrow('__proto__');
  });

  it('restores instances of the classes that it knows', () => {
    const knowing = new DevalueAttributeSerializer({
      reducers: { Money: (value) => value instanceof Money && [value.cents] },
      revivers: { Money: ([cents]: [number]) => new Money(cents) },
    });
    const value = { prices: [new Money(5), new Money(7)] };
    expect(knowing.deserialize(knowing.serialize(value))).toStrictEqual(value);
  });

  it.each<[string, unknown, string]>([
    ['an instance of a class', { price: new Money(5) }, ' at .price that'],
    ['a function', { f: [() => 'secret'] }, ' at .f[0] that'],
    ['a symbol', Symbol('secret'), 'holds a value that devalue'],
    ['an instance in a Map', new Map([['secret', new Money(5)]]), ' at .get(...) that'],
    ['100 000 levels', deep, 'nested too deeply'],
    ['a key __proto__', { a: JSON.parse('{"__proto__":1}') }, 'holds a key `__proto__` at .a.__proto__, '],
    ['a key __proto__ beside a Date', [new Date(), JSON.parse('{"__proto__":1}')], 'holds a key `__proto__` at [1], '],
  ])('refuses %s with an error that names the place, but not the value', (_, value, expected) => {
    const problem = problemOf(serializer, value);
    expect(problem).toBeInstanceOf(SerializationProblem);
    expect(problem.message).toContain(expected);
    expect([problem.message, problem.cause]).toEqual([expect.not.stringContaining('secret'), undefined]);
  });
});
