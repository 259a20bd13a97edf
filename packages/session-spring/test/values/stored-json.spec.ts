import { READING_LIMITS } from '../../src/values/json-values.js';
import { readStoredValue } from '../../src/values/stored-value.js';

const read = (text: string) => readStoredValue(Buffer.from(text));

it.each([
  ['"x"', 'x'],
  ['{"a":[1,{"b":null}]}', { a: [1, { b: null }] }],
  ['["a","b"]', ['a', 'b']],
  ['["java.util.ArrayList",["a",["java.lang.Long",2]]]', ['a', 2]],
  ['{"@class":"java.util.HashMap","in":{"@class":"lab.one.OneApp$Point","x":1}}', { in: { x: 1 } }],
  ['["[Ljava.lang.Object;",["a"]]', ['a']],
  ['["[B","AAEC/4A="]', 'AAEC/4A='],
  ['["java.util.EnumSet<lab.Color>",["RED"]]', ['RED']],
  ['{"@class":17,"a":1}', { '@class': 17, a: 1 }],
  // As a host name and a port are: no class is called so.
  ['["www.example.com",80]', ['www.example.com', 80]],
  ['["java.util.ArrayList",[],1]', ['java.util.ArrayList', [], 1]],
  [' \ufeff "x"', undefined],
  ['\ufeff"x"', 'x'],
  ['"\\ud83d\\ude00"', '😀'],
])('reads %s', (text, value) => {
  expect(read(text)).toEqual(value);
});

it.each([
  ['9007199254740991', 9_007_199_254_740_991],
  ['9007199254740993', '9007199254740993'],
  ['-9223372036854775808', '-9223372036854775808'],
  ['[12345678901234567890.123400]', ['12345678901234567890.123400']],
  ['0.1000000000000000', 0.1],
  ['1.7976931348623157e308', 1.797_693_134_862_315_7e308],
  ['["java.math.BigDecimal",12.30]', '12.30'],
  ['["java.math.BigDecimal","12.30"]', '12.30'],
  ['"9007199254740993"', '9007199254740993'],
  ['["a\\\\",9007199254740993,"\\"9007199254740993"]', ['a\\', '9007199254740993', '"9007199254740993']],
  ['1e400', '1e400'],
  ['["java.math.BigInteger",12]', '12'],
  ['"\\"java.math.BigDecimal\\",12.30"', '"java.math.BigDecimal",12.30'],
  ['{"9007199254740993":1}', { '9007199254740993': 1 }],
])('keeps all digits of %s', (text, value) => {
  expect(read(text)).toEqual(value);
});

it.each(["'x'", 'x', 'NaN', '1 // one', '[1,]', '"x"y', '1234567890123456789012.', '00000000000000000001', '', '{"a"'])(
  'does not read %s',
  (text) => {
    expect(read(text)).toBeUndefined();
  },
);

it('does not read what is no UTF-8', () => {
  expect(readStoredValue(Buffer.of(0x22, 0xff, 0x22))).toBeUndefined();
});

it('reads the last one of two members with one name, and `__proto__` as a name', () => {
  expect(read('{"a":1,"a":2}')).toEqual({ a: 2 });
  const value = read('{"@class":"java.util.HashMap","__proto__":{"a":1}}') as Record<string, unknown>;
  expect(Object.getPrototypeOf(value)).toBe(Object.prototype);
  expect(Object.entries(value)).toEqual([['__proto__', { a: 1 }]]);
});

it('reads no more than the limits', () => {
  const nested = (depth: number) => '['.repeat(depth) + ']'.repeat(depth);
  expect(read(nested(READING_LIMITS.depth))).toBeDefined();
  expect(read(nested(READING_LIMITS.depth + 1))).toBeUndefined();
  expect(read(nested(100_000))).toBeUndefined();
  const text = `"${'x'.repeat(READING_LIMITS.bytes - 2)}"`;
  expect([read(text) !== undefined, read(`${text} `)]).toEqual([true, undefined]);
  expect(read(`"${'\\n'.repeat(2_000_000)}"`)).toHaveLength(2_000_000);
  expect(read(`["${'\\'.repeat(2_000_000)}"`)).toBeUndefined();
  expect([read('9'.repeat(1000)), read('9'.repeat(1001))]).toEqual(['9'.repeat(1000), undefined]);
  expect(read(`[${'1,'.repeat(1_000_000)}1]`)).toHaveLength(1_000_001);
});
