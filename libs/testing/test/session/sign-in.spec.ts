import type { IncomingMessage } from 'node:http';
import { randomBytes } from 'node:crypto';
import type { INestApplication } from '@nestjs/common';
import {
  CompositeSessionIdResolver,
  CookieSessionIdResolver,
  HeaderSessionIdResolver,
  IndexedSessionRepository,
  SessionCreatedEvent,
  type SessionModuleOptions,
} from '@nest-session/core';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { HttpAgent, SessionEventRecorder, sessionOf, signIn } from '@nest-session/testing';
import { createShop } from '../support/shop.app.js';

LeakGuard.install();

const key = randomBytes(32).toString('base64');
const secure = { name: '__Host-id', secure: true } as const;

describe('signIn and sessionOf', () => {
  let app: INestApplication | undefined;

  afterEach(() => app?.close());

  async function open(...args: Parameters<typeof createShop>): Promise<INestApplication> {
    app = await createShop(...args);
    return app;
  }

  it.each([
    { name: 'a cookie', session: {} },
    { name: 'a signed cookie', session: { cookie: { signingKeys: [key] } } },
    { name: 'plain ids', session: { sessionIds: 'plain' } },
    { name: 'several sessions', session: { multipleSessions: true } },
    { name: 'a header', session: { sessionIdResolver: HeaderSessionIdResolver.xAuthToken() } },
    {
      name: 'a header or a cookie',
      session: {
        sessionIdResolver: new CompositeSessionIdResolver(
          HeaderSessionIdResolver.xAuthToken(),
          new CookieSessionIdResolver(),
        ),
      },
    },
  ] satisfies { name: string; session: SessionModuleOptions }[])(
    'gives a client a session that the application knows, with $name',
    async ({ session }) => {
      const shop = await open(session);
      const ada = await signIn(shop, { principalName: 'ada', attributes: { items: ['apple'] } });
      expect((await ada.get('/account')).json()).toEqual({ user: 'ada', items: ['apple'] });
      await ada.post('/items', { name: 'pear' });
      expect((await sessionOf(shop, ada))?.getAttribute('items')).toEqual(['apple', 'pear']);

      const before = await sessionOf(shop, ada);
      await ada.post('/login', { name: 'ann' });
      const after = await sessionOf(shop, ada);
      expect([after?.principalName, after?.id === before?.id]).toEqual(['ann', false]);

      await ada.post('/logout');
      expect(await sessionOf(shop, ada)).toBeNull();
      expect(ada.headersFor('/')).toEqual({});
    },
  );

  it('work on Fastify, and with an application that listens already', async () => {
    const shop = await open({}, 'fastify');
    await shop.listen(0);
    const ada = await signIn(shop, { principalName: 'ada' });
    expect((await ada.get('/account')).json()).toEqual({ user: 'ada', items: [] });
    expect(await sessionOf(shop, await HttpAgent.for(shop))).toBeNull();
  });

  it.each(['express', 'fastify'] as const)(
    'start an application once for clients that are created at once, on %s',
    async (platform) => {
      const shop = await open({}, platform);
      let starts = 0;
      Object.assign(shop.get(SessionEventRecorder), { onApplicationBootstrap: () => void starts++ });
      const clients = await Promise.all([
        signIn(shop, { principalName: 'ada' }),
        HttpAgent.for(shop),
        signIn(shop, { principalName: 'bob' }),
      ]);
      const users = await Promise.all(clients.map(async (each) => (await sessionOf(shop, each))?.principalName));
      expect([starts, users]).toEqual([1, ['ada', undefined, 'bob']]);
      expect((await clients[0]!.get('/account')).status).toBe(200);
    },
  );

  it('create a session that is indexed and reported, as after any login', async () => {
    const shop = await open();
    const ada = await signIn(shop, { principalName: 'ada', maxInactiveInterval: 60 });
    const [found] = await shop.get(IndexedSessionRepository).findByPrincipalName('ada');
    expect(found?.maxInactiveInterval).toBe(60);
    expect((await sessionOf(shop, ada))?.id).toBe(found?.id);
    await shop.get(SessionEventRecorder).next(SessionCreatedEvent, found?.id);
  });

  it('sign in a client that was used before, and leave other clients unchanged', async () => {
    const shop = await open();
    const [ada, bob] = [await HttpAgent.for(shop), await signIn(shop, { principalName: 'bob' })];
    ada.setCookie('theme=dark');
    await expect(signIn(shop, { principalName: 'ada' }, { agent: ada })).resolves.toBe(ada);
    expect(ada.cookie('theme')).toBe('dark');
    expect((await ada.get('/account')).json()).toMatchObject({ user: 'ada' });
    expect((await bob.get('/account')).json()).toMatchObject({ user: 'bob' });
  });

  it('give one client several sessions, each under its alias', async () => {
    const shop = await open({ multipleSessions: true });
    const agent = await signIn(shop, { principalName: 'ada' });
    await signIn(shop, { principalName: 'ann' }, { agent, path: '/?_s=1' });
    const users = await Promise.all(['/account', '/account?_s=1'].map((path) => agent.get(path)));
    expect(users.map((response) => response.json<{ user: string }>().user)).toEqual(['ada', 'ann']);
    expect((await sessionOf(shop, agent, '/?_s=1'))?.principalName).toBe('ann');
    expect(await sessionOf(shop, agent, '/?_s=2')).toBeNull();
  });

  it('throw with advice when the client would not send the cookie', async () => {
    const shop = await open({ cookie: secure });
    await expect(signIn(shop, { principalName: 'ada' })).rejects.toThrow('HttpAgent.for(app, { secure: true })');
    const agent = await HttpAgent.for(shop, { secure: true });
    const ada = await signIn(shop, { principalName: 'ada' }, { agent });
    expect((await ada.get('/account')).json()).toMatchObject({ user: 'ada' });
  });

  it('sign in below the path of the cookie', async () => {
    const shop = await open({ cookie: { path: '/account' } });
    await expect(signIn(shop, { principalName: 'ada' })).rejects.toThrow('`path`');
    const ada = await signIn(shop, { principalName: 'ada' }, { path: '/account/orders' });
    expect((await ada.get('/account')).json()).toMatchObject({ user: 'ada' });
  });

  it('pass a request of this client to the resolver', async () => {
    class CookieOfTenant extends CookieSessionIdResolver {
      override cookieFor(request: IncomingMessage) {
        return { ...super.cookieFor(request), path: `/${String(request.headers['x-tenant'])}` };
      }
    }
    const shop = await open({ sessionIdResolver: CookieOfTenant });
    const agent = await HttpAgent.for(shop, { headers: { 'x-tenant': 'account' } });
    const ada = await signIn(shop, { principalName: 'ada' }, { agent, path: '/account' });
    expect(ada.headersFor('/')).toEqual({ 'x-tenant': 'account' });
    expect((await ada.get('/account')).json()).toMatchObject({ user: 'ada' });
  });

  it('refuse an empty session, which would not be stored', async () => {
    const shop = await open();
    await expect(signIn(shop, {})).rejects.toThrow('principalName');
    expect(shop.get(SessionEventRecorder).all()).toEqual([]);
  });

  it('do not count a look at a session as an access', async () => {
    const shop = await open();
    const ada = await signIn(shop, { principalName: 'ada' });
    const first = await sessionOf(shop, ada);
    const second = await sessionOf(shop, ada);
    expect(second?.lastAccessedTime).toBe(first?.lastAccessedTime);
  });
});
