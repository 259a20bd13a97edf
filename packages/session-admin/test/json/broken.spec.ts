import { randomBytes } from 'node:crypto';
import { RedisSessionModule } from '@nest-session/redis';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { type HttpAgent, RedisServer } from '@nest-session/testing';
import { Redis } from 'ioredis';
import { AdminApp, closeApps, PATH } from '../support/admin.app.js';

LeakGuard.install();

let redis: RedisServer;
let client: Redis;
beforeAll(async () => {
  redis = await RedisServer.start();
  client = new Redis(redis.url);
});
beforeEach(() => client.flushall());
afterEach(closeApps);
afterAll(async () => {
  client.disconnect();
  await redis.stop();
});

type SessionIdForm = 'hashed' | 'plain';
type Shown = Record<string, unknown>;

const [A, B] = ['a', 'b'].map((id) => ({ id, key: randomBytes(32).toString('base64url') }));

/** A shop with its sessions in Redis, whose administrators see every value. */
const start = (sessionIds: SessionIdForm, keys?: (typeof A)[]) =>
  AdminApp.start({
    session: { sessionIds },
    store: [RedisSessionModule.forRoot({ url: redis.url, ...(keys && { encryption: { keys: keys as never } }) })],
    admin: { values: (_name, value) => value },
  });

async function cartOf(app: AdminApp, name: string): Promise<string> {
  const { agent, id } = await app.signIn(name);
  await agent.post(`/cart/${encodeURIComponent('中中')}`);
  return id;
}

const sessionsOf = async (admin: HttpAgent, name: string) =>
  (await admin.get(`${PATH}/sessions?username=${name}`)).json<{ sessions: Shown[]; total: number }>();

const CART = { name: 'cart', size: Buffer.byteLength('cart["中中"]') };
const key = (id: string) => `nest:session:sessions:${id}`;

/** What is broken, and whether the application still has the session: whatever it does not load is not shown. */
const DAMAGES: readonly (readonly [what: string, damage: (id: string) => Promise<unknown>, isThere: boolean])[] = [
  ['no time of its creation', (id) => client.hdel(key(id), 'creationTime'), false],
  ['no time of its last use', (id) => client.hdel(key(id), 'lastAccessedTime'), false],
  ['no timeout', (id) => client.hdel(key(id), 'maxInactiveInterval'), false],
  ['a time that is none', (id) => client.hset(key(id), 'creationTime', 'garbage'), false],
  ['a list in its place', (id) => client.del(key(id)).then(() => client.rpush(key(id), 'x')), false],
  ['a text in its place', (id) => client.set(key(id), 'x'), false],
  ['no time of its sign-in', (id) => client.hdel(key(id), 'authenticatedAt'), true],
  ['a device that is no JSON', (id) => client.hset(key(id), 'device', '{garbage'), true],
  ['a device that is a number', (id) => client.hset(key(id), 'device', '{"address":5}'), true],
  ['an attribute that is no JSON', (id) => client.hset(key(id), 'sessionAttr:cart', '{garbage'), true],
  ['an attribute that is no text', (id) => client.hset(key(id), 'sessionAttr:cart', Buffer.from([255, 254, 0])), true],
  ['a principal that is no JSON', (id) => client.hset(key(id), 'sessionAttr:nest-session.principal', '{no'), true],
];

describe.each(['hashed', 'plain'] as const)('with %s ids', (sessionIds) => {
  it.each(DAMAGES)(
    'a session with %s neither hides the others nor fails, and can be ended if it is there',
    async (_, damage, isThere) => {
      const app = await start(sessionIds);
      const admin = await app.admin();
      const ids = [await cartOf(app, 'bob'), await cartOf(app, 'bob')];
      const [broken, whole] = (await sessionsOf(admin, 'bob')).sessions as [Shown, Shown];
      const address = ({ id }: Shown) => `${PATH}/sessions/${id as string}?username=bob`;
      const before = (await admin.get(address(whole))).json();
      await damage(ids[1]!);

      const { sessions } = await sessionsOf(admin, 'bob');
      expect(sessions.map(({ id }) => id)).toEqual(isThere ? [broken['id'], whole['id']] : [whole['id']]);
      expect(sessions.at(-1)).toEqual(whole);
      expect((await admin.get(address(whole))).json()).toEqual(before);
      expect((await admin.get(address(broken))).status).toBe(isThere ? 200 : 404);
      expect((await admin.request('DELETE', address(broken))).status).toBe(isThere ? 204 : 404);
      expect((await sessionsOf(admin, 'bob')).sessions).toEqual([whole]);
    },
  );

  it('a session whose key is gone is shown with sizes, and can be ended as one of its user alone', async () => {
    const former = await start(sessionIds, [A]);
    const id = await cartOf(former, 'bob');
    const app = await start(sessionIds, [B]);
    const admin = await app.admin();
    const readable = await cartOf(app, 'bob');
    const [first, shown] = (await sessionsOf(admin, 'bob')).sessions as [Shown, Shown];
    expect([first, shown]).toMatchObject([
      { principalName: 'bob', attributeNames: ['cart'], size: CART.size },
      { principalName: null, attributeNames: ['cart'], size: CART.size },
    ]);
    const address = `${PATH}/sessions/${shown['id'] as string}`;
    const attributes = [{ ...CART, isUnreadable: true }];
    expect((await admin.get(`${address}?username=bob`)).json()).toEqual({ ...shown, attributes });
    for (const method of ['GET', 'DELETE']) {
      expect((await admin.request(method, `${address}?username=eve`)).status).toBe(404);
    }
    expect((await admin.request('DELETE', `${address}?username=bob`)).status).toBe(204);
    expect((await sessionsOf(admin, 'bob')).sessions).toEqual([first]);
    expect(app.events).toMatchObject([{ action: 'end-session', sessionId: expect.any(String) as string }]);
    expect(await client.exists(`nest:session:sessions:expires:${id}`)).toBe(0);
    expect(await client.exists(`nest:session:sessions:expires:${readable}`)).toBe(1);
  });
});
