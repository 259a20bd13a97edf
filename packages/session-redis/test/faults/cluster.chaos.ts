import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually, type HttpAgent, RedisCluster } from '@nest-session/testing';
import { SessionPartitions } from '../../src/keys/session-partitions.js';
import slotOf from 'cluster-key-slot';
import { App } from '../support/app.fixture.js';
import { print } from '../support/figures.js';

LeakGuard.install();

const SESSIONS = 1000;
const AT_ONCE = 16;
const MINUTE = 60_000;

interface Visitor {
  readonly agent: HttpAgent;
  readonly id: string;
  /** Counted by a request that got a 2xx response. */
  counted: number;
  /** By one that got a 503: it may have counted. */
  uncertain: number;
}

let cluster: RedisCluster;
let apps: App[];
beforeAll(async () => {
  cluster = await RedisCluster.start({ replicas: 1 });
  const redis = { cluster: { nodes: cluster.addresses }, commandTimeout: '1s' } as const;
  apps = [await App.start({ redis }), await App.start({ redis })];
}, MINUTE);
afterAll(async () => {
  await Promise.all(apps.map((app) => app.stop()));
  await cluster.stop();
}, MINUTE);

async function visitors(): Promise<Visitor[]> {
  const all: Visitor[] = [];
  while (all.length < SESSIONS) {
    const agents = Array.from({ length: 50 }, (_, i) => apps[i % 2]!.agent());
    const responses = await Promise.all(agents.map((agent) => agent.post('/set/cart', { value: 'full' })));
    for (const [i, response] of responses.entries()) {
      expect(response.status).toBe(201);
      all.push({ agent: agents[i]!, id: (response.json() as { id: string }).id, counted: 0, uncertain: 0 });
    }
  }
  return all;
}

/** Counts in all sessions, some at once, until the fault is over. Resolves to the number of responses by status. */
async function load(all: readonly Visitor[], fault: () => Promise<unknown>): Promise<Map<number, number>> {
  let isOver = false;
  const statuses = new Map<number, number>();
  const suffered = fault().finally(() => (isOver = true));
  await Promise.all(
    Array.from({ length: AT_ONCE }, async (_, lane) => {
      for (let i = lane; !isOver; i = (i + AT_ONCE) % all.length) {
        const visitor = all[i]!;
        const { status } = await visitor.agent.post('/count');
        statuses.set(status, (statuses.get(status) ?? 0) + 1);
        if (status < 300) visitor.counted++;
        else visitor.uncertain++;
      }
    }),
  );
  await suffered;
  return statuses;
}

async function expectCounts(all: readonly Visitor[]): Promise<void> {
  for (const { agent, id, counted, uncertain } of all) {
    const session = await eventually(async () => {
      const response = await agent.get('/read');
      expect(response.status).toBe(200);
      return response.json() as { id: string; attributes: { count?: number; cart: string } };
    });
    expect(session).toMatchObject({ id, attributes: { cart: 'full' } });
    const { count = 0 } = session.attributes;
    expect(count).toBeGreaterThanOrEqual(counted);
    expect(count).toBeLessThanOrEqual(counted + uncertain);
  }
}

it(
  'no session is lost or changed twice while slots move and primaries fail, and each end is reported once',
  async () => {
    const all = await visitors();
    const slots = new SessionPartitions('nest:session', 64).all.map(({ prefix }) => slotOf(prefix));
    const responses: Record<string, unknown> = {};
    const primaries = async () => [...new Set(await Promise.all(slots.map((slot) => cluster.primaryOf(slot))))];

    const reshard = async () => {
      for (const round of [1, 2]) {
        const [one, two] = await primaries();
        for (const slot of slots.slice(0, 8)) await cluster.moveSlots([slot], round === 1 ? two! : one!);
      }
    };
    responses['reshard'] = Object.fromEntries(await load(all, reshard));
    await expectCounts(all);

    const manual = async () => cluster.failover((await primaries())[0]!);
    responses['manual failover'] = Object.fromEntries(await load(all, manual));
    await expectCounts(all);

    const node = (await primaries())[1]!;
    const frozen = async () => {
      node.freeze();
      await cluster.untilStable();
      node.thaw();
      await cluster.untilStable();
    };
    responses['frozen primary'] = Object.fromEntries(await load(all, frozen));
    // A frozen primary has not passed on what it replied last: only what it did not reply is certain.
    await eventually(() => cluster.untilStable());

    for (const { agent } of all) await eventually(async () => expect((await agent.post('/logout')).status).toBe(201));
    const ended = () => apps.flatMap((app) => app.events.all()).filter(({ type }) => type === 'deleted');
    const ids = all.map(({ id }) => id).toSorted();
    await eventually(() => expect(new Set(ended().map(({ sessionId }) => sessionId)).size).toBe(ids.length), {
      timeout: MINUTE,
    });
    expect(
      ended()
        .map(({ sessionId }) => sessionId)
        .toSorted(),
    ).toEqual(ids);
    for (const event of ended()) expect(event.session.getAttribute('cart')).toBe('full');
    print(`responses by status: ${JSON.stringify(responses)}`);
  },
  10 * MINUTE,
);
