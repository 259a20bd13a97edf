import fc from 'fast-check';
import { junk, lines } from '../../support/junk.js';

/** How a token is made worthless. */
export interface TokenFault {
  readonly how: 'flip' | 'case' | 'truncate' | 'extend' | 'quote' | 'percent' | 'wrong key' | 'random';
  /** Where, as a share of the length. */
  readonly at: number;
}

/** The tokens that a request presents: those of its browser, of another one, or worthless ones, in this order. */
export type Presented = readonly ('own' | 'of the other browser' | 'hundred others' | TokenFault)[];

export interface BodyPlan {
  readonly type: string;
  readonly bytes: Uint8Array;
  /** Whether a CSRF token is put in the place of `<csrf>`. */
  readonly framing: 'length' | 'chunked' | 'too long' | 'too short' | 'both' | 'twice' | 'negative' | 'none';
}

export interface RequestPlan {
  readonly line: string;
  readonly presents: Presented;
  /** Whether the CSRF token of the session is sent. */
  readonly sendsCsrf: boolean;
  readonly lines: readonly string[];
  readonly body: BodyPlan | undefined;
}

/** Damages the bytes of a connection, wherever they are. */
export interface Edit {
  readonly at: number;
  readonly how: 'flip' | 'insert' | 'delete' | 'repeat';
  readonly bytes: Uint8Array;
}

/** One connection: its requests are sent one after the other, without waiting for responses. */
export interface ConnectionPlan {
  readonly browser: 0 | 1;
  readonly requests: readonly RequestPlan[];
  readonly edits: readonly Edit[];
  /** Where the bytes are split, as shares of their number. */
  readonly cuts: readonly number[];
  /** `leave`: the client disconnects after this share of the bytes. `unread`: after all of them. */
  readonly end: 'read' | 'half-close' | 'unread' | { readonly leave: number };
}

/** What one visitor with two browsers does: connections that are open at the same time, again and again. */
export type VisitPlan = readonly (readonly ConnectionPlan[])[];

const share = fc.double({ min: 0, max: 1, noNaN: true });
const token = fc.constantFrom(...(['own'] as const));

const fault: fc.Arbitrary<TokenFault> = fc.record({
  how: fc.constantFrom('flip', 'case', 'truncate', 'extend', 'quote', 'percent', 'wrong key', 'random'),
  at: share,
});

const presented: fc.Arbitrary<Presented> = fc.oneof(
  { weight: 14, arbitrary: fc.tuple(token) },
  { weight: 2, arbitrary: fc.constant([]) },
  { weight: 3, arbitrary: fc.tuple(fault) },
  { weight: 2, arbitrary: fc.tuple(fault, token) },
  { weight: 2, arbitrary: fc.constantFrom(['own', 'of the other browser'], ['of the other browser', 'own']) },
  {
    weight: 2,
    arbitrary: fc.array(
      fc.oneof(fault, fc.constantFrom('own' as const, 'of the other browser' as const, 'hundred others' as const)),
      { maxLength: 4 },
    ),
  },
);

const PATHS: readonly [weight: number, ...lines: string[]][] = [
  [5, 'GET /read', 'POST /set', 'POST /login'],
  [2, 'POST /start', 'POST /change', 'POST /rotate', 'POST /logout', 'GET /form', 'GET /account', 'POST /save'],
  [1, 'POST /push/list', 'POST /principal', 'POST /invalidate', 'POST /interval', 'POST /fail', 'GET /password'],
  [1, 'GET /file', 'GET /sse', 'GET /request', 'GET /mine', 'DELETE /mine', 'DELETE /mine/x', 'GET /redirected'],
  [1, 'GET /accounts', 'DELETE /accounts/0', 'DELETE /accounts/1', 'GET /idle', 'GET /nothing', 'GET /nowhere'],
];
const known = fc.constantFrom(
  ...PATHS.flatMap(([weight, ...group]) => group.flatMap((line) => Array<string>(weight).fill(line))),
);
const ALIASES = ['', '', '', '?_s=1', '?_s=19', '?_s=20', '?_s=__proto__', '?_s=1&_s=2', '?_s=%ff', '?_s=-0'];
const method = fc.constantFrom('GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'M-SEARCH', 'get');
const target = fc.oneof(
  fc.constantFrom('/%', '/%ff', '//', '/read/../set', 'http://evil.example/read', '*', '/read#a', '/push/__proto__'),
  fc.constantFrom('/read%0d%0aX-Injected:%20yes', '/push/%00', '/push/%ed%a0%80', '/push/', '/accounts/__proto__'),
  junk.map((text) => `/${encodeURIComponent(text)}`),
  junk.map((text) => `/push/${encodeURIComponent(text)}`),
);
const line = fc.oneof(
  { weight: 20, arbitrary: fc.tuple(known, fc.constantFrom(...ALIASES)).map((parts) => parts.join('')) },
  { weight: 1, arbitrary: fc.tuple(method, fc.constantFrom('/read', '/set', '/nothing')).map((two) => two.join(' ')) },
  { weight: 1, arbitrary: fc.tuple(fc.constantFrom('GET', 'POST'), target).map((parts) => parts.join(' ')) },
);

const LINES = [
  ['Expect: 100-continue'],
  ['Expect: nothing'],
  ['Upgrade: websocket'],
  ['Upgrade: h2c', 'HTTP2-Settings: AAMAAABkAAQAAP__'],
  ['Transfer-Encoding: gzip, chunked'],
  ['Transfer-Encoding: identity'],
  ['Content-Length: 3'],
  ['Content-Encoding: gzip'],
  ['Origin: null'],
  ['Origin: https://shop.example.org'],
  ['Sec-Fetch-Site: cross-site'],
  ['Sec-Fetch-Site: same-origin', 'Origin: \xff'],
  ['Host: b'],
  ['Host: '],
  ['X-HTTP-Method-Override: DELETE'],
  ['X-Forwarded-Proto: https', 'X-Forwarded-For: \xff, 1.2.3.4'],
  ['X-Refused: yes'],
  ['X-Refused: yes', 'Accept: */*'],
  ['X-Refused: yes', 'Accept: text/html'],
  ['X-CSRF-Token: __proto__'],
  ['X-Auth-Token: ', 'X-Auth-Token: a'],
  [`User-Agent: ${'\u00e4'.repeat(500)}`],
  [`Cookie: ${'a=b; '.repeat(4000)}`],
  [`Cookie: ${'SESSION=; '.repeat(300)}`],
  ['Cookie: __proto__=a; constructor=b; SESSION.__proto__=c; SESSION.1=d'],
  ['Cookie: SESSION=a\0b'],
  ['Cookie: a=b\r\n SESSION=folded'],
  ['__proto__: a', 'constructor: b'],
  Array.from({ length: 500 }, (_, i) => `X-${i}: 1`),
  ['Range: bytes=0-1', 'If-None-Match: *', 'If-Modified-Since: x'],
];
const more = fc.oneof(
  { weight: 8, arbitrary: fc.constant([]) },
  { weight: 2, arbitrary: fc.constantFrom(...LINES) },
  { weight: 1, arbitrary: lines },
);

const member = fc.oneof(
  fc.jsonValue({ maxDepth: 2 }),
  fc.constantFrom('red', 'blue', 1.5e300, [], ['a'], { a: [{}] }),
  junk,
  fc.nat({ max: 4000 }).map((length) => 'x'.repeat(length)),
);
const right = fc
  .record(
    {
      name: fc.constantFrom('ann', 'bob', 'eve', 'sha256:eve', 'a:b', '{x}', '*'),
      keep: fc.constantFrom(['color'], [], ['list', '__proto__']),
      remember: fc.boolean(),
      interval: fc.constantFrom(-1, 0, 1, 60, 60, 3600),
      text: fc.string(),
      team: member,
      color: member,
      list: fc.array(fc.string()),
    },
    { requiredKeys: ['name'] },
  )
  .map((value) => JSON.stringify(value));

const text = fc.oneof(
  fc.dictionary(junk, member, { maxKeys: 8 }).map((value) => JSON.stringify(value)),
  fc.record({ name: junk }).map((value) => JSON.stringify(value)),
  fc.json(),
  fc.constantFrom(
    '{"__proto__":{"a":1}}',
    '{"a":{"__proto__":1}}',
    '{"a":{"constructor":{"prototype":{"b":1}}}}',
    String.raw`{"\ud800":1,"\ud801":2}`,
    String.raw`{"name":"\ud800","team":"\udfff","a":"\ud800\u0000"}`,
    String.raw`{"\u0000":"\u0000","":1}`,
    '{"name":{"toString":1}}',
    '{"name":["ann"],"interval":"1","keep":{"length":9}}',
    '{"interval":1e999,"list":{"length":-1}}',
    '{',
    'null',
    '"text"',
    ' ',
    '',
  ),
  fc.constantFrom(10, 1000, 5000, 40_000).map((depth) => `{"a":${'['.repeat(depth)}${']'.repeat(depth)}}`),
  fc.constantFrom(10, 1000, 12_000).map((depth) => `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`),
  fc.constantFrom(30, 300).map((count) => JSON.stringify(Object.fromEntries(Array.from({ length: count }, entry)))),
  fc.constantFrom(3000, 60_000, 150_000).map((size) => JSON.stringify({ name: 'x'.repeat(size), color: '' })),
);

function entry(_: unknown, i: number): [string, number] {
  return [`name ${i}`, i];
}

const form = fc.oneof(
  fc.array(fc.tuple(junk, junk)).map((pairs) => new URLSearchParams(pairs as [string, string][]).toString()),
  fc.constantFrom(
    'name=ann&color=red',
    '_csrf=a&_csrf=b',
    'a[b][c]=1&__proto__[x]=2',
    `a${'[b]'.repeat(500)}=1`,
    '%ff=%',
  ),
);
const TYPES = [
  'application/json',
  'application/x-www-form-urlencoded',
  'text/plain',
  'multipart/form-data; boundary=a',
  '',
];
const framing = fc.oneof(
  { weight: 12, arbitrary: fc.constantFrom('length', 'chunked') },
  { weight: 1, arbitrary: fc.constantFrom('too long', 'too short', 'both', 'twice', 'negative', 'none') },
);
const encoder = new TextEncoder();
const body: fc.Arbitrary<BodyPlan | undefined> = fc.oneof(
  { weight: 8, arbitrary: bodyOf(right.map(bytesOf), fc.constant(TYPES[0]!), fc.constant('length')) },
  { weight: 1, arbitrary: fc.constant(undefined) },
  { weight: 4, arbitrary: bodyOf(text.map(bytesOf), fc.constant(TYPES[0]!), framing) },
  { weight: 1, arbitrary: bodyOf(form.map(bytesOf), fc.constant(TYPES[1]!), framing) },
  {
    weight: 1,
    arbitrary: bodyOf(
      fc.oneof(fc.uint8Array(), text.map(bytesOf)),
      fc.oneof(
        fc.constantFrom(...TYPES, 'application/json; charset=utf-16', 'application/json; charset=x', 'a/b, c/d'),
        junk.map((each) => each.replaceAll(/[^ -~]/g, '')),
      ),
      framing,
    ),
  },
);

function bytesOf(each: string): Uint8Array {
  return encoder.encode(each);
}

function bodyOf(
  bytes: fc.Arbitrary<Uint8Array>,
  type: fc.Arbitrary<string>,
  framed: fc.Arbitrary<BodyPlan['framing']>,
): fc.Arbitrary<BodyPlan> {
  return fc.record({ type, bytes, framing: framed });
}

const request: fc.Arbitrary<RequestPlan> = fc.record({
  line,
  presents: presented,
  sendsCsrf: fc.nat({ max: 5 }).map((n) => n > 0),
  lines: more,
  body,
});

const edit: fc.Arbitrary<Edit> = fc.record({
  at: share,
  how: fc.constantFrom('flip', 'insert', 'delete', 'repeat'),
  bytes: fc.oneof(
    fc.uint8Array({ minLength: 1, maxLength: 4 }),
    fc
      .constantFrom('\0', '\r\n', '\n', '\r\n\r\n', '\xff\xfe', ': ', '=', ';', '%', ' ')
      .map((each) => Buffer.from(each, 'latin1')),
  ),
});

const connection: fc.Arbitrary<ConnectionPlan> = fc.record({
  browser: fc.constantFrom(0, 0, 0, 1),
  requests: fc.oneof(
    { weight: 5, arbitrary: fc.tuple(request) },
    { weight: 1, arbitrary: fc.array(request, { minLength: 1, maxLength: 4 }) },
  ),
  edits: fc.oneof(
    { weight: 9, arbitrary: fc.constant([]) },
    { weight: 1, arbitrary: fc.array(edit, { minLength: 1, maxLength: 3 }) },
  ),
  cuts: fc.oneof(
    { weight: 3, arbitrary: fc.constant([]) },
    { weight: 1, arbitrary: fc.array(share, { minLength: 1, maxLength: 5 }) },
  ),
  end: fc.oneof(
    { weight: 20, arbitrary: fc.constant('read') },
    { weight: 1, arbitrary: fc.constant('half-close') },
    { weight: 1, arbitrary: fc.constant('unread') },
    { weight: 1, arbitrary: fc.record({ leave: share }) },
  ),
} as const);

const group = fc.oneof(
  { weight: 5, arbitrary: fc.tuple(connection) },
  { weight: 1, arbitrary: fc.array(connection, { minLength: 1, maxLength: 4 }) },
);

/** One visit, of about `GROUPS_OF_VISIT` groups. */
export const visit: fc.Arbitrary<VisitPlan> = fc.array(group, { minLength: 1, maxLength: 30, size: 'max' });
