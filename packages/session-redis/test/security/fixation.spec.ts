import { createHash, randomBytes } from 'node:crypto';
import { PRINCIPAL_NAME_INDEX_NAME } from '@nest-session/core';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { HttpAgent, RedisServer } from '@nest-session/testing';
import { Redis } from 'ioredis';
import { SessionKeys } from '../../src/keys/session-keys.js';
import { LateModule, LateRequests } from '../support/late.routes.js';
import { App } from '../support/app.fixture.js';
import { hashOfValue } from '../support/hash-of-value.js';

LeakGuard.install();

const ROUNDS = 50;

interface SessionView {
  readonly id: string;
  readonly isNew: boolean;
  readonly attributes: Record<string, unknown>;
}

describe.each(['express', 'fastify'] as const)('an attacker who has planted a token, on %s,', (adapter) => {
  const keys = new SessionKeys(adapter);
  let server: RedisServer;
  let client: Redis;
  let here: App;
  let there: App;
  beforeAll(async () => {
    server = await RedisServer.start();
    client = new Redis(server.url);
    const redis = { url: server.url, namespace: adapter, commandTimeout: '1m' };
    here = await App.start({ adapter, imports: [LateModule], redis, handlers: false });
    there = await App.start({ adapter, imports: [LateModule], redis, handlers: false });
  });
  afterAll(async () => {
    await Promise.all([here.stop(), there.stop()]);
    client.disconnect();
    await server.stop();
  });

  /** A client that keeps one cookie and ignores Set-Cookie. */
  function clientWith(token: string, app: App) {
    const agent = new HttpAgent(app.url);
    const options = { headers: { cookie: `SESSION=${token}` } };
    return {
      read: () => agent.get('/read', options),
      post: (path: string) => agent.post(path, { value: 'planted' }, options),
    };
  }

  /** A session of the attacker, whose token the victim also uses. */
  async function plant(): Promise<string> {
    const attacker = there.agent();
    await attacker.post('/set/planted', { value: true });
    return attacker.cookie('SESSION')!;
  }

  it('opens no session with it on any instance after the login', async () => {
    const token = await plant();
    const victim = here.agent();
    victim.setCookie(`SESSION=${token}`);
    await victim.post('/login/ann');
    expect(victim.cookie('SESSION')).not.toBe(token);
    for (const app of [there, here]) {
      const seen = await clientWith(token, app).read();
      expect(seen.json()).toMatchObject({ isNew: true, attributes: {} });
      expect(seen.setCookies).toEqual([]);
    }
    expect((await victim.get('/read')).json()).toMatchObject({ attributes: { user: 'ann', planted: true } });
  });

  it(`sees no session of the user by polling while the victim logs in, ${ROUNDS} rounds`, async () => {
    for (let round = 0; round < ROUNDS; round++) {
      const token = await plant();
      const attacker = clientWith(token, there);
      const victim = here.agent();
      victim.setCookie(`SESSION=${token}`);
      let isOver = false;
      const login = victim.post(`/login/${round}`).finally(() => (isOver = true));
      const seen: SessionView[] = [];
      const given: string[] = [];
      do {
        // The attacker reads and writes.
        const responses = await Promise.all([attacker.read(), attacker.read(), attacker.post('/set/mine')]);
        seen.push(...responses.slice(0, 2).map((response) => response.json<SessionView>()));
        given.push(...responses.flatMap(({ setCookies }) => setCookies));
      } while (!isOver);
      expect((await login).status).toBe(201);
      expect(seen.filter(({ attributes }) => 'user' in attributes)).toEqual([]);
      expect(given).toEqual([]);
      // The last request is the victim's.
      const mine = (await victim.get('/read')).json<SessionView>();
      expect(mine).toMatchObject({ isNew: false, attributes: { user: `${round}`, planted: true } });
      expect(createHash('sha256').update(victim.cookie('SESSION')!).digest('base64url')).toBe(mine.id);
    }
  });

  it('does not get the session of the victim with an own login that was in flight during it', async () => {
    const token = await plant();
    const round = `held-${adapter}`;
    const attacker = clientWith(token, there);
    const late = there.nest.get(LateRequests, { strict: false });
    const held = ['rotation', 'principal', 'login', 'attribute'].map((kind) => attacker.post(`/late/${kind}/${round}`));
    await late.door(round).awaits(held.length);
    const victim = here.agent();
    victim.setCookie(`SESSION=${token}`);
    await victim.post('/login/ann');
    const cookie = victim.cookie('SESSION');
    late.door(round).open();
    for (const response of await Promise.all(held)) expect([response.status, response.setCookies]).toEqual([201, []]);
    const { isNew, attributes } = (await victim.get('/read')).json<SessionView>();
    expect([isNew, attributes['user'], attributes['attribute']]).toEqual([false, 'ann', undefined]);
    expect(victim.cookie('SESSION')).toBe(cookie);
    expect(await client.zrange(keys.index(PRINCIPAL_NAME_INDEX_NAME, hashOfValue('mallory')), '0', '-1')).toEqual([]);
  });

  it('cannot make a login fail silently with a token that was just replaced (L13)', async () => {
    const attacker = there.agent();
    await attacker.post('/set/planted', { value: true });
    const token = attacker.cookie('SESSION')!;
    await attacker.post('/login/mallory');
    const victim = clientWith(token, here);
    const login = await victim.post('/login/ann');
    expect([login.status, login.setCookies]).toEqual([409, []]);
    expect(login.json()).toMatchObject({ statusCode: 409, error: 'Conflict' });
    expect((await victim.read()).json()).toMatchObject({ isNew: true, attributes: {} });
  });

  it('cannot choose a token: no request adopts one that was never issued, and the login issues another', async () => {
    const chosen = randomBytes(32).toString('base64url');
    const id = createHash('sha256').update(chosen).digest('base64url');
    const victim = here.agent();
    victim.setCookie(`SESSION=${chosen}`);
    const first = await victim.post('/set/a', { value: 1 });
    expect(first.json<SessionView>().id).not.toBe(id);
    expect(victim.cookie('SESSION')).not.toBe(chosen);
    await victim.post('/login/ann');
    expect((await clientWith(chosen, there).read()).json()).toMatchObject({ isNew: true });
    expect(await client.exists(keys.session(id), keys.shadow(id))).toBe(0);
  });

  it('opens no session with a session id from the store', async () => {
    const victim = here.agent();
    const { id } = (await victim.post('/set/a', { value: 1 })).json<SessionView>();
    expect(id).toHaveLength(43);
    expect((await clientWith(id, there).read()).json()).toMatchObject({ isNew: true, attributes: {} });
  });
});

describe('a login that is sent again with the old token', () => {
  let server: RedisServer;
  let app: App;
  beforeAll(async () => {
    server = await RedisServer.start();
    app = await App.start({ redis: { url: server.url }, handlers: false });
  });
  afterAll(async () => {
    await app.stop();
    await server.stop();
  });

  it('at the same moment, as by a double click, leaves the client one session with its data', async () => {
    const agent = app.agent();
    await agent.post('/set/cart', { value: ['apple'] });
    const logins = await Promise.all(Array.from({ length: 8 }, () => agent.post('/login/ann')));
    // 409: it came after the first one, with the token from before.
    for (const { status, setCookies } of logins) expect(setCookies.length > 0 ? [201] : [201, 409]).toContain(status);
    expect(logins.flatMap(({ setCookies }) => setCookies)).toHaveLength(1);
    expect((await agent.get('/read')).json()).toMatchObject({ attributes: { cart: ['apple'], user: 'ann' } });
  });

  it('after its response was lost, gets no session while it could be a late request', async () => {
    const agent = app.agent();
    await agent.post('/set/cart', { value: ['apple'] });
    const old = { headers: { cookie: `SESSION=${agent.cookie('SESSION')}` } };
    await app.agent().post('/login/ann', {}, old);
    const again = await app.agent().post('/login/ann', {}, old);
    expect([again.status, again.setCookies]).toEqual([409, []]);
    expect((await app.agent().post('/login/ann', {})).setCookies).toHaveLength(1);
  });
});
