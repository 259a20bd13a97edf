import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually, type HttpAgent } from '@nest-session/testing';
import { App, type AppOptions } from '../support/app.fixture.js';
import { dump } from '../support/store.dump.js';
import { Store } from '../support/store.fixture.js';

LeakGuard.install();

const UNAVAILABLE = {
  statusCode: 503,
  message: 'Session store unavailable',
  error: 'Service Unavailable',
  reason: 'store-unavailable',
};

describe.each([
  { notifications: 'auto', expirations: 'buckets' },
  { notifications: 'off', expirations: 'buckets' },
  { notifications: 'off', expirations: 'sorted-set' },
] as const)(
  'while Redis is out of memory, notifications $notifications, ends in the $expirations,',
  ({ notifications, expirations }) => {
    let store: Store;
    let options: AppOptions;
    let app: App;
    let agent: HttpAgent;
    let id: string;

    beforeAll(async () => {
      store = await Store.open({ args: ['--maxmemory', '4mb', '--maxmemory-policy', 'noeviction'] });
      options = { session: { touchInterval: '0s' }, redis: { url: store.server.url, notifications, expirations } };
      app = await App.start(options);
    });
    afterAll(async () => {
      await app.stop();
      await store.close();
    });

    beforeEach(async () => {
      await store.client.config('SET', 'maxmemory', '4mb');
      await store.client.del(...(await store.client.keys(`${store.keys.prefix}sessions:*`)), 'none');
      agent = app.agent();
      ({ id } = (await agent.post('/set/cart', { value: ['apple'] })).json() as { id: string });
      await app.events.next('created', id);
    });

    /** Creates sessions until Redis rejects one, and keeps it out of memory from then on. */
    async function fillUp(): Promise<void> {
      const body = { value: 'x'.repeat(50_000) };
      for (let status = 201; status === 201;) ({ status } = await app.agent().post('/set/blob', body));
      await store.client.config('SET', 'maxmemory', '1mb');
    }

    it('sessions are loaded and renewed', async () => {
      await fillUp();
      await store.client.pexpire(store.keys.shadow(id), 60_000);
      expect((await agent.get('/read')).json()).toMatchObject({ id, attributes: { cart: ['apple'] } });
      await eventually(async () => (await store.client.pttl(store.keys.shadow(id))) > 60_000);
    });

    it('a save is rejected as a whole, with a 503 and no cookie', async () => {
      await agent.post('/set/count', { value: 1 });
      await fillUp();
      // Without the progress of the handlers.
      const contents = async () => [
        await dump(store.client, [store.keys.events]),
        await store.client.xlen(store.keys.events),
      ];
      const before = await contents();
      const refused = [
        app.agent().post('/set/cart', { value: ['pear'] }),
        app.agent().post('/login/ann'),
        agent.post('/set/cart', { value: ['pear'] }),
        agent.post('/login/ann'),
        agent.post('/count'),
      ];
      for (const response of await Promise.all(refused)) {
        expect([response.status, response.json(), response.setCookies]).toEqual([503, UNAVAILABLE, []]);
      }
      expect(await contents()).toEqual(before);
      expect((await agent.get('/read')).json()).toMatchObject({ id, attributes: { cart: ['apple'], count: 1 } });
    });

    it('users can log out, and the end is reported with its data', async () => {
      await fillUp();
      expect((await agent.post('/logout')).status).toBe(201);
      expect(await store.isAlive(id)).toBe(false);
      expect((await agent.get('/read')).json()).toMatchObject({ isNew: true });
      const event = await app.events.next('deleted', id);
      expect(event.session.getAttribute('cart')).toEqual(['apple']);
    });

    it('an interval of 0 ends the session, and the end is reported with the attributes set beside it', async () => {
      await fillUp();
      expect((await agent.post('/set/cart', { value: ['pear'], interval: 0 })).status).toBe(201);
      expect(await store.isAlive(id)).toBe(false);
      expect((await agent.get('/read')).json()).toMatchObject({ isNew: true });
      const event = await app.events.next('deleted', id);
      expect(event.session.getAttribute('cart')).toEqual(['pear']);
    });

    it('sessions expire, and their ends are reported with their data', async () => {
      await fillUp();
      await store.client.pexpire(store.keys.shadow(id), 1);
      await eventually(async () => !(await store.isAlive(id)));
      await app.sweeper.runOnce({ ahead: 3_600_000 });
      const event = await app.events.next('expired', id);
      expect(event.session.getAttribute('cart')).toEqual(['apple']);
      expect(await store.eventTypes(id)).toEqual(['created', 'expired']);
    });

    it('a starting instance works like the others', async () => {
      await fillUp();
      const started = await App.start(options);
      try {
        const cookie = `SESSION=${agent.cookie('SESSION')}`;
        const response = await started.agent().get('/read', { headers: { cookie } });
        expect(response.json()).toMatchObject({ id, attributes: { cart: ['apple'] } });
        expect((await started.agent().post('/logout', {}, { headers: { cookie } })).status).toBe(201);
      } finally {
        await started.stop();
      }
    });

    it('once there is memory again, sessions are stored again', async () => {
      await fillUp();
      expect((await agent.post('/set/cart', { value: ['pear'] })).status).toBe(503);
      await store.client.config('SET', 'maxmemory', '0');
      expect((await agent.post('/set/cart', { value: ['pear'] })).status).toBe(201);
      expect((await app.agent().post('/set/cart', { value: ['pear'] })).setCookies).toHaveLength(1);
    });
  },
);
