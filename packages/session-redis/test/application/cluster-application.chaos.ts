import { Injectable } from '@nestjs/common';
import { OnSessionEvent, SessionEvent, Sessions } from '@nest-session/core';
import { SessionEventGroups } from '@nest-session/redis';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually, type HttpAgent, RedisCluster } from '@nest-session/testing';
import { Cluster, Redis } from 'ioredis';
import { App } from '../support/app.fixture.js';

LeakGuard.install();

const MINUTE = 60_000;
const LONG = MINUTE;

@Injectable()
class Broadcasts {
  readonly heard: string[] = [];

  @OnSessionEvent(SessionEvent, { broadcast: true })
  hear({ id }: SessionEvent) {
    this.heard.push(id);
  }
}

let cluster: RedisCluster;
let apps: App[] = [];
beforeAll(async () => {
  cluster = await RedisCluster.start({ replicas: 1 });
}, LONG);
afterEach(async () => {
  await Promise.all(apps.map((app) => app.stop()));
  apps = [];
}, LONG);
afterAll(() => cluster.stop());

let namespaces = 0;
const newNamespace = () => `app-${++namespaces}`;

async function start(namespace: string, options: Parameters<typeof App.start>[0] = {}): Promise<App> {
  const redis = {
    cluster: { nodes: cluster.addresses },
    namespace,
    cleanup: { cron: '0 0 0 29 2 *' },
    ...options.redis,
  };
  const app = await App.start({ ...options, redis, providers: [Broadcasts] });
  apps.push(app);
  return app;
}

/** A client with the cookie of another one, at another instance. */
function beside(app: App, agent: HttpAgent): HttpAgent {
  const other = app.agent();
  other.setCookie(`SESSION=${agent.cookie('SESSION')}; Path=/`);
  return other;
}

const read = async (agent: HttpAgent) => {
  const response = await agent.get('/read');
  return { status: response.status, ...(response.json() as { id: string; attributes: object }) };
};

async function visitors(app: App, count: number): Promise<Map<string, HttpAgent>> {
  const agents = Array.from({ length: count }, () => app.agent());
  const responses = await Promise.all(agents.map((agent) => agent.post('/set/cart', { value: 'full' })));
  return new Map(responses.map((response, i) => [(response.json() as { id: string }).id, agents[i]!]));
}

it(
  'instances share sessions, and each event reaches one handler of the group and every broadcast handler',
  async () => {
    const namespace = newNamespace();
    const [one, two] = [await start(namespace), await start(namespace)];
    const agents = await visitors(one, 30);
    for (const [id, agent] of agents) {
      const other = beside(two, agent);
      expect(await read(other)).toMatchObject({ id, attributes: { cart: 'full' } });
      await other.post('/logout');
      expect((await read(agent)).id).not.toBe(id);
    }
    const ids = [...agents.keys()].toSorted();
    const ended = () => [...one.events.all(), ...two.events.all()].filter(({ type }) => type === 'deleted');
    await eventually(() =>
      expect(
        ended()
          .map(({ sessionId }) => sessionId)
          .toSorted(),
      ).toEqual(ids),
    );
    for (const event of ended()) expect(event.session.getAttribute('cart')).toBe('full');
    for (const app of [one, two]) {
      const { heard } = app.nest.get(Broadcasts, { strict: false });
      const deleted = () => heard.filter((id) => id.startsWith('deleted-')).map((id) => id.slice('deleted-'.length));
      await eventually(() => expect(deleted().toSorted()).toEqual(ids));
    }
    const [group] = await one.nest.get(SessionEventGroups, { strict: false }).list();
    await eventually(async () => expect(group).toMatchObject({ name: 'default', lag: 0 }));
    expect(group!.consumers).toHaveLength(2);
  },
  LONG,
);

it(
  'sessions that expire are reported once, with their data, by the sweep',
  async () => {
    const app = await start(newNamespace(), { session: { timeout: '1s' } });
    const agents = await visitors(app, 30);
    const ended = () => app.events.all().filter(({ type }) => type === 'expired');
    await eventually(async () => {
      await app.sweeper.runOnce({ ahead: MINUTE });
      expect(
        ended()
          .map(({ sessionId }) => sessionId)
          .toSorted(),
      ).toEqual([...agents.keys()].toSorted());
    });
    for (const event of ended()) expect(event.session.getAttribute('cart')).toBe('full');
  },
  LONG,
);

it('a login rotates the session, and the sessions of a user are listed and ended in all partitions', async () => {
  const app = await start(newNamespace());
  const agents = await visitors(app, 10);
  for (const [id, agent] of agents) {
    const { id: newId } = (await agent.post('/login/ann')).json() as { id: string };
    expect(newId).not.toBe(id);
    expect(await read(agent)).toMatchObject({ id: newId, attributes: { user: 'ann', cart: 'full' } });
  }
  const sessions = app.nest.get(Sessions, { strict: false });
  const listed: string[] = [];
  for await (const { id } of sessions.ofPrincipal('ann')) listed.push(id);
  expect(listed).toHaveLength(10);
  expect(await sessions.count('ann')).toBe(10);
  expect(await sessions.endAll('ann')).toBe(10);
  expect(await sessions.count('ann')).toBe(0);
});

it(
  'no session is valid any more after the end of every session',
  async () => {
    const app = await start(newNamespace());
    const agents = await visitors(app, 10);
    await app.nest.get(Sessions, { strict: false }).endEverySession();
    for (const [id, agent] of agents) expect((await read(agent)).id).not.toBe(id);
    const ended = () => app.events.all().filter(({ type }) => type === 'deleted');
    await eventually(() =>
      expect(
        ended()
          .map(({ sessionId }) => sessionId)
          .toSorted(),
      ).toEqual([...agents.keys()].toSorted()),
    );
  },
  LONG,
);

it(
  'while a primary is gone only sessions of its partitions are unavailable, and its replica has them',
  async () => {
    const app = await start(newNamespace(), { redis: { commandTimeout: '500ms' } });
    const agents = [...(await visitors(app, 30)).values()];
    const node = await cluster.primaryOf(0);
    const admin = new Redis(node.url, { retryStrategy: () => null }).on('error', () => undefined);
    await admin.wait(1, 0);
    admin.disconnect();
    await node.kill();
    const statuses = await Promise.all(agents.map(async (agent) => (await agent.get('/read')).status));
    const [unavailable, available] = [503, 200].map((status) => statuses.filter((each) => each === status).length);
    expect(unavailable).toBeGreaterThan(0);
    expect(available).toBeGreaterThan(0);
    expect(unavailable! + available!).toBe(agents.length);
    await cluster.untilStable();
    await eventually(async () => {
      for (const agent of agents)
        expect(await read(agent)).toMatchObject({ status: 200, attributes: { cart: 'full' } });
    });
    for (const agent of agents) await agent.post('/logout');
    const ended = () => app.events.all().filter(({ type }) => type === 'deleted');
    await eventually(() => expect(ended()).toHaveLength(agents.length));
    await node.restart();
  },
  2 * LONG,
);

it('there are 64 partitions unless the option says otherwise, and another number is refused later', async () => {
  const namespace = newNamespace();
  await start(namespace);
  await expect(start(namespace, { redis: { partitions: 32 } })).rejects.toThrow('are in 64 partitions');
});

it('a client of the application is duplicated, and neither used nor closed', async () => {
  const client = new Cluster(cluster.addresses);
  const app = await start(newNamespace(), { redis: { client, cluster: undefined! } });
  const [agent] = (await visitors(app, 1)).values();
  expect(await read(agent!)).toMatchObject({ attributes: { cart: 'full' } });
  await app.stop();
  apps = [];
  expect(await client.ping()).toBe('PONG');
  client.disconnect();
});
