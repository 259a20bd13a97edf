import { createHash } from 'node:crypto';
import { jest } from '@jest/globals';
import type { CanActivate, INestApplication } from '@nestjs/common';
import type { NestExpressApplication } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import type { Session } from '@nest-session/core';
import { DeadlineModule, MapDeadlineModule } from '@nest-session/deadlines';
import { RedisSessionModule } from '@nest-session/redis';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually, HttpAgent, RedisServer } from '@nest-session/testing';
import { Redis } from 'ioredis';
import { AdminApp, type AdminAppOptions, closeApps, PATH, PLATFORMS } from '../support/admin.app.js';

LeakGuard.install();

let redis: RedisServer;
beforeAll(async () => (redis = await RedisServer.start()));
afterAll(() => redis?.stop());
afterEach(closeApps);

let namespaces = 0;
const inRedis = (): AdminAppOptions => ({
  store: [RedisSessionModule.forRoot({ url: redis.url, namespace: `admin-${namespaces++}` })],
});

interface Listed {
  sessions: Record<string, unknown>[];
  total: number;
  next: number | null;
}

const INSTANT = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);

describe.each(PLATFORMS)('the sessions on %s', (platform) => {
  describe.each(['memory', 'Redis'] as const)('in %s', (store) => {
    const start = (options: AdminAppOptions = {}) =>
      AdminApp.start({ platform, ...(store === 'Redis' && inRedis()), ...options });

    it('lists the sessions of a user in the shape of the actuator, the latest sign-in first', async () => {
      const app = await start({ session: { timeout: '10m', absoluteTimeout: '1h' } });
      const admin = await app.admin();
      const first = await app.signIn('bob');
      await first.agent.post('/cart/apple');
      const second = await app.signIn('bob');
      const response = await admin.get(`${PATH}/sessions?username=bob`);
      expect(response.status).toBe(200);
      const { sessions, total, next } = response.json<Listed>();
      expect({ total, next }).toEqual({ total: 2, next: null });
      expect(sessions.map(({ id }) => id)).toEqual([second.id, first.id]);
      expect(sessions[1]).toEqual({
        id: first.id,
        attributeNames: ['cart'],
        creationTime: INSTANT,
        lastAccessedTime: INSTANT,
        maxInactiveInterval: 600,
        expired: false,
        principalName: 'bob',
        authenticatedTime: INSTANT,
        expirationTime: INSTANT,
        absoluteExpirationTime: INSTANT,
        device: { address: expect.any(String), userAgent: expect.stringContaining('Chrome/140') },
        bound: null,
        size: 'cart["apple"]'.length,
        isOwn: false,
        label: null,
      });
      const [from, to] = [sessions[1]!['lastAccessedTime'], sessions[1]!['expirationTime']].map((each) =>
        Date.parse(each as string),
      );
      expect(to! - from!).toBeGreaterThan(590_000);
      expect(to! - from!).toBeLessThan(610_000);
    });

    it('shows the absolute end of a session from its sign-in on', async () => {
      const app = await start({ session: { absoluteTimeout: '1h' } });
      const visitor = app.agent();
      await visitor.post('/cart/apple');
      const begun = Date.now();
      await eventually(() => Date.now() > begun + 50);
      await visitor.post('/sign-in/bob');
      const { sessions } = (await (await app.admin()).get(`${PATH}/sessions?username=bob`)).json<Listed>();
      const [created, signedIn, end] = ['creationTime', 'authenticatedTime', 'absoluteExpirationTime'].map((each) =>
        Date.parse(sessions[0]![each] as string),
      );
      expect(signedIn! - created!).toBeGreaterThan(30);
      expect(end).toBe(signedIn! + 3_600_000);
    });

    it('shows one session with the sizes of its attributes, and no value', async () => {
      const app = await start();
      const admin = await app.admin();
      const bob = await app.signIn('bob');
      // Three bytes a character.
      await bob.agent.post(`/cart/${encodeURIComponent('中中-secret-of-bob')}`);
      const response = await admin.get(`${PATH}/sessions/${bob.id}`);
      const size = Buffer.byteLength('cart["中中-secret-of-bob"]');
      expect(response.status).toBe(200);
      expect(response.json()).toMatchObject({
        id: bob.id,
        attributeNames: ['cart'],
        expired: false,
        isOwn: false,
        size,
        attributes: [{ name: 'cart', size }],
      });
      expect(response.text).not.toContain('secret-of-bob');
    });

    it('shows since when a session is bound to its browser, and by which algorithm', async () => {
      const configure = (nest: INestApplication) =>
        void (platform === 'Express' && (nest as NestExpressApplication).set('trust proxy', true));
      const adapter = platform === 'Fastify' ? new FastifyAdapter({ trustProxy: true }) : undefined;
      const app = await start({ session: { deviceBound: true }, configure, adapter });
      const browser = await HttpAgent.for(app.nest, { bindsSessions: true });
      await browser.post('/sign-in/bob');
      await browser.get('/cart');
      await app.signIn('bob');
      const response = await (await app.admin()).get(`${PATH}/sessions?username=bob`);
      expect(response.json<Listed>().sessions.map(({ bound }) => bound)).toEqual([
        null,
        { since: INSTANT, by: 'ES256' },
      ]);
      expect(response.text).not.toMatch(/secret|publicKey|visitor/);
    });

    it('finds users by what is known of them, and says who they are', async () => {
      const people = new Map([
        ['1', 'bob@example.com'],
        ['2', 'bobby@example.com'],
      ]);
      const users = {
        find: async (typed: string) => [...people].flatMap(([id, mail]) => (mail.startsWith(typed) ? [id, id] : [])),
        label: (id: string) => people.get(id),
      };
      const app = await start({ admin: { users } });
      const admin = await app.admin();
      await app.signIn('1');
      const found = async (text: string) => (await admin.get(`${PATH}/users?text=${text}`)).json();
      expect(await found('bob')).toEqual({
        users: [
          { username: '1', label: 'bob@example.com' },
          { username: '2', label: 'bobby@example.com' },
        ],
      });
      expect(await found('eve')).toEqual({ users: [] });
      const { sessions } = (await admin.get(`${PATH}/sessions?username=1`)).json<Listed>();
      expect(sessions.map(({ principalName, label }) => [principalName, label])).toEqual([['1', 'bob@example.com']]);
      const own = (await admin.get(`${PATH}/sessions?username=ada`)).json<Listed>();
      expect(own.sessions[0]).toMatchObject({ principalName: 'ada', label: null });
    });

    it('takes what is typed for a user name without the option users', async () => {
      const admin = await (await start()).admin();
      const found = await admin.get(`${PATH}/users?text=bob`);
      expect(found.json()).toEqual({ users: [{ username: 'bob', label: null }] });
    });

    it('answers 500 where the option users finds something else than principals', async () => {
      const app = await start({ admin: { users: { find: () => [7] as never } } });
      expect((await (await app.admin()).get(`${PATH}/users?text=bob`)).status).toBe(500);
    });

    it('finds sessions by each index of the application, whoever has them', async () => {
      const indexes = { item: (session: Pick<Session, 'getAttribute'>) => session.getAttribute<string[]>('cart')?.[0] };
      const app = await start({ session: { indexes, deviceBound: true } });
      const admin = await app.admin();
      const ids: string[] = [];
      for (const name of ['bob', 'eve', 'bob']) {
        const { agent, id } = await app.signIn(name);
        await agent.post('/cart/apple');
        ids.unshift(id);
      }
      await (await app.signIn('bob')).agent.post('/cart/pear');
      const overview = (await admin.get(`${PATH}/overview`)).json<{ sessions: object }>();
      expect(overview.sessions).toMatchObject({ indexes: ['item'], areNamed: false });
      const found = (await admin.get(`${PATH}/sessions?index=item&value=apple&limit=2`)).json<Listed>();
      expect({ ...found, sessions: found.sessions.map(({ id }) => id) }).toEqual({
        sessions: ids.slice(0, 2),
        total: 3,
        next: 2,
      });
      for (const index of ['items', 'principal', 'nest-session.device'])
        expect((await admin.get(`${PATH}/sessions?index=${index}&value=apple`)).status).toBe(404);
      expect((await admin.get(`${PATH}/sessions?index=item`)).status).toBe(400);
    });

    it('marks the session of the administrator', async () => {
      const app = await start();
      const admin = await app.signIn('ada');
      await app.signIn('ada');
      const { sessions } = (await admin.agent.get(`${PATH}/sessions?username=ada`)).json<Listed>();
      expect(sessions.map(({ id, isOwn }) => [id === admin.id, isOwn])).toEqual([
        [false, false],
        [true, true],
      ]);
    });

    it('marks the session of the administrator, also where a guard has given it another id', async () => {
      const rotating: CanActivate = {
        canActivate: (context) => {
          context.switchToHttp().getRequest<{ session: Session }>().session.changeSessionId();
          return true;
        },
      };
      const app = await start({ admin: { guards: [rotating] } });
      const { agent } = await app.signIn('ada');
      await app.signIn('ada');
      for (let i = 0; i < 2; i++) {
        const { sessions } = (await agent.get(`${PATH}/sessions?username=ada`)).json<Listed>();
        expect(sessions.map(({ isOwn }) => isOwn)).toEqual([false, true]);
      }
    });

    it('ends a session, whose browser is signed out then', async () => {
      const app = await start();
      const admin = await app.admin();
      const [bob, other] = [await app.signIn('bob'), await app.signIn('bob')];
      await bob.agent.post('/cart/apple');
      const response = await admin.request('DELETE', `${PATH}/sessions/${bob.id}`);
      expect([response.status, response.text]).toEqual([204, '']);
      expect((await bob.agent.get('/cart')).json()).toEqual({ cart: null });
      expect((await admin.get(`${PATH}/sessions/${bob.id}`)).status).toBe(404);
      expect((await admin.request('DELETE', `${PATH}/sessions/${bob.id}`)).status).toBe(404);
      expect((await admin.get(`${PATH}/sessions/${other.id}`)).status).toBe(200);
    });

    it('ends a session of a user only if it is one', async () => {
      const app = await start();
      const admin = await app.admin();
      const bob = await app.signIn('bob');
      expect((await admin.request('DELETE', `${PATH}/sessions/${bob.id}?username=eve`)).status).toBe(404);
      expect((await admin.get(`${PATH}/sessions/${bob.id}?username=eve`)).status).toBe(404);
      expect((await admin.request('DELETE', `${PATH}/sessions/${bob.id}?username=bob`)).status).toBe(204);
    });

    it('ends all sessions of a user, and of nobody else', async () => {
      const app = await start();
      const admin = await app.admin();
      for (let i = 0; i < 3; i++) await app.signIn('bob');
      await app.signIn('bobby');
      expect((await admin.request('DELETE', `${PATH}/sessions?username=bob`)).json()).toEqual({ ended: 3 });
      expect((await admin.get(`${PATH}/sessions?username=bob`)).json()).toEqual({ sessions: [], total: 0, next: null });
      expect((await admin.get(`${PATH}/sessions?username=bobby`)).json()).toMatchObject({ total: 1 });
    });

    it('lists many sessions in pages, each session once', async () => {
      const app = await start();
      const admin = await app.admin();
      const ids = new Set<string>();
      for (let i = 0; i < 7; i++) ids.add((await app.signIn('bob')).id);
      const seen: unknown[] = [];
      for (let offset: number | null = 0; offset !== null;) {
        const page: Listed = (await admin.get(`${PATH}/sessions?username=bob&limit=3&offset=${offset}`)).json<Listed>();
        seen.push(...page.sessions.map(({ id }) => id));
        expect(page.total).toBe(7);
        offset = page.next;
      }
      expect(seen).toHaveLength(7);
      expect(new Set(seen)).toEqual(ids);
    });

    it('neither touches nor changes a session at which somebody looks', async () => {
      const app = await start({ session: { touchInterval: '0s' } });
      const admin = await app.admin();
      const bob = await app.signIn('bob');
      const look = async () => (await admin.get(`${PATH}/sessions/${bob.id}`)).json<Record<string, unknown>>();
      const before = await look();
      expect(await look()).toEqual(before);
    });

    it('keeps the session of an administrator idle while the overview is asked for', async () => {
      const app = await start({ session: { touchInterval: '0s' } });
      const ada = await app.signIn('ada');
      const other = await app.admin();
      const accessed = async () =>
        (await other.get(`${PATH}/sessions/${ada.id}`)).json<{ lastAccessedTime: string }>().lastAccessedTime;
      const before = await accessed();
      for (let i = 0; i < 3; i++) expect((await ada.agent.get(`${PATH}/overview`)).status).toBe(200);
      expect(await accessed()).toBe(before);
    });
  });

  it('lists no session that has another user by the time it is read', async () => {
    const { store } = inRedis();
    const app = await AdminApp.start({ platform, ...(store && { store }) });
    const admin = await app.admin();
    const [bob, eve] = [await app.signIn('bob'), await app.signIn('eve')];
    const client = new Redis(redis.url);
    const hash = createHash('sha256').update('bob').digest('base64url');
    // As the index was before the session got another user.
    await client.zadd(`admin-${namespaces - 1}:index:principal:${hash}`, Date.now(), eve.id);
    client.disconnect();
    const { sessions } = (await admin.get(`${PATH}/sessions?username=bob`)).json<Listed>();
    expect(sessions.map(({ id }) => id)).toEqual([bob.id]);
  });

  it('shows values as the option `values` shows them', async () => {
    const app = await AdminApp.start({
      platform,
      admin: {
        values: (name, value) => (name === 'cart' ? { items: (value as string[]).length } : undefined),
      },
    });
    const admin = await app.admin();
    const bob = await app.signIn('bob');
    await bob.agent.post('/cart/secret-of-bob');
    const response = await admin.get(`${PATH}/sessions/${bob.id}`);
    expect(response.json()).toMatchObject({ attributes: [{ name: 'cart', value: { items: 1 } }] });
    expect(response.text).not.toContain('secret-of-bob');
  });

  it('shows the rest where a value cannot be shown', async () => {
    const values = jest.fn((): unknown => ({ much: 1n }));
    const app = await AdminApp.start({ platform, admin: { values } });
    const admin = await app.admin();
    const bob = await app.signIn('bob');
    await bob.agent.post('/cart/apple');
    const show = async () => (await admin.get(`${PATH}/sessions/${bob.id}`)).json<{ attributes: unknown }>().attributes;
    const unreadable = [{ name: 'cart', size: 13, isUnreadable: true }];
    expect(await show()).toEqual(unreadable);
    values.mockImplementation(() => {
      throw new Error('secret');
    });
    expect(await show()).toEqual(unreadable);
  });

  it.each(['memory', 'Redis'])(
    "never shows or takes an id that is a token: sessionIds: 'plain' in %s",
    async (store) => {
      const app = await AdminApp.start({
        platform,
        ...(store === 'Redis' && inRedis()),
        session: { sessionIds: 'plain' },
      });
      const admin = await app.admin();
      const bob = await app.signIn('bob');
      const response = await admin.get(`${PATH}/sessions?username=bob`);
      expect(response.text).not.toContain(bob.id);
      const [session] = response.json<Listed>().sessions;
      const { id } = session as { id: string };
      expect(id).toMatch(/^sha256:/);
      expect((await admin.get(`${PATH}/sessions/${bob.id}?username=bob`)).status).toBe(404);
      expect((await admin.request('DELETE', `${PATH}/sessions/${bob.id}?username=bob`)).status).toBe(404);
      const alone = await admin.get(`${PATH}/sessions/${id}`);
      expect([alone.status, alone.text]).toEqual([404, expect.stringContaining('add the parameter username')]);
      const shown = await admin.get(`${PATH}/sessions/${id}?username=bob`);
      expect([shown.status, shown.json()]).toEqual([200, expect.objectContaining({ id, principalName: 'bob' })]);
      expect((await admin.request('DELETE', `${PATH}/sessions/${id}?username=bob`)).status).toBe(204);
      expect(app.events.map(({ sessionId }) => sessionId)).toEqual([id]);
      expect(JSON.stringify(app.events)).not.toContain(bob.id);
    },
  );

  it('says that an application without sessions has none', async () => {
    const imports = [DeadlineModule, MapDeadlineModule];
    const app = await AdminApp.start({ platform, session: false, imports, admin: { guards: 'none' } });
    const response = await app.agent().get(`${PATH}/sessions?username=bob`);
    expect([response.status, response.text]).toEqual([404, expect.stringContaining('has no sessions')]);
    expect((await app.agent().get(`${PATH}/overview`)).json()).toMatchObject({ sessions: null });
  });
});
