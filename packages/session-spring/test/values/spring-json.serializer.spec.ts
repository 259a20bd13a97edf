import { SerializationProblem } from '@nest-session/core';
import { SpringJsonSerializer } from '@nest-session/spring';

describe.each(['plain', 'typed', 'security'] as const)('the JSON of Spring: %s', (form) => {
  const serializer = new SpringJsonSerializer(form);

  it.each([
    ['half of a surrogate pair', 'a\ud800'],
    ['half of a surrogate pair in a name', { 'a\udc00': 1 }],
    ['a member that Java takes for a class', { '@class': 'com.example.Cart' }],
    ['such a member in an inner object, whatever it is', [{ a: { '@class': 'x' } }]],
    ['a list that Java takes for another one with its class', ['java.util.ArrayList', [1]]],
    ['an object that is nested too deep', nested(101)],
  ])('refuses %s', (_what, value) => {
    expect(() => serializer.serialize(value)).toThrow(SerializationProblem);
  });

  it.each([[nested(100)], [['x', 1]], [{ a: [1, { b: null }], c: '😀', d: 0.1 }], ['text'], [null], [true]])(
    'writes what reads as the same: %j',
    (value) => {
      expect(serializer.deserialize(serializer.serialize(value))).toEqual(value);
    },
  );
});

it('refuses the context of Spring Security unless Spring is known to keep its sessions with those modules', () => {
  const text = '{"@class":"org.springframework.security.core.context.SecurityContextImpl","authentication":null}';
  const context = new SpringJsonSerializer().deserialize(text);
  expect(new SpringJsonSerializer('security').serialize(context)).toBe(text);
  for (const form of ['plain', 'typed'] as const) {
    expect(() => new SpringJsonSerializer(form).serialize(context)).toThrow(/SecurityJacksonModules/);
  }
});

function nested(depth: number): unknown {
  return depth === 0 ? 1 : { a: nested(depth - 1) };
}
