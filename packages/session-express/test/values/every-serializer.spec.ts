import * as core from '@nest-session/core';
import * as devalue from '@nest-session/core/devalue';
import * as redis from '@nest-session/redis';
import * as spring from '@nest-session/spring';
import * as express from '../../src/index.js';

type Serializer = core.AttributeSerializer;

/** What a check needs other than the default serializer, by class. */
const MADE: Readonly<Record<string, readonly Serializer[]>> = {
  SpringJsonSerializer: [
    new spring.SpringJsonSerializer(),
    ...(['plain', 'typed', 'security'] as const).map((form) => new spring.SpringJsonSerializer(form)),
  ],
  DevalueAttributeSerializer: [
    new devalue.DevalueAttributeSerializer(),
    new devalue.DevalueAttributeSerializer({
      reducers: { Wish: (value) => value instanceof Wish && value.text },
      revivers: { Wish: (text: string) => JSON.parse(text) as unknown },
    }),
  ],
};

class Wish {
  constructor(readonly text: string) {}
}

const exported = [core, devalue, express, redis, spring]
  .flatMap((module) => Object.values(module as Record<string, unknown>))
  .filter((value): value is new () => Serializer => (value as Function).prototype instanceof core.AttributeSerializer);
const all = exported.flatMap((Class) =>
  (MADE[Class.name] ?? [new Class()]).map((serializer, i) => [`${Class.name} ${i}`, serializer] as const),
);

it('all serializers of the packages are checked', () => {
  expect(exported.map(({ name }) => name).toSorted()).toEqual([
    'DevalueAttributeSerializer',
    'ExpressSessionSerializer',
    'JsonAttributeSerializer',
    'SpringJsonSerializer',
  ]);
});

describe.each(all)('%s', (_, serializer) => {
  it.each([
    ['{"__proto__":{"isAdmin":true},"theme":"dark"}', { theme: 'dark' }],
    ['{"a":[{"b":{"__proto__" : {"isAdmin":true},"c":1}}]}', { a: [{ b: { c: 1 } }] }],
    ['{"\\u005f_pr\\u006Fto__":{"isAdmin":true},"theme":"dark"}', { theme: 'dark' }],
    ['{"__proto__":null,"constructor":{"prototype":1}}', { constructor: { prototype: 1 } }],
  ])('leaves keys that would set the prototype of a copy out of %s', (text, expected) => {
    const value = serializer.deserialize(text);
    expect(JSON.stringify(value)).toBe(JSON.stringify(expected));
    expect(Object.assign({}, value)).not.toHaveProperty('isAdmin');
  });

  it('writes no key __proto__', () => {
    const value = { theme: 'dark', inner: JSON.parse('{"__proto__":{"isAdmin":true}}') as unknown };
    expect(() => serializer.serialize(value)).toThrow(/^holds a key `__proto__`/);
  });
});

it('what Java has stored stays as it is, with the key that a read leaves out', () => {
  const text =
    '{"@class":"java.util.HashMap","__proto__":{"@class":"java.util.HashMap","isAdmin":true},"theme":"dark"}';
  const serializer = new spring.SpringJsonSerializer('typed');
  const value = serializer.deserialize(text);
  expect([value, serializer.hasText(value, text), serializer.serialize(value)]).toEqual([
    { theme: 'dark' },
    true,
    text,
  ]);
});

it('a reviver brings no such key either', () => {
  const serializer = MADE['DevalueAttributeSerializer']![1]!;
  const text = serializer.serialize({ wish: new Wish('{"__proto__":{"isAdmin":true},"a":1}') });
  const { wish } = serializer.deserialize(text) as { wish: object };
  expect([Object.keys(wish), Object.assign({}, wish)]).toEqual([['a'], { a: 1 }]);
});
