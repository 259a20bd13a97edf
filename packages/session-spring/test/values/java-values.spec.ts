import { readStoredValue } from '../../src/values/stored-value.js';
import { RECORDED_VALUES, stored } from '../support/spring.records.js';

/** What attributes of a running application come out as. */
const OF_APPLICATION: Readonly<Record<string, unknown>> = {
  string: 'hello ü€😀 "q" \\',
  stringEmpty: '',
  int: 42,
  intNegative: -1,
  longSmall: 7,
  longLarge: 1_404_360_000_000,
  double: 3.5,
  doubleWhole: 2,
  doubleNaN: 'NaN',
  float: 1.5,
  short: 3,
  char: 'c',
  boolTrue: true,
  boolFalse: false,
  // Its field is empty.
  null: undefined,
  arrayList: ['a', 1, 2, 1_404_360_000_000, 1.5, true, null],
  arrayListEmpty: [],
  listOf: ['a', 1],
  arraysAsList: ['a', 'b'],
  linkedHashMap: { s: 'x', i: 1, l: 2, d: 1.5, b: true, n: null },
  hashMapEmpty: {},
  mapOf: { k: 'v' },
  nestedMap: {
    inner: { deep: [1, { z: 'zz' }] },
    when: '2024-01-02T03:04:05.678901234Z',
    id: '00112233-4455-6677-8899-aabbccddeeff',
    amount: '12.30',
  },
  longInMap: { l: 7 },
  treeMap: { a: 1 },
  pojo: { age: 33, any: [1, 2], big: 5, color: 'RED', name: 'Ann', tags: ['x', 'y'] },
  record: { x: 1, y: 2 },
  instant: '2024-01-02T03:04:05.678901234Z',
  localDate: '2024-01-02',
  localDateTime: '2024-01-02T03:04:05',
  zonedDateTime: '2024-01-02T03:04:05+01:00',
  duration: 'PT1M30S',
  date: '2014-07-03T04:00:00.123Z',
  uuid: '00112233-4455-6677-8899-aabbccddeeff',
  bigDecimal: '12345678901234567890.123400',
  bigInteger: '123456789012345678901234567890',
  bytes: 'AAEC/4A=',
  intArray: [1, 2, 3],
  stringArray: ['a', 'b'],
  objectArray: ['a', 1, 2],
  enum: 'RED',
  enumBody: 'GREEN',
  hashSet: ['a'],
  linkedHashSet: ['a', 'b'],
  setOf: ['a'],
};

/** Where Java's own serialization says something else than Jackson, which calls getters. */
const UNLIKE_JACKSON: Readonly<Record<string, unknown>> = {
  enumBody: 'GREEN',
  externalizable: undefined,
  proxy: undefined,
  lambda: undefined,
  nCopies: undefined,
  bitSet: undefined,
  random: undefined,
  instantMax: undefined,
  cycle: { all: [{ all: [], name: 'b' }, null], name: 'a', next: { all: [], name: 'b' } },
  cyclicList: ['x', null],
  exception: { code: 7 },
  lastException: { authenticationRequest: null },
  recordAsKey: { a: 1 },
  offsetTime: '03:04:00+02:00',
};

/** Numbers with a class of their own are texts, with all their digits. Plain JSON does not say that they have one. */
const BIG_NUMBERS: Readonly<Record<string, unknown>> = {
  nestedMap: OF_APPLICATION['nestedMap'],
  bigIntegerZero: '0',
  bigDecimalNegative: '-0.000123',
  bigDecimalExponent: '1.5E+30',
  bigDecimalTiny: '1E-20',
  bigDecimalWhole: '100',
};

const read = (text: string) => readStoredValue(stored(text));

it('reads each attribute of an application that Java has serialized', () => {
  const values = RECORDED_VALUES.slice(0, 45).map(({ name, jdk }) => [name, read(jdk)]);
  expect(Object.fromEntries(values)).toEqual(OF_APPLICATION);
  expect(values.map(([name]) => name)).toEqual(Object.keys(OF_APPLICATION));
});

describe.each(RECORDED_VALUES)('$name', ({ name, jdk, plain, typed }) => {
  it('is the same in the serialization of Java as in the JSON of Jackson, with and without classes', () => {
    const isUnlike = name in UNLIKE_JACKSON;
    if (isUnlike) expect(read(jdk)).toEqual(UNLIKE_JACKSON[name]);
    if (name in BIG_NUMBERS) {
      expect([read(jdk), read(typed!)]).toEqual([BIG_NUMBERS[name], BIG_NUMBERS[name]]);
      expect(read(plain!)).not.toEqual(BIG_NUMBERS[name]);
    } else if (plain !== undefined) {
      expect(read(typed!)).toEqual(read(plain));
      if (isUnlike) expect(read(jdk)).not.toEqual(read(plain));
      else expect(read(jdk)).toEqual(read(plain));
    }
  });
});

it('makes data of JSON alone', () => {
  for (const { name, jdk } of RECORDED_VALUES) {
    const value = read(jdk);
    if (value === undefined) continue;
    // An infinite number or a key without a value would be lost.
    expect([name, JSON.parse(JSON.stringify(value))]).toStrictEqual([name, Object.is(value, -0) ? 0 : value]);
  }
});

it('reads a key `__proto__` as a key', () => {
  const { jdk } = RECORDED_VALUES.find(({ name }) => name === 'keysOfMaps')!;
  const value = read(jdk) as object;
  expect(Object.getPrototypeOf(value)).toBe(Object.prototype);
  expect(Object.entries(value)).toEqual([
    ['1', 'int'],
    ['2', 'long'],
    ['RED', 'enum'],
    ['00000000-0000-0001-0000-000000000002', 'uuid'],
    ['true', 'bool'],
    ['__proto__', 'proto'],
    ['constructor', 'c'],
  ]);
});
