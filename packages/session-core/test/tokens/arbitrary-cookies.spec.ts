import type * as crypto from 'node:crypto';
import { ServerResponse } from 'node:http';
import { Logger } from '@nestjs/common';
import fc from 'fast-check';
import type * as core from '../../src/index.js';
import { requestWith } from '../support/node.request.js';
import { SIGNING_KEYS } from '../support/signing.keys.js';

const MOST = 64;
const NAME = 'SESSION';
const HEADER_SIZE = 16 * 1024;

const builtin = process.getBuiltinModule('node:crypto') as {
  -readonly [Name in keyof typeof crypto]: (typeof crypto)[Name];
};
const { createHmac } = builtin;
let hmacs = 0;
let api: typeof core;
beforeAll(async () => {
  Logger.overrideLogger(false);
  builtin.createHmac = (...args) => {
    hmacs++;
    return createHmac(...args);
  };
  // Not earlier: the modules take the function that is in place when they are imported.
  api = await import('../../src/index.js');
});
afterAll(() => {
  builtin.createHmac = createHmac;
});

/** The values of all cookies with a name, by the letter of RFC 6265: the first "=" of each pair separates. */
function valuesOf(header: string, name: string): string[] {
  const withoutBlanks = (text: string) => text.replace(/^[ \t]+|[ \t]+$/g, '');
  return header
    .split(';')
    .filter((pair) => pair.includes('='))
    .map((pair) => [pair.slice(0, pair.indexOf('=')), pair.slice(pair.indexOf('=') + 1)].map(withoutBlanks))
    .flatMap(([given, value = '']) => (given === name ? [value.replace(/^"(.*)"$/s, '$1')] : []));
}

const token = fc.stringMatching(/^[\w-]{22,128}$/);
const signature = fc.oneof(fc.stringMatching(/^[\w-]{43}$/), fc.stringMatching(/^[\w-]{0,60}$/));
const value = fc.oneof(
  { weight: 4, arbitrary: token },
  { weight: 2, arbitrary: fc.tuple(token, signature).map((parts) => parts.join('.')) },
  token.map((text) => `"${text}"`),
  fc.string({ unit: 'binary-ascii', maxLength: 60 }),
  fc.constantFrom('', NAME, `${NAME}=`, '__proto__', '"', 'x'.repeat(5000)),
);
const blanks = fc.constantFrom('', '', '', ' ', '\t', ' \t ', '\u00a0', '\f');
const name = fc.oneof(
  { weight: 5, arbitrary: fc.constant(NAME) },
  fc.constantFrom(
    '',
    'session',
    `${NAME}2`,
    `X${NAME}`,
    `${NAME} ${NAME}`,
    `"${NAME}`,
    '__Host-SESSION',
    '__proto__',
    'a',
  ),
);
const pair = fc
  .tuple(blanks, name, blanks, fc.constantFrom('=', '=', '=', '', '=='), blanks, value, blanks)
  .map((parts) => parts.join(''));
const header = fc
  .tuple(
    fc.array(pair, { maxLength: 30 }),
    fc.integer({ min: 1, max: 40 }),
    fc.constantFrom(';', '; ', ';;', ' ;\t', ','),
  )
  .map(([pairs, times, separator]) => Array.from({ length: times }, () => pairs.join(separator)).join(separator))
  .map((text) => text.slice(0, HEADER_SIZE));

describe('any cookie header of 16 KB', () => {
  it('opens nothing but the tokens of the first 64 values of the name', () => {
    fc.assert(
      fc.property(header, (cookie) => {
        const resolver = new api.CookieSessionIdResolver();
        const found = resolver.resolve(requestWith({ cookie })).map((each) => each.reveal());
        const looked = valuesOf(cookie, NAME).slice(0, MOST);
        expect(found).toEqual([...new Set(looked.filter((each) => /^[\w-]{22,128}$/.test(each)))]);
      }),
      { numRuns: 2000 },
    );
  });

  it('costs at most 64 HMACs for each signing key, and opens no session without a valid signature', () => {
    const own = 'A'.repeat(43);
    fc.assert(
      fc.property(header, fc.boolean(), (junk, isFirst) => {
        const resolver = new api.CookieSessionIdResolver({ signingKeys: SIGNING_KEYS });
        const cookie = isFirst ? `${NAME}=${valueSentBy(resolver, own)};${junk}` : junk;
        hmacs = 0;
        const found = resolver.resolve(requestWith({ cookie })).map((each) => each.reveal());
        expect(found).toEqual(isFirst ? [own] : []);
        expect(hmacs).toBeLessThanOrEqual(MOST * SIGNING_KEYS.length);
      }),
      { numRuns: 1000 },
    );
  });

  it.each([
    ['a signature that is too short', `${'a'.repeat(22)}.x`, 0],
    ['a signature of the right length', `${'a'.repeat(22)}.${'b'.repeat(43)}`, MOST * SIGNING_KEYS.length],
  ])('costs a bounded number of HMACs when it is full of %s', (_, text, expected) => {
    const resolver = new api.CookieSessionIdResolver({ signingKeys: SIGNING_KEYS });
    hmacs = 0;
    expect(resolver.resolve(requestWith({ cookie: `${NAME}=${text};`.repeat(HEADER_SIZE / text.length) }))).toEqual([]);
    expect(hmacs).toBe(expected);
  });

  it('opens at most 64 tokens in all with several cookies and a header, and those of the last place as well', () => {
    const cookies = ['a', 'b', 'c'];
    const resolver = new api.CompositeSessionIdResolver(
      ...cookies.map((each) => new api.CookieSessionIdResolver({ name: each })),
      api.HeaderSessionIdResolver.xAuthToken(),
    );
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...cookies), { maxLength: 300, size: 'max' }), token, (names, last) => {
        const cookie = names.map((each, i) => `${each}=${String(i).padStart(30, '_')}`).join('; ');
        const found = resolver.resolve(requestWith({ cookie, 'x-auth-token': last })).map((each) => each.reveal());
        expect(found.length).toBe(Math.min(new Set(found).size, MOST));
        expect(found.at(-1)).toBe(last);
        for (const each of cookies) {
          const own = valuesOf(cookie, each).slice(0, 5);
          expect(found).toEqual(expect.arrayContaining(own));
        }
        if (names.length < MOST - 15) expect(found).toHaveLength(names.length + 1);
      }),
      { numRuns: 500 },
    );
  });
});

/** What a resolver sends as the value of its cookie. */
function valueSentBy(resolver: core.SessionIdResolver, text: string): string {
  const response = new ServerResponse(requestWith());
  resolver.send(requestWith(), response, api.sessionTokenOf(text)!, { isRemembered: false });
  return valuesOf(String(response.getHeader('Set-Cookie')), NAME)[0]!;
}
