import { randomUUID } from 'node:crypto';
import { jest } from '@jest/globals';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually } from '@nest-session/testing';
import { CAEP, IdentityProvider, newKey, nowInSeconds, sign } from './support/identity.provider.js';
import { closeApps, LogoutApp, type LogoutAppOptions } from './support/logout.app.js';

LeakGuard.install();

let provider: IdentityProvider;
beforeEach(async () => {
  ahead = 0;
  jest.spyOn(performance, 'now').mockImplementation(() => now.call(performance) + ahead);
  provider = await IdentityProvider.start();
});
afterEach(async () => {
  jest.restoreAllMocks();
  await closeApps();
  await provider.stop();
});

const start = (options: Partial<LogoutAppOptions> = {}) =>
  LogoutApp.start({ issuers: [{ issuer: provider.issuer, audience: 'shop' }], ...options });

const statusOf = async (app: LogoutApp, key = provider.key) =>
  (await app.logOut(await provider.logoutToken({ sub: 'ann' }, {}, key))).status;

const { now } = performance;
let ahead = 0;

/** Moves the monotonic clock by which keys grow old. */
function advance(minutes: number): void {
  ahead += minutes * 60_000;
}

it('a new key counts at once, and an old one until the keys are loaded again', async () => {
  const app = await start();
  const old = provider.key;
  expect(await statusOf(app)).toBe(200);
  advance(1);
  const next = await newKey();
  provider.keys = [next, old];
  expect(await statusOf(app, next)).toBe(200);
  provider.keys = [next];
  expect(await statusOf(app, old)).toBe(200);
  advance(12);
  expect(await statusOf(app, old)).toBe(400);
  expect(provider.reads).toBe(3);
});

it('keys that nobody has do not load the provider', async () => {
  const app = await start();
  expect(await statusOf(app)).toBe(200);
  const made = await newKey();
  const statuses = [];
  for (let i = 0; i < 100; i++) statuses.push(await statusOf(app, { ...made, kid: randomUUID() }));
  expect(new Set(statuses)).toEqual(new Set([503]));
  expect(provider.reads).toBe(1);
  advance(1);
  expect(await statusOf(app, { ...made, kid: randomUUID() })).toBe(400);
  expect([await statusOf(app), provider.reads]).toEqual([200, 2]);
});

it('many tokens at once read the keys once', async () => {
  const app = await start();
  const statuses = await Promise.all(Array.from({ length: 20 }, () => statusOf(app)));
  expect([new Set(statuses), provider.reads]).toEqual([new Set([200]), 1]);
});

it.each<[string, () => void]>([
  ['answers 500', () => (provider.instead.keys = (_, response) => void response.writeHead(500).end('{}'))],
  ['answers HTML', () => (provider.instead.keys = (_, response) => void response.end('<html>'))],
  ['answers something else in JSON', () => (provider.instead.keys = (_, response) => void response.end('{"keys":7}'))],
  ['answers 10 MB', () => (provider.instead.keys = (_, response) => void response.end(`"${'x'.repeat(10_000_000)}"`))],
  [
    'redirects',
    () =>
      (provider.instead.keys = (_, response) =>
        void response.writeHead(302, { Location: `${provider.issuer}/other` }).end()),
  ],
  [
    'has a document of another issuer',
    () => (provider.document = { issuer: 'https://x.example', jwks_uri: 'https://x.example' }),
  ],
  [
    'has keys by http elsewhere',
    () => (provider.document = { issuer: provider.issuer, jwks_uri: 'http://x.example/keys' }),
  ],
  ['hangs', () => (provider.instead.document = () => undefined)],
  ['breaks off', () => (provider.instead.document = (request) => void request.destroy())],
])('a provider that %s costs a 503, and counts when it is there', async (_, spoil) => {
  const app = await start();
  spoil();
  const answer = await app.logOut(await provider.logoutToken({ sub: 'ann' }));
  expect([answer.status, answer.headers['cache-control'], answer.json<{ error: string }>().error]).toEqual([
    503,
    'no-store',
    'temporarily_unavailable',
  ]);
  expect(Number(answer.headers['retry-after'])).toBeGreaterThan(0);
  expect(app.told.security).toEqual([]);
  expect(app.log.lines.join('\n')).toContain('could not be read');
  Object.assign(provider, { document: undefined });
  provider.instead.keys = provider.instead.document = undefined as never;
  advance(1);
  expect(await statusOf(app)).toBe(200);
});

describe('an issuer with https that names the address of its keys', () => {
  const issuer = 'https://tenant.example';
  const statusWithKeysAt = async (jwks_uri: string) => {
    const { fetch } = globalThis;
    jest.spyOn(globalThis, 'fetch').mockImplementation(async (address, init) => {
      if (address === `${issuer}/.well-known/openid-configuration`)
        return new Response(JSON.stringify({ issuer, jwks_uri }));
      return fetch(address === `${issuer}/keys` ? `${provider.issuer}/keys` : address, init);
    });
    const app = await start({ issuers: [{ issuer, audience: 'shop' }] });
    const token = await sign(provider.logoutClaims({ iss: issuer, sub: 'ann' }), {}, provider.key);
    return (await app.logOut(token)).status;
  };

  it.each(['127.0.0.1', 'localhost', '[::1]'])('sends no request to %s of this machine', async (host) => {
    const { port } = new URL(provider.issuer);
    expect([await statusWithKeysAt(`http://${host}:${port}/keys`), provider.reads]).toEqual([503, 0]);
  });

  it('is asked there by https', async () => {
    expect([await statusWithKeysAt(`${issuer}/keys`), provider.reads]).toEqual([200, 1]);
  });
});

it('known keys count for a day while the provider cannot be reached', async () => {
  const app = await start();
  expect(await statusOf(app)).toBe(200);
  provider.instead.keys = (_, response) => void response.writeHead(500).end();
  advance(20 * 60);
  expect(await statusOf(app)).toBe(200);
  advance(5 * 60);
  expect(await statusOf(app)).toBe(503);
});

it('keys may have no `kid`, also several of them', async () => {
  provider.keys = [await newKey('RS256', ''), await newKey('RS256', '')].map((key) => ({
    ...key,
    kid: undefined,
    jwk: { ...key.jwk, kid: undefined },
  }));
  const app = await start({
    issuers: [{ issuer: provider.issuer, audience: 'shop', accepts: ['back-channel', 'events'] }],
  });
  for (const key of provider.keys) expect(await statusOf(app, key)).toBe(200);
  // An event counts although it has expired, whichever key it is signed by.
  const { issuer: iss } = provider;
  const sub_id = { format: 'iss_sub', iss, sub: 'ann' };
  const expired = {
    iss,
    aud: 'shop',
    iat: nowInSeconds() - 600,
    exp: nowInSeconds() - 300,
    sub_id,
    events: { [`${CAEP}session-revoked`]: {} },
  };
  for (const key of provider.keys) {
    const event = await sign({ ...expired, jti: randomUUID() }, { typ: 'secevent+jwt' }, key);
    expect((await app.pushEvent(event)).status).toBe(202);
  }
  const forged = await sign({ ...expired, jti: 'j' }, { typ: 'secevent+jwt' }, { ...(await newKey()), kid: undefined });
  expect((await app.pushEvent(forged)).status).toBe(400);
  expect(await statusOf(app, { ...(await newKey()), kid: undefined })).toBe(400);
});

it('a key that is too short is refused', async () => {
  const short = await newKey();
  provider.keys = [{ ...short, jwk: { ...short.jwk, n: (short.jwk as { n: string }).n.slice(0, 86) } }];
  expect(await statusOf(await start(), short)).toBe(400);
});

it('keys can be given in the options, or where they are', async () => {
  const { jwk } = provider.key;
  const options = { issuer: 'https://login.example.com', audience: 'shop' };
  for (const keys of [{ jwks: { keys: [jwk] } }, { jwksUri: `${provider.issuer}/keys` }]) {
    const app = await start({ issuers: [{ ...options, keys }] });
    const claims = provider.logoutClaims({ sub: 'ann', iss: options.issuer });
    expect((await app.logOut(await sign(claims, {}, provider.key))).status).toBe(200);
    expect((await app.logOut(await sign(provider.logoutClaims({ sub: 'ann' }), {}, provider.key))).status).toBe(400);
  }
});

describe('a function that finds issuers', () => {
  it('is asked once per issuer and ten minutes, and never asks the network by itself', async () => {
    const asked: string[] = [];
    const issuers = (issuer: string) => {
      asked.push(issuer);
      return issuer === provider.issuer ? { issuer, audience: 'shop' } : undefined;
    };
    const app = await start({ issuers });
    expect([await statusOf(app), await statusOf(app)]).toEqual([200, 200]);
    const unknown = await sign(provider.logoutClaims({ sub: 'ann', iss: 'https://x.example' }), {}, provider.key);
    expect((await app.logOut(unknown)).status).toBe(400);
    expect(app.told.security).toMatchObject([{ reason: 'unknown-issuer', by: undefined }]);
    expect(asked).toEqual([provider.issuer, 'https://x.example']);
    advance(11);
    expect([await statusOf(app), asked.length]).toEqual([200, 3]);
  });

  it('is asked once for many tokens at once, and the keys are read once', async () => {
    let asked = 0;
    const app = await start({
      issuers: async (issuer) => {
        asked++;
        await new Promise((resolve) => setTimeout(resolve, 100));
        return { issuer, audience: 'shop' };
      },
    });
    const statuses = await Promise.all(Array.from({ length: 20 }, () => statusOf(app)));
    expect([new Set(statuses), asked, provider.reads]).toEqual([new Set([200]), 1, 1]);
  });

  it.each<[string, LogoutAppOptions['issuers']]>([
    ['throws', () => Promise.reject(new Error('database'))],
    ['finds another issuer', () => ({ issuer: 'https://x.example', audience: 'shop' })],
    ['finds options that are wrong', (issuer) => ({ issuer, audience: [] })],
    ['hangs', () => new Promise(() => undefined)],
  ])('costs a 503 when it %s', async (_, issuers) => {
    const app = await start({ issuers });
    expect(await statusOf(app)).toBe(503);
    await eventually(() => expect(app.log.lines.join('\n')).toContain('The function `issuers` failed'));
  });
});
