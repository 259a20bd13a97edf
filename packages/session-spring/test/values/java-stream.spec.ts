import { READING_LIMITS } from '../../src/values/json-values.js';
import { readStoredValue } from '../../src/values/stored-value.js';
import {
  array,
  block,
  described,
  END,
  int,
  NULL,
  object,
  reference,
  RESET,
  stream,
  text,
} from '../support/java-stream.js';
import { RECORDED_VALUES, stored } from '../support/spring.records.js';

const OBJECTS = '[Ljava.lang.Object;';
const LIST = described('java.util.ArrayList', { flags: 3 });

it('reads a string that is longer than 65,535 bytes', () => {
  const long = 'é'.repeat(40_000);
  const length = Buffer.alloc(8);
  length.writeBigInt64BE(80_000n);
  expect(readStoredValue(stream(Buffer.of(0x7c), length, Buffer.from(long)))).toBe(long);
});

it('reads blocks with a length of four bytes, and leaves them out', () => {
  const long = [Buffer.of(0x7a), int(300), Buffer.alloc(300)];
  expect(readStoredValue(stream(object(LIST, long, text('a'), block(1, 2), text('b'), END)))).toEqual(['a', 'b']);
});

it('forgets what was before a reset', () => {
  expect(readStoredValue(stream(RESET, RESET, text('a')))).toBe('a');
  expect(readStoredValue(stream(array(OBJECTS, 2, text('a'), [RESET, reference(0)])))).toBeUndefined();
  // The array and its class description are the handles before it.
  expect(readStoredValue(stream(array(OBJECTS, 2, text('a'), reference(2))))).toEqual(['a', 'a']);
});

it('reads a class, and the description of one, by its name', () => {
  const description = described('lab.Point');
  expect(readStoredValue(stream(Buffer.of(0x76), description))).toBe('lab.Point');
  expect(readStoredValue(stream(description))).toBe('lab.Point');
});

it.each<[string, Buffer]>([
  ['an exception while Java wrote', stream(Buffer.of(0x7b), text('a'))],
  ['an unknown code', stream(Buffer.of(0x6f))],
  ['blocks in place of a value', stream(block(1, 2))],
  ['an end in place of a value', stream(END)],
  ['another version', Buffer.of(0xac, 0xed, 0, 6, 0x70)],
  ['nothing behind the version', stream()],
  ['half of the version', Buffer.of(0xac, 0xed)],
  ['a reference to what comes later', stream(array(OBJECTS, 2, reference(3), text('a')))],
  ['a reference before the first', stream(reference(-1))],
  ['a text in place of a class description', stream(Buffer.of(0x73), text('a'))],
  ['a class that is its own superclass', stream(object(described('lab.A', { superclass: reference(0) })))],
  ['a class of which a field is described by itself', stream(object(described('lab.A', { superclass: text('a') })))],
  ['an object without its end', stream(object(LIST, text('a')))],
  ['an object of Java 1.1', stream(object(described('lab.A', { flags: 4 }), text('a')))],
  ['a text that is no modified UTF-8', stream(Buffer.of(0x74, 0, 1, 0xff))],
  ['a text with half of a character', stream(Buffer.of(0x74, 0, 1, 0xe2))],
  ['an array of nothing', stream(array('[', 1, text('a')))],
])('does not read %s', (_what, bytes) => {
  expect(readStoredValue(bytes)).toBeUndefined();
});

it.each(['[B', '[I', '[J', OBJECTS])('gives an array %s no room that is longer than the stream', (type) => {
  for (const length of [0x7fff_ffff, -1, -0x8000_0000, 3]) {
    expect(readStoredValue(stream(array(type, length, Buffer.alloc(2))))).toBeUndefined();
  }
});

it('gives a block and a text no room that are longer than the stream', () => {
  const long = (code: number, length: bigint) => {
    const bytes = Buffer.alloc(8);
    bytes.writeBigInt64BE(length);
    return stream(Buffer.of(code), bytes);
  };
  for (const length of [2n ** 40n, 2n ** 63n - 1n, -1n]) expect(readStoredValue(long(0x7c, length))).toBeUndefined();
  expect(readStoredValue(stream(object(LIST, Buffer.of(0x7a), int(0x7fff_ffff))))).toBeUndefined();
  expect(readStoredValue(stream(object(LIST, Buffer.of(0x7a), int(-5), Buffer.alloc(9))))).toBeUndefined();
});

it('reads no deeper than the limit, and counts no depth that has ended', () => {
  const nested = (depth: number) => Buffer.concat(Array.from({ length: depth }, () => array(OBJECTS, 1)));
  expect(readStoredValue(stream(nested(150), NULL))).toBeDefined();
  expect(readStoredValue(stream(nested(READING_LIMITS.depth), NULL))).toBeUndefined();
  expect(readStoredValue(stream(nested(20_000), NULL))).toBeUndefined();
  const wide = Array.from({ length: 1000 }, () => array(OBJECTS, 1, NULL));
  expect(readStoredValue(stream(array(OBJECTS, 1000, ...wide)))).toHaveLength(1000);
});

it('reads no deeper than the limit where objects refer to one another, which is not deep in the stream', () => {
  const node = described('lab.Node', { fields: ['next'] });
  const chain = (length: number, handle: number) =>
    Array.from({ length }, (_, i) =>
      i === 0 ? object(node, NULL) : object(reference(handle), reference(handle + 1 + i)),
    );
  // The array and its class come before the class of the nodes.
  const listed = (length: number) => readStoredValue(stream(array(OBJECTS, length, ...chain(length, 2))));
  expect((listed(3) as unknown[])[2]).toEqual({ next: { next: { next: null } } });
  expect(listed(150)).toHaveLength(150);
  expect(listed(1000)).toBeUndefined();
  // What a class has written by itself is read and has no meaning, so the last node is the first to be met.
  const outer = described('lab.Inner', { fields: ['last'], superclass: described('lab.Outer', { flags: 3 }) });
  const met = (length: number) =>
    readStoredValue(stream(object(outer, ...chain(length, 4), END, reference(5 + length))));
  expect(met(2)).toEqual({ last: { next: { next: null } } });
  expect(met(20_000)).toBeUndefined();
});

it('reads no more superclasses than the limit', () => {
  let superclass = NULL;
  for (let i = 0; i < 60; i++) superclass = described(`lab.A${i}`, { superclass });
  expect(readStoredValue(stream(object(superclass)))).toBeUndefined();
});

it('reads no more parts than the limit, also where many are in few bytes', () => {
  const steps = READING_LIMITS.steps + 1;
  expect(readStoredValue(stream(Buffer.alloc(steps, RESET), text('a')))).toBeUndefined();
  expect(readStoredValue(stream(array(OBJECTS, steps, Buffer.alloc(steps, NULL))))).toBeUndefined();
  expect(readStoredValue(stream(array('[Z', steps, Buffer.alloc(steps))))).toBeUndefined();
});

it('reads no value that is small in the stream and large outside of it', () => {
  // Each of the arrays has the next one ten times.
  const tens = (levels: number) => {
    const inner = Array.from({ length: levels - 1 }, () => [Buffer.of(0x75), reference(0), int(10)]);
    const again = inner.map((_, i) => Array.from({ length: 9 }, () => reference(i + 2))).reverse();
    return stream(Buffer.of(0x75), described(OBJECTS), int(10), inner, Buffer.alloc(10, NULL), again);
  };
  expect((readStoredValue(tens(4)) as unknown[]).flat(3)).toEqual(Array(10_000).fill(null));
  expect(tens(12).length).toBeLessThan(1000);
  expect(readStoredValue(tens(12))).toBeUndefined();
  const long = 'x'.repeat(60_000);
  const many = Array.from({ length: 999 }, () => reference(2));
  expect(readStoredValue(stream(array(OBJECTS, 1000, text(long), ...many)))).toBeUndefined();
  expect(readStoredValue(stream(array(OBJECTS, 10, text(long), ...many.slice(-9))))).toHaveLength(10);
});

it('has nothing of an object that is inside of itself, or that nobody knows', () => {
  const own = described('lab.Node', { fields: ['next', 'other'] });
  // The class, the names of the types of its two fields, and the object.
  expect(readStoredValue(stream(object(own, reference(3), text('a'))))).toEqual({ other: 'a' });
  expect(readStoredValue(stream(object(described('java.util.Random', { fields: ['a'] }), text('b'))))).toBeUndefined();
  const external = described('lab.A', { flags: 0x0c });
  expect(readStoredValue(stream(object(external, text('a'), END)))).toBeUndefined();
  expect(readStoredValue(stream(object(LIST, object(external, END), text('a'), END)))).toEqual([null, 'a']);
});

it.each(['__proto__', 'constructor', 'toString', 'hasOwnProperty'])('is not harmed by the name %s', (name) => {
  const value = readStoredValue(stream(object(described(name, { fields: [name] }), text('a'))));
  expect(Object.getPrototypeOf(value)).toBe(Object.prototype);
  expect(Object.entries(value as object)).toEqual([[name, 'a']]);
  expect(readStoredValue(stream(array(name, 0)))).toEqual([]);
});

it('does not read a time whose part of a second is no whole number', () => {
  const date = described('java.util.Date', { flags: 3 });
  const ofDouble = described('java.sql.Timestamp', { fields: ['nanos'], superclass: date, type: 'D' });
  const since1970 = block(0, 0, 0, 0, 0, 0, 0, 5);
  const timestamp = (nanos: number) => {
    const bytes = Buffer.alloc(8);
    bytes.writeDoubleBE(nanos);
    return readStoredValue(stream(object(ofDouble, since1970, END, bytes)));
  };
  expect(timestamp(2_000_000)).toBe('1970-01-01T00:00:00.007Z');
  for (const nanos of [NaN, Infinity, 0.5]) expect(timestamp(nanos)).toBeUndefined();
});

it('does not read a number with very many digits', () => {
  const { jdk } = RECORDED_VALUES.find((each) => each.name === 'bigInteger')!;
  const bytes = stored(jdk);
  const magnitude = (length: number) => [
    bytes.subarray(0, -17),
    int(length),
    Buffer.alloc(length, 0xff),
    bytes.subarray(-1),
  ];
  const at = bytes.indexOf(Buffer.concat([int(13), bytes.subarray(-14, -1)]));
  expect(at).toBe(bytes.length - 18);
  const of = (length: number) => Buffer.concat([bytes.subarray(0, at), ...magnitude(length).slice(1)]);
  expect(readStoredValue(of(1024))).toBe((2n ** 8192n - 1n).toString());
  expect(readStoredValue(of(1025))).toBeUndefined();
});

it.each(RECORDED_VALUES.filter(({ name }) => !/^(null|class)/.test(name)))(
  'does not read $name without its last byte',
  ({ jdk }) => {
    const bytes = stored(jdk);
    expect(readStoredValue(bytes.subarray(0, -1))).toBeUndefined();
  },
);
