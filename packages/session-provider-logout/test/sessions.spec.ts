import { randomBytes } from 'node:crypto';
import { jest } from '@jest/globals';
import {
  IndexedSessionRepository,
  MapSessionRepository,
  Sessions,
  SessionRepository,
  SessionStateError,
} from '@nest-session/core';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually, RedisCluster, RedisServer } from '@nest-session/testing';
import { Redis } from 'ioredis';
import { BACK_CHANNEL, CAEP, IdentityProvider, nowInSeconds, RISC } from './support/identity.provider.js';
import { closeApps, LogoutApp, type LogoutAppOptions, nameOf } from './support/logout.app.js';

LeakGuard.install();

const NOW = nowInSeconds();

let provider: IdentityProvider;
let other: IdentityProvider;
let server: RedisServer;
let cluster: RedisCluster;
let client: Redis;
beforeAll(async () => {
  [provider, other, server, cluster] = await Promise.all([
    IdentityProvider.start(),
    IdentityProvider.start(),
    RedisServer.start(),
    RedisCluster.start(),
  ]);
  client = new Redis(server.url);
});
afterAll(async () => {
  await client.quit();
  await Promise.all([provider.stop(), other.stop(), server.stop(), cluster.stop()]);
});
beforeEach(() => client.flushall());
afterEach(async () => {
  jest.restoreAllMocks();
  await closeApps();
});

const login = (sub: string, sid?: string, iat = NOW - 10, { issuer } = provider) => ({ iss: issuer, sub, sid, iat });

const STORES: Record<string, () => LogoutAppOptions['redis']> = {
  memory: () => undefined,
  Redis: () => ({ url: server.url }),
  'several partitions of Redis': () => ({ url: server.url, partitions: 8 }),
  // Nobody empties it between two tests.
  'a Redis Cluster': () => ({
    cluster: { nodes: cluster.addresses },
    namespace: `test${clusterTests++}`,
    partitions: 8,
  }),
};
let clusterTests = 0;

describe.each(Object.keys(STORES))('with sessions in %s', (store) => {
  let redis: LogoutAppOptions['redis'];
  beforeEach(() => {
    redis = STORES[store]!();
  });
  const start = (options: Partial<LogoutAppOptions> = {}) =>
    LogoutApp.start({
      issuers: [provider, other].map(({ issuer }) => ({
        issuer,
        audience: 'shop',
        accepts: ['back-channel', 'events'] as const,
      })),
      ...(redis && { redis }),
      ...options,
    });
  const namesOf = (agents: readonly Parameters<typeof nameOf>[0][]) => Promise.all(agents.map(nameOf));

  it('a `sid` ends one login on all instances, and each end is told once', async () => {
    const [one, two] = [await start(), store === 'memory' ? undefined : await start()];
    const agents = [await one.signedIn(login('ann', 's-1')), await one.signedIn(login('ann', 's-2'))];
    const answer = await (two ?? one).logOut(await provider.logoutToken({ sub: 'ann', sid: 's-1' }));
    expect([answer.status, answer.json()]).toEqual([200, { ended: 1 }]);
    expect(await namesOf(agents)).toEqual([null, 'ann']);
    const ends = () => [one, two].flatMap((app) => app?.told.ended ?? []);
    await eventually(() => expect(ends()).toHaveLength(1));
    expect(ends()[0]).toMatchObject({ reason: 'revoked', principalName: 'ann' });
    // No `sid` and no `sub` is in what handlers get of the session.
    expect(JSON.stringify([ends()[0]!.session, ends()[0]!.session.attributeNames])).not.toContain('s-1');
  });

  it('`sub` alone ends what was signed in until its `iat`, whatever the name of the principal', async () => {
    const app = await start();
    const agents = [
      await app.signedIn(login('ann', 's-1', NOW - 10), 'user-17'),
      await app.signedIn(login('ann', undefined, NOW - 20), 'user-17'),
      await app.signedIn(login('ann', 's-2', NOW + 1), 'user-17'),
      await app.signedIn(login('bob', 's-3')),
    ];
    const token = await provider.logoutToken({ sub: 'ann', iat: NOW });
    expect((await app.logOut(token)).json()).toEqual({ ended: 2 });
    expect(await namesOf(agents)).toEqual([null, null, 'user-17', 'bob']);
    expect((await app.logOut(token)).json()).toEqual({ ended: 0 });
    expect(await nameOf(agents[2]!)).toBe('user-17');
  });

  it('a `sid` that nobody signed in with ends the sessions of its `sub` without one', async () => {
    const app = await start();
    const agents = [await app.signedIn(login('ann', 's-1')), await app.signedIn(login('ann'))];
    expect((await app.logOut(await provider.logoutToken({ sub: 'ann', sid: 's-9', iat: NOW }))).json()).toEqual({
      ended: 1,
    });
    expect(await namesOf(agents)).toEqual(['ann', null]);
  });

  it('two issuers with one `sid` and `sub` end nothing of each other', async () => {
    const app = await start();
    const agents = [await app.signedIn(login('ann', 's-1')), await app.signedIn(login('ann', 's-1', NOW, other))];
    expect((await app.logOut(await other.logoutToken({ sid: 's-1' }))).json()).toEqual({ ended: 1 });
    expect((await app.logOut(await other.logoutToken({ sub: 'ann' }))).json()).toEqual({ ended: 0 });
    expect(await namesOf(agents)).toEqual(['ann', null]);
  });

  it('a sign-in under way is refused once the provider has ended its login', async () => {
    const app = await start();
    await app.logOut(await provider.logoutToken({ sid: 's-1' }));
    await app.logOut(await provider.logoutToken({ sub: 'bob', iat: NOW }));
    await app.logOut(await provider.logoutToken({ sub: 'eve', sid: 's-3', iat: NOW }));
    const outcome = async (claims: object) => {
      const agent = app.agent();
      const response = await agent.post('/sign-in', { name: 'x', ...claims });
      return [
        response.status,
        response.json<{ reason?: string }>().reason,
        agent.cookie('SESSION') !== undefined,
        await nameOf(agent),
      ];
    };
    const refused = [401, 'provider-session-ended', false, null];
    expect(await outcome(login('ann', 's-1', NOW + 5))).toEqual(refused);
    expect(await outcome(login('bob', 's-2', NOW))).toEqual(refused);
    expect(await outcome(login('eve', 's-3', NOW - 10))).toEqual(refused);
    expect(await outcome(login('eve', undefined, NOW - 10))).toEqual(refused);
    // Another login of these users.
    expect(await outcome(login('ann', 's-8'))).toEqual([201, undefined, true, 'x']);
    expect(await outcome(login('bob', 's-9', NOW + 1))).toEqual([201, undefined, true, 'x']);
    expect(await outcome(login('eve', 's-10'))).toEqual([201, undefined, true, 'x']);
    const repository = app.nest.get<IndexedSessionRepository>(SessionRepository, { strict: false });
    expect(await repository.findByPrincipalName('x')).toHaveLength(3);
  });

  it('the session stays that of the login when its id changes, and when the user signs in again', async () => {
    const app = await start();
    const agents = [
      await app.signedIn(login('ann', 's-1')),
      await app.signedIn(login('bob', 's-2')),
      await app.signedIn(login('eve', 's-3')),
    ];
    await agents[0]!.post('/rotate');
    await agents[1]!.post('/sign-in-again', { name: 'bob' });
    await agents[2]!.post('/sign-in-again', { name: 'carol' });
    for (const sid of ['s-1', 's-2', 's-3']) await app.logOut(await provider.logoutToken({ sid }));
    expect(await namesOf(agents)).toEqual([null, null, 'carol']);
  });

  it('the session stays that of the login while its user acts as another one, and no longer', async () => {
    const app = await start();
    const sids = ['s-1', 's-2', 's-3'];
    const agents = await Promise.all(sids.map((sid) => app.signedIn(login('ann', sid))));
    for (const agent of agents) await agent.post('/become', { name: 'bob' });
    await agents[1]!.post('/become', { name: 'ann' });
    await agents[2]!.post('/become', {});
    await agents[2]!.post('/sign-in-again', { name: 'bob' });
    expect(await namesOf(agents)).toEqual(['bob', 'ann', 'bob']);
    expect((await app.logOut(await provider.logoutToken({ sid: 's-1' }))).json()).toEqual({ ended: 1 });
    const disabled = await provider.eventToken(`${RISC}account-disabled`);
    expect((await app.pushEvent(disabled)).status).toBe(202);
    expect(await namesOf(agents)).toEqual([null, null, 'bob']);
  });

  it.each([1, 16, 59, 61, 200])('a login that ends %i min after the logout of it is refused', async (minutes) => {
    const app = await start();
    await app.logOut(await provider.logoutToken({ sub: 'ann', sid: 's-1' }));
    await app.logOut(await provider.logoutToken({ sub: 'bob' }));
    const later = minutes * 60_000;
    const { now } = Date;
    if (store === 'memory') jest.spyOn(Date, 'now').mockImplementation(() => now() + later);
    else {
      for (const mark of await client.keys('*:marks:*')) {
        const left = (await client.pttl(mark)) - later;
        if (left > 0) await client.pexpire(mark, left);
        else await client.del(mark);
      }
      jest.spyOn(Date, 'now').mockImplementation(() => now() + later);
    }
    for (const claims of [login('ann', 's-1'), login('bob', 's-2')]) {
      const answer = await app.agent().post('/sign-in', { ...claims, name: 'x' });
      expect([answer.status, answer.json<{ reason: string }>().reason]).toEqual([401, 'provider-session-ended']);
    }
    const anew = login('bob', 's-3', NOW + later / 1000);
    expect((await app.agent().post('/sign-in', { ...anew, name: 'x' })).status).toBe(201);
  });

  it('an event lets the user sign in again before what needs a recent sign-in', async () => {
    const app = await start();
    const agent = await app.signedIn(login('ann', 's-1'));
    expect((await agent.get('/money')).text).toBe('money');
    expect((await app.pushEvent(await provider.eventToken(`${CAEP}credential-change`))).status).toBe(202);
    expect((await agent.get('/money')).json()).toMatchObject({ reason: 'not-recently-authenticated' });
    expect(await nameOf(agent)).toBe('ann');
    await agent.post('/sign-in-again', { name: 'ann' });
    expect((await agent.get('/money')).text).toBe('money');
  });

  it('a session that rotates all the time does not get away', async () => {
    const app = await start();
    const agent = await app.signedIn(login('ann', 's-1'));
    let isOver = false;
    const rotating = (async () => {
      while (!isOver) await agent.post('/rotate');
    })();
    expect((await app.logOut(await provider.logoutToken({ sid: 's-1' }))).status).toBe(200);
    isOver = true;
    await rotating;
    expect(await nameOf(agent)).toBeNull();
    const repository = app.nest.get<IndexedSessionRepository>(SessionRepository, { strict: false });
    expect(await repository.findByPrincipalName('ann')).toEqual([]);
  });
});

it('what Redis has of tokens and logins are hashes with an end', async () => {
  const app = await LogoutApp.start({
    issuers: [{ issuer: provider.issuer, audience: 'shop' }],
    redis: { url: server.url, namespace: 'shop' },
  });
  await app.signedIn(login('secret-ann', 'secret-sid'));
  const before = await client.keys('*');
  await app.logOut(await provider.logoutToken({ sub: 'secret-ann', sid: 'secret-other', jti: 'secret-jti' }));
  const keys = await client.keys('*');
  expect([...before, ...keys].join()).not.toContain('secret');
  const marks = keys.filter((key) => key.includes(':marks:'));
  expect(marks).toHaveLength(3);
  for (const key of marks) {
    expect(key).toMatch(/^shop:marks:[\w-]{43}$/);
    const left = await client.pttl(key);
    expect(left).toBeGreaterThan(0);
    expect(left).toBeLessThanOrEqual(75 * 60_000);
  }
});

it('a session that an instance cannot decrypt keeps none of the others, and costs a 503', async () => {
  const keys = ['a', 'b'].map((id) => ({ id, key: randomBytes(32).toString('base64') }));
  const [one, two] = await Promise.all(
    keys.map((key) =>
      LogoutApp.start({
        issuers: [{ issuer: provider.issuer, audience: 'shop' }],
        redis: { url: server.url, encryption: { keys: [key] } },
      }),
    ),
  );
  const agents = [await one!.signedIn(login('ann', 's-1')), await two!.signedIn(login('ann', 's-2'))];
  const token = await provider.logoutToken({ sub: 'ann' });
  expect((await two!.logOut(token)).status).toBe(503);
  expect(await Promise.all(agents.map(nameOf))).toEqual(['ann', null]);
  expect((await one!.logOut(token)).json()).toEqual({ ended: 1 });
});

it('thousands of sessions of one user end by one token', async () => {
  const app = await LogoutApp.start({
    issuers: [{ issuer: provider.issuer, audience: 'shop' }],
    redis: { url: server.url },
  });
  const repository = app.nest.get<SessionRepository>(SessionRepository, { strict: false });
  for (let i = 0; i < 30; i++) {
    await Promise.all(
      Array.from({ length: 100 }, async () => {
        const session = repository.createSession();
        session.signIn('ann', { provider: login('ann') });
        await session.save();
      }),
    );
  }
  expect(await app.nest.get(Sessions).count('ann')).toBe(3000);
  const answer = await app.logOut(await provider.logoutToken({ sub: 'ann' }));
  expect(answer.json()).toEqual({ ended: 3000 });
  expect(await app.nest.get(Sessions).count('ann')).toBe(0);
});

it('`provider` of signIn() is refused without the module, and with claims that no logout could name', async () => {
  const app = await LogoutApp.start({ issuers: [{ issuer: provider.issuer, audience: 'shop' }] });
  const repository = app.nest.get<SessionRepository>(SessionRepository, { strict: false });
  const signIn = (claims: object) => () =>
    repository.createSession().signIn('ann', { provider: { ...login('ann'), ...claims } });
  for (const wrong of [{ iss: '' }, { sub: undefined }, { sid: 7 }, { sub: 'x'.repeat(600) }, { iat: Number.NaN }])
    expect(signIn(wrong)).toThrow(TypeError);
  const alone = new MapSessionRepository().createSession();
  expect(() => alone.signIn('ann', { provider: login('ann') })).toThrow(SessionStateError);
  expect(signIn({ sid: null, aud: ['shop'], [BACK_CHANNEL]: {} })).not.toThrow();
});
