import { IndexedSessionRepository, type SessionEvent } from '@nest-session/core';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually, RedisServer } from '@nest-session/testing';
import { App, type AppOptions } from '../support/app.fixture.js';

LeakGuard.install();

interface SessionView {
  id: string;
  isNew: boolean;
  attributes: Record<string, unknown>;
}

// One namespace on both adapters, beside another application whose namespace begins with the same word.
let server: RedisServer;
let inShop: AppOptions;
let shop: App;
let shopOnFastify: App;
let admin: App;
let apps: App[];
beforeAll(async () => {
  server = await RedisServer.start();
  inShop = { session: { cookie: { name: 'SHOP' } }, redis: { url: server.url, namespace: 'shop' } };
  shop = await App.start({ ...inShop, adapter: 'express' });
  shopOnFastify = await App.start({ ...inShop, adapter: 'fastify' });
  admin = await App.start({
    session: { cookie: { name: 'ADMIN' } },
    redis: { url: server.url, namespace: 'shop:admin' },
    adapter: 'fastify',
  });
  apps = [shop, shopOnFastify, admin];
});
afterAll(async () => {
  for (const app of apps) await app.stop();
  await server.stop();
});

/** Stores a session in an application; the cookie of its client. */
async function storedIn(app: App, interval?: number): Promise<{ id: string; token: string }> {
  const agent = app.agent();
  const response = await agent.post('/set/of', { value: app.url, interval });
  expect(response.status).toBe(201);
  const [token] = Object.values(agent.cookies);
  return { id: response.json<SessionView>().id, token: token! };
}

/** The event of this type about a session, as soon as one of the applications has handled it. */
function heard(type: SessionEvent['type'], sessionId: string): Promise<SessionEvent> {
  return eventually(() => {
    const event = apps.flatMap((app) => app.events.all(sessionId)).find((each) => each.type === type);
    if (!event) throw new Error(`No event ${type} of ${sessionId}`);
    return event;
  });
}

async function read(app: App, cookie: string): Promise<SessionView> {
  return (await app.agent().get('/read', { headers: { cookie } })).json();
}

describe('several applications in one process', () => {
  it('each have their own cookie and session in one browser', async () => {
    const [ofShop, ofAdmin] = [await storedIn(shop), await storedIn(admin)];
    const cookie = `SHOP=${ofShop.token}; ADMIN=${ofAdmin.token}`;
    expect(await read(shop, cookie)).toEqual({ id: ofShop.id, isNew: false, attributes: { of: shop.url } });
    expect(await read(admin, cookie)).toEqual({ id: ofAdmin.id, isNew: false, attributes: { of: admin.url } });
    await shop.agent().post('/logout', undefined, { headers: { cookie } });
    expect(await read(shop, cookie)).toMatchObject({ isNew: true });
    expect(await read(admin, cookie)).toMatchObject({ id: ofAdmin.id, isNew: false });
  });

  it('do not load the sessions of another namespace on the same Redis', async () => {
    const [ofShop, ofAdmin] = [await storedIn(shop), await storedIn(admin)];
    expect(await read(admin, `ADMIN=${ofShop.token}`)).toMatchObject({ isNew: true, attributes: {} });
    expect(await read(shop, `SHOP=${ofAdmin.token}`)).toMatchObject({ isNew: true, attributes: {} });
  });

  it('do not find the sessions of a user in another namespace', async () => {
    await shop.agent().post('/login/ann');
    const found = apps.map((app) =>
      app.nest.get(IndexedSessionRepository, { strict: false }).findByPrincipalName('ann'),
    );
    expect((await Promise.all(found)).map((sessions) => sessions.length)).toEqual([1, 1, 0]);
  });

  it('share the sessions of one namespace across HTTP platforms', async () => {
    const onExpress = await storedIn(shop);
    expect(await read(shopOnFastify, `SHOP=${onExpress.token}`)).toMatchObject({ id: onExpress.id, isNew: false });
    const onFastify = await storedIn(shopOnFastify);
    expect(await read(shop, `SHOP=${onFastify.token}`)).toMatchObject({ id: onFastify.id, isNew: false });
  });

  it('handle the end of a session once, in its own namespace only', async () => {
    const [ofShop, ofAdmin] = [await storedIn(shop, 1), await storedIn(admin, 1)];
    expect((await heard('expired', ofShop.id)).session.getAttribute('of')).toBe(shop.url);
    expect((await heard('expired', ofAdmin.id)).session.getAttribute('of')).toBe(admin.url);
    // These events are recorded after any late event of the sessions above.
    for (const app of [shop, admin]) await heard('created', (await storedIn(app)).id);
    const counts = (id: string) => apps.map((app) => app.events.count('expired', id));
    const [onExpress, onFastify, elsewhere] = counts(ofShop.id);
    expect([onExpress! + onFastify!, elsewhere]).toEqual([1, 0]);
    expect(counts(ofAdmin.id)).toEqual([0, 0, 1]);
  });

  it('keep working when one of them is closed', async () => {
    const closing = await App.start(inShop);
    const [ofShop, ofAdmin] = [await storedIn(closing), await storedIn(admin, 1)];
    await closing.stop();
    expect(await read(shop, `SHOP=${ofShop.token}`)).toMatchObject({ id: ofShop.id, isNew: false });
    await heard('expired', ofAdmin.id);
  });
});
