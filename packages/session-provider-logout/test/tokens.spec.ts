import { createHmac } from 'node:crypto';
import { CompactEncrypt, importJWK } from 'jose';
import { LeakGuard } from '@nest-session/test-infrastructure';
import {
  assembled,
  BACK_CHANNEL,
  CAEP,
  type Claims,
  IdentityProvider,
  newKey,
  nowInSeconds,
  sign,
} from './support/identity.provider.js';
import { closeApps, LogoutApp, nameOf, PLATFORMS, type Platform } from './support/logout.app.js';

LeakGuard.install();

let provider: IdentityProvider;
let other: IdentityProvider;
beforeAll(async () => {
  provider = await IdentityProvider.start();
  other = await IdentityProvider.start();
});
afterAll(() => Promise.all([provider.stop(), other.stop()]));
afterEach(closeApps);

const USER = { sub: 'ann', sid: 's-1' };

function start(platform: Platform, options: object = {}): Promise<LogoutApp> {
  const accepts = ['back-channel', 'events'] as const;
  return LogoutApp.start({
    platform,
    issuers: [
      { issuer: provider.issuer, audience: 'shop', accepts, ...options },
      { issuer: other.issuer, audience: 'shop', accepts },
    ],
  });
}

const now = nowInSeconds;
const withoutKey = async (header: object, claims: Claims = {}) =>
  assembled(header, provider.logoutClaims({ ...USER, ...claims }));

interface Row {
  readonly it: string;
  readonly token: () => Promise<string>;
  /** Of the security event; unset: the token ends the session. */
  readonly reason?: string;
}

const logout = (claims: Claims, header: object = {}) => provider.logoutToken({ ...USER, ...claims }, header);

const CLAIMS: readonly Row[] = [
  { it: 'has `sid` alone', token: () => provider.logoutToken({ sid: 's-1' }) },
  { it: 'has `sub` alone', token: () => provider.logoutToken({ sub: 'ann' }) },
  { it: 'has both', token: () => logout({}) },
  { it: 'has neither', token: () => provider.logoutToken(), reason: 'claims' },
  { it: 'has a `sub` that is no text', token: () => logout({ sub: 7 }), reason: 'claims' },
  { it: 'has an empty `sid`', token: () => logout({ sid: '' }), reason: 'claims' },
  { it: 'has a list of audiences with ours', token: () => logout({ aud: ['bank', 'shop'] }) },
  { it: 'has another audience', token: () => logout({ aud: 'bank' }), reason: 'audience' },
  { it: 'has an empty list of audiences', token: () => logout({ aud: [] }), reason: 'audience' },
  { it: 'has no audience', token: () => logout({ aud: undefined }), reason: 'audience' },
  { it: 'has a number as audience', token: () => logout({ aud: 5 }), reason: 'audience' },
  { it: 'has an unknown issuer', token: () => logout({ iss: 'https://other.example' }), reason: 'unknown-issuer' },
  {
    it: 'has an issuer with a slash more',
    token: () => logout({ iss: `${provider.issuer}/` }),
    reason: 'unknown-issuer',
  },
  {
    it: 'has an issuer in capitals',
    token: () => logout({ iss: provider.issuer.toUpperCase() }),
    reason: 'unknown-issuer',
  },
  { it: 'has no issuer', token: () => logout({ iss: undefined }), reason: 'malformed' },
  { it: 'has another issuer with our key', token: () => logout({ iss: other.issuer }), reason: 'unknown-key' },
  { it: 'has expired within the tolerance', token: () => logout({ exp: now() - 30 }) },
  { it: 'has expired an hour ago', token: () => logout({ exp: now() - 3600 }), reason: 'expired' },
  { it: 'expires in the year 2100', token: () => logout({ exp: 4_102_444_800 }) },
  { it: 'has a fraction as `exp`', token: () => logout({ exp: now() + 60.5 }) },
  { it: 'has a text as `exp`', token: () => logout({ exp: String(now() + 60) }), reason: 'claims' },
  { it: 'has no `exp`', token: () => logout({ exp: undefined }), reason: 'claims' },
  { it: 'is from the future', token: () => logout({ iat: now() + 300 }), reason: 'expired' },
  { it: 'is ahead within the tolerance', token: () => logout({ iat: now() + 30 }) },
  { it: 'is two hours old', token: () => logout({ iat: now() - 7200 }), reason: 'expired' },
  { it: 'has no `iat`', token: () => logout({ iat: undefined }), reason: 'claims' },
  { it: 'has a nonce', token: () => logout({ nonce: 'n' }), reason: 'confused' },
  { it: 'has an empty nonce', token: () => logout({ nonce: '' }), reason: 'confused' },
  { it: 'has null as nonce', token: () => logout({ nonce: null }), reason: 'confused' },
  { it: 'has no events', token: () => logout({ events: undefined }), reason: 'confused' },
  { it: 'has a list of events', token: () => logout({ events: [BACK_CHANNEL] }), reason: 'claims' },
  { it: 'has null as events', token: () => logout({ events: null }), reason: 'claims' },
  { it: 'has a text as event', token: () => logout({ events: { [BACK_CHANNEL]: 'x' } }), reason: 'claims' },
  { it: 'has another event', token: () => logout({ events: { 'https://x.example': {} } }), reason: 'confused' },
  { it: 'has another event besides', token: () => logout({ events: { [BACK_CHANNEL]: {}, 'https://x.example': {} } }) },
  { it: 'has no `jti`', token: () => logout({ jti: undefined }), reason: 'claims' },
  { it: 'has a number as `jti`', token: () => logout({ jti: 7 }), reason: 'claims' },
];

const HEADERS: readonly Row[] = [
  { it: 'has no `typ`', token: () => logout({}, { typ: undefined }) },
  { it: 'has `typ` JWT', token: () => logout({}, { typ: 'JWT' }) },
  { it: 'has `typ` LOGOUT+JWT', token: () => logout({}, { typ: 'LOGOUT+JWT' }) },
  { it: 'has `typ` application/logout+jwt', token: () => logout({}, { typ: 'application/logout+jwt' }) },
  { it: 'has `typ` at+jwt', token: () => logout({}, { typ: 'at+jwt' }), reason: 'confused' },
  { it: 'has `typ` secevent+jwt', token: () => logout({}, { typ: 'secevent+jwt' }), reason: 'confused' },
  { it: 'has `alg` none', token: () => withoutKey({ alg: 'none' }), reason: 'signature' },
  {
    it: 'has `alg` none and a key',
    token: () => withoutKey({ alg: 'None', kid: provider.key.kid }),
    reason: 'signature',
  },
  {
    it: 'is signed with the public key as the secret of HS256',
    token: async () => {
      const secret = JSON.stringify(provider.key.jwk);
      const mac = (signed: string) => createHmac('sha256', secret).update(signed).digest();
      return assembled({ alg: 'HS256', kid: provider.key.kid }, provider.logoutClaims(USER), mac);
    },
    reason: 'signature',
  },
  { it: 'has `alg` RS1', token: () => withoutKey({ alg: 'RS1', kid: provider.key.kid }), reason: 'signature' },
  {
    it: 'has an allowed algorithm and a key of another kind',
    token: async () => {
      const key = await newKey('ES256', provider.key.kid);
      return sign(provider.logoutClaims(USER), {}, key);
    },
    reason: 'unknown-key',
  },
  {
    it: 'is signed by another key under the same `kid`',
    token: async () => sign(provider.logoutClaims(USER), {}, await newKey('RS256', provider.key.kid)),
    reason: 'signature',
  },
  {
    it: 'brings its own key, and says where it is',
    token: async () => {
      const { jwk, privateKey, alg } = await newKey();
      const pointers = { jwk, jku: `${other.issuer}/keys`, x5u: `${other.issuer}/keys`, kid: provider.key.kid };
      return sign(provider.logoutClaims(USER), pointers, { jwk, privateKey, alg, kid: undefined });
    },
    reason: 'signature',
  },
  {
    it: 'has a critical header',
    token: async () => {
      const [head = '', body, signature] = (await logout({})).split('.');
      const header = { ...(JSON.parse(Buffer.from(head, 'base64url').toString()) as object), crit: ['x'], x: 1 };
      return [Buffer.from(JSON.stringify(header)).toString('base64url'), body, signature].join('.');
    },
    reason: 'signature',
  },
  {
    it: 'has `b64: false`',
    token: () => withoutKey({ alg: 'RS256', kid: provider.key.kid, b64: false, crit: ['b64'] }),
    reason: 'signature',
  },
  {
    it: 'is an ID token',
    token: () => provider.logoutToken({ ...USER, events: undefined, nonce: 'n' }, { typ: 'JWT' }),
    reason: 'confused',
  },
  {
    it: 'is an access token',
    token: () => provider.logoutToken({ ...USER, events: undefined, scope: 'openid' }, { typ: 'at+jwt' }),
    reason: 'confused',
  },
  { it: 'is a security event', token: () => provider.eventToken(`${CAEP}session-revoked`), reason: 'confused' },
  {
    it: 'is encrypted',
    token: async () => {
      const key = await importJWK({ kty: 'oct', k: Buffer.alloc(32).toString('base64url') }, 'A256GCM');
      const encrypt = new CompactEncrypt(Buffer.from('{}')).setProtectedHeader({ alg: 'dir', enc: 'A256GCM' });
      return encrypt.encrypt(key);
    },
    reason: 'encrypted',
  },
  { it: 'is no JWT', token: async () => 'a.b.c', reason: 'malformed' },
  { it: 'is empty', token: async () => '', reason: 'malformed' },
];

describe.each(PLATFORMS)('on %s, a logout token that', (platform) => {
  it.each([...CLAIMS, ...HEADERS])('$it is accepted or refused as it should be', async ({ token, reason }) => {
    const app = await start(platform);
    const agent = await app.signedIn({ iss: provider.issuer, ...USER, iat: now() - 10 });
    const reads = other.reads;
    const answer = await app.logOut(await token());
    expect(answer.headers).toMatchObject({ 'cache-control': 'no-store', 'content-type': 'application/json' });
    if (reason === undefined) {
      expect([answer.status, answer.json()]).toEqual([200, { ended: 1 }]);
      expect(await nameOf(agent)).toBeNull();
    } else {
      expect([answer.status, answer.json<{ error: string }>().error]).toEqual([400, 'invalid_request']);
      expect(await nameOf(agent)).toBe('ann');
      expect(app.told.security).toMatchObject([{ kind: 'refused-provider-token', reason }]);
      // Nothing that only the token names was asked.
      if (reason !== 'unknown-key') expect(other.reads).toBe(reads);
    }
  });
});

function namesAnotherKey(token: string): boolean {
  const header = JSON.parse(Buffer.from(token.split('.', 1)[0]!, 'base64url').toString()) as { readonly kid?: string };
  return header.kid !== provider.key.kid;
}

describe('a logout token', () => {
  it.each(['RS256', 'PS256', 'ES256', 'EdDSA'])('may be signed by %s', async (alg) => {
    const signer = await IdentityProvider.start(alg);
    try {
      const app = await LogoutApp.start({ issuers: [{ issuer: signer.issuer, audience: ['shop', 'till'] }] });
      const agent = await app.signedIn({ iss: signer.issuer, ...USER });
      expect((await app.logOut(await signer.logoutToken({ ...USER, aud: 'till' }))).json()).toEqual({ ended: 1 });
      expect(await nameOf(agent)).toBeNull();
    } finally {
      await signer.stop();
    }
  });

  it('without `exp` counts for two minutes with `expiry: "optional"`', async () => {
    const app = await start('express', { expiry: 'optional' });
    await app.signedIn({ iss: provider.issuer, ...USER, iat: now() - 1000 });
    const old = await app.logOut(await logout({ exp: undefined, iat: now() - 300 }));
    expect([old.status, app.told.security[0]?.reason]).toEqual([400, 'expired']);
    expect((await app.logOut(await logout({ exp: undefined }))).json()).toEqual({ ended: 1 });
  });

  it('changes nothing when it comes again, also with other claims', async () => {
    const app = await start('express');
    await app.signedIn({ iss: provider.issuer, ...USER });
    const token = await logout({ jti: 'j-1' });
    expect((await app.logOut(token)).json()).toEqual({ ended: 1 });
    const agent = await app.signedIn({ iss: provider.issuer, sub: 'bob', sid: 's-2' });
    expect((await app.logOut(token)).json()).toEqual({ ended: 0 });
    expect((await app.logOut(await logout({ jti: 'j-1', sub: 'bob', sid: 's-2' }))).json()).toEqual({ ended: 0 });
    expect(await nameOf(agent)).toBe('bob');
    // Of another issuer it is another one.
    await app.signedIn({ iss: other.issuer, ...USER });
    expect((await app.logOut(await other.logoutToken({ ...USER, jti: 'j-1' }))).json()).toEqual({ ended: 1 });
  });

  it('that was changed anywhere is a 400, and ends nothing', async () => {
    const app = await start('express');
    const agent = await app.signedIn({ iss: provider.issuer, ...USER });
    const good = await logout({});
    await app.logOut(`${good}x`);
    const statuses = new Set<number>();
    for (let i = 0; i < 512; i++) {
      const at = Math.floor((good.length * i) / 512);
      const to = 'AZaz09-_.!'[i % 10]!;
      const changed = good.slice(0, at) + to + good.slice(at + (i % 3));
      // The last character of a signature has bits that mean nothing.
      if (changed === good || at >= good.length - 1) continue;
      const { status } = await app.logOut(changed);
      // Nobody can tell of a key that the issuer may have published since a moment ago.
      if (status !== 503 || !namesAnotherKey(changed)) statuses.add(status);
    }
    expect([...statuses]).toEqual([400]);
    expect(await nameOf(agent)).toBe('ann');
  });

  it('that says `sub` of one user and `sid` of another is refused, and ends nothing', async () => {
    const app = await start('express');
    const agents = [
      await app.signedIn({ iss: provider.issuer, ...USER }),
      await app.signedIn({ iss: provider.issuer, sub: 'bob' }),
    ];
    const answer = await app.logOut(await logout({ sub: 'bob' }));
    expect([answer.status, app.told.security[0]?.reason]).toEqual([400, 'mixed']);
    expect(await Promise.all(agents.map(nameOf))).toEqual(['ann', 'bob']);
  });

  it('that says one of several `sub` of a session at the provider ends what was signed in as this one', async () => {
    const app = await start('express', { audience: ['shop', 'till'] });
    const subs = ['ann-at-shop', 'ann-at-till'];
    const agents = await Promise.all(subs.map((sub) => app.signedIn({ iss: provider.issuer, sub, sid: 's-1' })));
    expect((await app.logOut(await logout({ sub: 'ann-at-shop' }))).json()).toEqual({ ended: 1 });
    expect(await Promise.all(agents.map(nameOf))).toEqual([null, 'ann-at-till']);
    expect((await app.logOut(await logout({ sub: 'ann-at-till', aud: 'till' }))).json()).toEqual({ ended: 1 });
    expect(await nameOf(agents[1]!)).toBeNull();
  });
});
