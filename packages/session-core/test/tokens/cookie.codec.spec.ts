import type * as crypto from 'node:crypto';
import type { CookieCodec } from '../../src/resolvers/cookie-session-id.resolver.js';

/** The comparisons in constant time: the texts, and whether they were equal. */
const compared: { readonly texts: readonly string[]; readonly areEqual: boolean }[] = [];

let Codec: typeof CookieCodec;
let keys: readonly crypto.KeyObject[];
const builtin = process.getBuiltinModule('node:crypto') as {
  -readonly [Name in keyof typeof crypto]: (typeof crypto)[Name];
};
const { createHmac, timingSafeEqual } = builtin;
let hmacs = 0;
beforeAll(async () => {
  builtin.createHmac = (...args) => {
    hmacs++;
    return createHmac(...args);
  };
  builtin.timingSafeEqual = (one, other) => {
    const areEqual = timingSafeEqual(one, other);
    compared.push({ texts: [one, other].map(String), areEqual });
    return areEqual;
  };
  // Not earlier: the module takes the function that is in place when it is imported.
  ({ CookieCodec: Codec } = await import('../../src/resolvers/cookie-session-id.resolver.js'));
  keys = ['a', 'b'].map((secret) => builtin.createSecretKey(Buffer.from(secret.repeat(32))));
});
beforeEach(() => {
  compared.splice(0);
  hmacs = 0;
});
afterAll(() => {
  Object.assign(builtin, { createHmac, timingSafeEqual });
});

const codec = (signingKeys = keys) => new Codec({ name: 'SESSION', signingKeys });
const TOKEN = 'A'.repeat(43);
const signed = (signature: string) => `${TOKEN}.${signature}`;

it('compares a signature in constant time with the signature of each key, and with nothing else', () => {
  const forged = 'B'.repeat(43);
  expect(codec().decode(signed(forged))).toBe('badly signed');
  expect(compared.map(({ texts }) => texts[0])).toEqual([forged, forged]);
  expect(new Set(compared.map(({ texts }) => texts[1])).size).toBe(2);
});

it.each([0, 21, 42])('compares all of a signature whose character %d alone is wrong', (place) => {
  const [, right = ''] = codec().encode(tokenOf()).split('.');
  const wrong = right.slice(0, place) + (right[place] === 'A' ? 'E' : 'A') + right.slice(place + 1);
  expect(codec().decode(signed(wrong))).toBe('badly signed');
  expect(compared.map(({ texts }) => texts[0])).toEqual([wrong, wrong]);
});

it('accepts a signature only by the result of the comparison in constant time', () => {
  const value = codec([keys[1]!]).encode(tokenOf());
  expect(codec().decode(value)).toMatchObject({ reveal: expect.any(Function) });
  expect(compared.map(({ areEqual }) => areEqual)).toEqual([false, true]);
});

it.each(['', 'x', 'A'.repeat(42), 'A'.repeat(44), 'A'.repeat(200), `${'A'.repeat(42)}ä`])(
  'makes no HMAC for a signature that is not as long as one: %j',
  (signature) => {
    expect(codec().decode(signed(signature))).toEqual(expect.any(String));
    expect(hmacs).toBe(0);
    codec().decode(signed('A'.repeat(43)));
    expect(hmacs).toBe(2);
  },
);

function tokenOf() {
  const token = codec([]).decode(TOKEN);
  if (typeof token === 'string') throw new Error(token);
  return token;
}
