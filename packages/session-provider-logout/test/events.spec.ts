import { randomUUID } from 'node:crypto';
import { jest } from '@jest/globals';
import { LeakGuard, LogRecorder } from '@nest-session/test-infrastructure';
import { eventually } from '@nest-session/testing';
import type { ProviderIssuer } from '../src/index.js';
import { CAEP, type Claims, IdentityProvider, nowInSeconds, RISC, sign, SSF } from './support/identity.provider.js';
import { closeApps, LogoutApp, nameOf, PLATFORMS } from './support/logout.app.js';

LeakGuard.install();

const NOW = nowInSeconds();

let provider: IdentityProvider;
let other: IdentityProvider;
beforeAll(async () => {
  [provider, other] = await Promise.all([IdentityProvider.start(), IdentityProvider.start()]);
});
afterAll(() => Promise.all([provider.stop(), other.stop()]));
afterEach(async () => {
  jest.restoreAllMocks();
  await closeApps();
});

const start = (options: Partial<ProviderIssuer> = {}, platform: 'express' | 'fastify' = 'express') =>
  LogoutApp.start({
    platform,
    issuers: [
      { issuer: provider.issuer, audience: 'shop', accepts: ['events', 'back-channel'], ...options },
      { issuer: other.issuer, audience: 'shop', accepts: ['back-channel'] },
    ],
  });

const login = (sub = 'ann', sid = 's-1', iat = NOW - 10) => ({ iss: provider.issuer, sub, sid, iat });

describe.each(PLATFORMS)('on %s, a pushed event', (platform) => {
  it('ends the sessions that it means, and is answered by 202 without a body', async () => {
    const app = await start({}, platform);
    const agents = [await app.signedIn(login()), await app.signedIn(login('bob', 's-2'))];
    const content = { reason_admin: { en: 'left the company' }, event_timestamp: NOW };
    const answer = await app.pushEvent(await provider.eventToken(`${CAEP}session-revoked`, content));
    expect([answer.status, answer.text, answer.headers['cache-control']]).toEqual([202, '', 'no-store']);
    expect(await Promise.all(agents.map(nameOf))).toEqual([null, 'bob']);
    await eventually(() => expect(app.told.provider).toHaveLength(1));
    expect(app.told.provider).toMatchObject([
      {
        name: 'session-revoked',
        issuer: provider.issuer,
        at: NOW * 1000,
        subject: { format: 'iss_sub', sub: 'ann' },
        content,
        action: 'end',
        sessions: [{ principalName: 'ann' }],
      },
    ]);
  });

  it.each<[string, number, string, (app: LogoutApp) => Promise<unknown>]>([
    ['for another audience', 400, 'invalid_audience', async () => event({ aud: 'bank' })],
    ['of an unknown issuer', 400, 'invalid_issuer', async () => event({ iss: 'https://x.example' })],
    ['of an issuer that sends none here', 400, 'access_denied', () => other.eventToken(`${CAEP}session-revoked`)],
    [
      'signed by another',
      400,
      'invalid_key',
      () => sign(provider.logoutClaims(), { kid: provider.key.kid }, { ...other.key, kid: provider.key.kid }),
    ],
    ['that is a logout token', 400, 'invalid_request', () => provider.logoutToken({ sub: 'ann' })],
    ['with the type of a logout token', 400, 'invalid_request', () => event({}, { typ: 'logout+jwt' })],
    ['without events', 400, 'invalid_request', () => event({ events: {} })],
    ['of the future', 400, 'invalid_request', () => event({ iat: NOW + 3600 })],
    ['that is encrypted', 400, 'invalid_key', async () => 'a.b.c.d.e'],
    ['that is no JWT', 400, 'invalid_request', async () => 'x'],
  ])('%s is a %i %s', async (_, status, err, token) => {
    const app = await start({}, platform);
    const agent = await app.signedIn(login());
    const answer = await app.pushEvent((await token(app)) as string);
    expect([answer.status, answer.json<{ err: string }>().err]).toEqual([status, err]);
    expect(answer.headers).toMatchObject({ 'cache-control': 'no-store', 'content-type': 'application/json' });
    expect([await nameOf(agent), app.told.security[0]?.kind]).toEqual(['ann', 'refused-provider-token']);
  });

  it('needs the Authorization of the stream', async () => {
    const app = await start({ authorization: 'Bearer s3cret' }, platform);
    const agent = await app.signedIn(login());
    const token = await provider.eventToken(`${CAEP}session-revoked`);
    for (const headers of [{}, { Authorization: 'Bearer s3cre' }, { Authorization: '' }]) {
      const answer = await app.pushEvent(token, headers);
      expect([answer.status, answer.json<{ err: string }>().err]).toEqual([401, 'authentication_failed']);
    }
    expect(await nameOf(agent)).toBe('ann');
    // Without the signature, it is worth nothing.
    const forged = `${token.slice(0, -20)}${'A'.repeat(20)}`;
    expect((await app.pushEvent(forged, { Authorization: 'Bearer s3cret' })).status).toBe(400);
    expect((await app.pushEvent(token, { Authorization: 'Bearer s3cret' })).status).toBe(202);
    expect(await nameOf(agent)).toBeNull();
  });
});

function event(claims: Claims = {}, header: object = {}): Promise<string> {
  return provider.eventToken(`${CAEP}session-revoked`, {}, claims, header);
}

describe('a pushed event', () => {
  it.each<[string, Claims, boolean]>([
    ['iss_sub', { format: 'iss_sub', sub: 'ann' }, true],
    ['another user', { format: 'iss_sub', sub: 'bob' }, false],
    ['the older form', { subject_type: 'iss-sub', sub: 'ann' }, true],
    [
      'a complex subject',
      { format: 'complex', user: { format: 'iss_sub', sub: 'ann' }, device: { format: 'opaque', id: 'd' } },
      true,
    ],
    ['a complex subject without a format', { user: { format: 'iss_sub', sub: 'ann' } }, true],
    ['a session', { format: 'complex', session: { format: 'opaque', id: 's-1' } }, true],
    ['another session', { format: 'complex', session: { format: 'opaque', id: 's-9' } }, false],
    [
      'a user and their session',
      { user: { format: 'iss_sub', sub: 'ann' }, session: { format: 'opaque', id: 's-1' } },
      true,
    ],
    [
      'a user and a session that is not known, such as one that has ended',
      { user: { format: 'iss_sub', sub: 'ann' }, session: { format: 'opaque', id: 's-9' } },
      false,
    ],
    [
      'a user and a session of another kind',
      { user: { format: 'iss_sub', sub: 'ann' }, session: { format: 'jwt_id', jti: 'x' } },
      true,
    ],
    ['an id of a session', { format: 'opaque', id: 's-1' }, true],
    ['an id of a user', { format: 'opaque', id: 'ann' }, true],
    ['a user of another issuer', { format: 'iss_sub', iss: 'https://x.example', sub: 'ann' }, false],
    ['an address', { format: 'email', email: 'ann@example.com' }, false],
    ['a tenant', { format: 'complex', tenant: { format: 'opaque', id: 't' } }, false],
    [
      'a user that nobody knows, and a session',
      { user: { format: 'email', email: 'a@b.c' }, session: { format: 'opaque', id: 's-1' } },
      false,
    ],
    ['nothing', {}, false],
  ])('about %s', async (_, subject, ends) => {
    const withIssuer = (value: Claims): Claims =>
      'sub' in value
        ? { iss: provider.issuer, ...value }
        : Object.fromEntries(
            Object.entries(value).map(([key, each]) => [
              key,
              typeof each === 'object' ? withIssuer(each as Claims) : each,
            ]),
          );
    const app = await start();
    const agent = await app.signedIn(login());
    expect((await app.pushEvent(await event({ sub_id: withIssuer(subject) }))).status).toBe(202);
    expect(await nameOf(agent)).toBe(ends ? null : 'ann');
  });

  it('about users of other issuers counts where the options say so', async () => {
    const app = await start({ subjects: ['https://directory.example.com'] });
    const agent = await app.signedIn({ ...login(), iss: 'https://directory.example.com' });
    const sub_id = { format: 'iss_sub', iss: 'https://directory.example.com', sub: 'ann' };
    await app.pushEvent(await event({ sub_id }));
    expect(await nameOf(agent)).toBeNull();
  });

  it('about an address ends what the application finds by it', async () => {
    const asked: unknown[] = [];
    const app = await start({
      principalsOf: (subject) => {
        asked.push(subject);
        return ['user-17'];
      },
    });
    const agent = await app.signedIn(login(), 'user-17');
    const sub_id = { format: 'email', email: 'ann@example.com' };
    await app.pushEvent(await event({ sub_id }));
    expect([await nameOf(agent), asked]).toEqual([null, [sub_id]]);
  });

  it('about an address spares who signed in later, and ends a login under way', async () => {
    const app = await start({ principalsOf: () => ['user-17'] });
    const sub_id = { format: 'email', email: 'ann@example.com' };
    const at = (seconds: number) => event({ sub_id, iat: NOW - seconds });
    const agents = [await app.signedIn(login('ann', 's-1', NOW - 900), 'user-17')];
    agents.push(await app.signedIn(login('ann', 's-2', NOW - 10), 'user-17'));
    expect((await app.pushEvent(await at(300))).status).toBe(202);
    expect(await Promise.all(agents.map(nameOf))).toEqual([null, 'user-17']);
    const late = await app.agent().post('/sign-in', { ...login('ann', 's-3', NOW - 400), name: 'user-17' });
    expect([late.status, late.json<{ reason: string }>().reason]).toEqual([401, 'provider-session-ended']);
    expect((await app.agent().post('/sign-in', { ...login('ann', 's-4'), name: 'user-17' })).status).toBe(201);
  });

  it('is known for as long as it would be accepted', async () => {
    const app = await start();
    const token = await event({ iat: NOW });
    const { now } = Date;
    for (const days of [0, 1, 6]) {
      jest.spyOn(Date, 'now').mockImplementation(() => now() + days * 24 * 3600_000);
      expect((await app.pushEvent(token)).status).toBe(202);
    }
    await eventually(() => expect(app.told.provider).toHaveLength(1));
  });

  it.each<[string, object, 'end' | 'reauthenticate' | 'none']>([
    [`${CAEP}session-revoked`, {}, 'end'],
    [`${RISC}sessions-revoked`, {}, 'end'],
    [`${RISC}account-disabled`, { reason: 'hijacking' }, 'end'],
    [`${RISC}account-purged`, {}, 'end'],
    [`${RISC}credential-compromise`, { credential_type: 'password' }, 'end'],
    [`${CAEP}credential-change`, { change_type: 'update' }, 'reauthenticate'],
    [`${RISC}account-credential-change-required`, {}, 'reauthenticate'],
    [`${CAEP}assurance-level-change`, { change_direction: 'decrease' }, 'reauthenticate'],
    [`${CAEP}assurance-level-change`, { change_direction: 'increase' }, 'none'],
    [`${CAEP}token-claims-change`, { claims: { role: 'x' } }, 'none'],
    [`${CAEP}device-compliance-change`, {}, 'none'],
    [`${RISC}identifier-recycled`, {}, 'none'],
    [`${RISC}account-enabled`, {}, 'none'],
    [`${SSF}verification`, { state: 'x' }, 'none'],
    ['https://example.com/something', {}, 'none'],
  ])('%s %j means: %s', async (uri, content, action) => {
    const app = await start();
    const agent = await app.signedIn(login());
    expect((await app.pushEvent(await provider.eventToken(uri, content))).status).toBe(202);
    const isRecent = (await agent.get('/money')).status === 200;
    expect([await nameOf(agent), isRecent]).toEqual([action === 'end' ? null : 'ann', action === 'none']);
    await eventually(() => expect(app.told.provider).toMatchObject([{ action, content }]));
  });

  it('does what the options say instead', async () => {
    const app = await start({ actions: { 'credential-change': 'end', 'session-revoked': 'none' } });
    const agent = await app.signedIn(login());
    await app.pushEvent(await event());
    expect(await nameOf(agent)).toBe('ann');
    await app.pushEvent(await provider.eventToken(`${CAEP}credential-change`));
    expect(await nameOf(agent)).toBeNull();
  });

  it.each([
    ['in seconds', NOW - 100, 'bob'],
    ['in milliseconds', (NOW - 100) * 1000, 'bob'],
    ['of the future', NOW + 100_000, null],
    ['missing', undefined, null],
  ])('whose `event_timestamp` is %s ends what was signed in until then', async (_, event_timestamp, later) => {
    const app = await start();
    const agents = [
      await app.signedIn(login('ann', 's-1', NOW - 200)),
      await app.signedIn(login('ann', 's-2', NOW - 10), 'bob'),
    ];
    await app.pushEvent(await provider.eventToken(`${CAEP}session-revoked`, { event_timestamp }, { iat: NOW + 1 }));
    expect(await Promise.all(agents.map(nameOf))).toEqual([null, later]);
  });

  it('counts once, and not when it is a week old', async () => {
    const app = await start();
    const agent = await app.signedIn(login());
    expect((await app.pushEvent(await event({ iat: NOW - 8 * 24 * 3600 }))).status).toBe(202);
    expect(await nameOf(agent)).toBe('ann');
    const token = await event({ exp: NOW - 3600, iat: NOW });
    expect((await app.pushEvent(token)).status).toBe(202);
    expect(await nameOf(agent)).toBeNull();
    const again = await app.signedIn(login('ann', 's-2', NOW + 5));
    expect((await app.pushEvent(await event({ jti: 'j-1', iat: NOW + 1 }))).status).toBe(202);
    expect((await app.pushEvent(await event({ jti: 'j-1', iat: NOW + 50 }))).status).toBe(202);
    expect(await nameOf(again)).toBe('ann');
  });

  it('may be several in one token', async () => {
    const app = await start();
    const agent = await app.signedIn(login());
    const events = { [`${CAEP}token-claims-change`]: {}, [`${RISC}account-disabled`]: {}, 'https://x.example': 7 };
    await app.pushEvent(await event({ events }));
    expect(await nameOf(agent)).toBeNull();
    await eventually(() =>
      expect(app.told.provider.map(({ name }) => name)).toEqual([
        'token-claims-change',
        'account-disabled',
        'https://x.example',
      ]),
    );
  });

  it('that the stream has stopped is an error in the log', async () => {
    const app = await start();
    await app.pushEvent(await provider.eventToken(`${SSF}stream-updated`, { status: 'paused', reason: 'x\ny' }));
    expect(app.log.lines.join('\n')).toContain('its stream is paused or disabled');
    const running = await start();
    await running.pushEvent(await provider.eventToken(`${SSF}stream-updated`, { status: 'enabled' }));
    expect(running.log.lines).toEqual([]);
  });
});

describe('what providers send', () => {
  /** As their documents and reports of their users show it. */
  const ends = async (
    token: string,
    options: Partial<ProviderIssuer> = {},
    path: 'logOut' | 'pushEvent' = 'logOut',
  ) => {
    const app = await start(options);
    const agent = await app.signedIn(login('auth0|5f7', 's-1'));
    const answer = await app[path](token);
    expect(answer.status).toBe(path === 'logOut' ? 200 : 202);
    expect(await nameOf(agent)).toBeNull();
  };
  const claims = (): Claims => provider.logoutClaims({ sub: 'auth0|5f7', sid: 's-1' });

  it('Auth0: `sid` and `sub`, for two minutes', async () => {
    await ends(await sign(claims(), { typ: 'logout+jwt' }, provider.key));
  });

  it('Keycloak: a list of audiences, `typ` in the payload, and offline tokens in the event', async () => {
    const events = { 'http://schemas.openid.net/event/backchannel-logout': { revoke_offline_access: true } };
    await ends(await sign({ ...claims(), aud: ['shop'], typ: 'Logout', events }, { typ: 'JWT' }, provider.key));
  });

  it('authentik: `sub` alone, and no `exp`', async () => {
    const { exp: _, sid: __, ...rest } = claims();
    await ends(await sign(rest, { typ: 'logout+jwt' }, provider.key), { expiry: 'optional' });
  });

  it('Microsoft Entra: a header with `x5t` beside `kid`', async () => {
    await ends(
      await sign({ ...claims(), sub: undefined, ver: '2.0' }, { typ: 'JWT', x5t: provider.key.kid }, provider.key),
    );
  });

  it('Okta: an event about a complex subject, and the administrator who caused it', async () => {
    const sub_id = { user: { format: 'iss_sub', iss: provider.issuer, sub: 'auth0|5f7' } };
    const content = { event_timestamp: NOW, initiating_entity: 'admin', reason_admin: { en: 'x' } };
    await ends(await provider.eventToken(`${CAEP}session-revoked`, content, { sub_id }), {}, 'pushEvent');
  });

  it('Google: the subject inside of the event, in its older form, and several audiences', async () => {
    const subject = { subject_type: 'iss-sub', iss: provider.issuer, sub: 'auth0|5f7' };
    const events = { [`${RISC}sessions-revoked`]: { subject } };
    const token = { iss: provider.issuer, aud: ['other', 'shop'], iat: NOW, jti: randomUUID(), events };
    await ends(await sign(token, {}, provider.key), {}, 'pushEvent');
  });
});

it('no token, `sid`, `sub`, address or key is in the log or in security events', async () => {
  const app = await start({ authorization: 'Bearer secret-authorization' });
  const texts: string[] = [];
  const send = async (token: string) => {
    texts.push(...token.split('.').filter((part) => part.length > 20));
    await app.logOut(token);
    await app.pushEvent(token, { Authorization: 'Bearer secret-other' });
    await app.pushEvent(token, { Authorization: 'Bearer secret-authorization' });
  };
  await app.signedIn(login('secret-sub', 'secret-sid'), 'user-17');
  await send(await provider.logoutToken({ sub: 'secret-sub', sid: 'secret-sid', jti: 'secret-jti' }));
  await send(await provider.logoutToken({ sub: 'secret-sub', nonce: 'secret-nonce' }));
  await send(await provider.logoutToken({ sub: 'secret-sub', aud: 'secret-audience' }));
  await send(await provider.logoutToken({ iss: 'https://secret.example', sub: 'x' }));
  await send(await event({ sub_id: { format: 'email', email: 'secret@example.com' } }));
  await send('secret.secret.secret');
  await eventually(() => expect(app.told.security.length).toBeGreaterThan(4));
  const shown = JSON.stringify([app.log.lines, app.told.security]);
  expect(app.log).toBeInstanceOf(LogRecorder);
  for (const text of ['secret', ...texts]) expect(shown).not.toContain(text);
});
