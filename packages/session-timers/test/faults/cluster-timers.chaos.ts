import { LeakGuard } from '@nest-session/test-infrastructure';
import { RedisCluster } from '@nest-session/testing';
import { BullMqSessionTimer } from '@nest-session/timers/bullmq';
import { Cluster } from 'ioredis';
import { SessionPartitions } from '../../../session-redis/src/keys/session-partitions.js';
import { TimedApplication, untilEnded } from '../support/timed.application.js';
import { TIMER_SERVERS } from '../support/timer.servers.js';

LeakGuard.install();

const MINUTE = 60_000;
const partitions = new SessionPartitions('nest:session', 64);

let cluster: RedisCluster;
let client: Cluster;
const applications: TimedApplication[] = [];
beforeAll(async () => {
  cluster = await RedisCluster.start({ replicas: 1 });
  client = new Cluster(cluster.addresses);
}, MINUTE);
beforeEach(async () => {
  for (const { events } of partitions.all) await client.del(events);
});
afterEach(async () => {
  await Promise.all(applications.splice(0).map((application) => application.stop()));
}, MINUTE);
afterAll(async () => {
  client.disconnect();
  await cluster.stop();
}, MINUTE);

const address = () => ({ cluster: { nodes: cluster.addresses } });

/** Slots of sessions move to another primary and back, and a replica takes over. */
async function reshape(): Promise<void> {
  const slots = await Promise.all(partitions.all.map(({ prefix }) => client.cluster('KEYSLOT', prefix)));
  for (const slot of slots.slice(0, 4)) {
    const home = await cluster.primaryOf(slot);
    const other = await cluster.primaryOf(slots.find((each) => !isNear(each, slot))!);
    await cluster.moveSlots([slot], other);
    await cluster.moveSlots([slot], home);
  }
  await cluster.failover(await cluster.primaryOf(slots[0]!));
}

/** Whether two slots are so near that the same primary may have them. */
function isNear(one: number, other: number): boolean {
  return Math.abs(one - other) < 16_384 / 3;
}

async function endWhileReshaped(): Promise<void> {
  const reshaped = reshape();
  const waves: Promise<string[]>[] = [];
  for (let wave = 0; wave < 5; wave++) {
    for (const application of applications) waves.push(application.create(40, 1 + wave));
    await waves.at(-1);
  }
  await reshaped;
  await untilEnded({ client, partitions }, applications, (await Promise.all(waves)).flat());
}

it.each(TIMER_SERVERS)(
  'with a %s, the ends of sessions on a Cluster are reported once each while slots move and a replica takes over',
  async (_name, open) => {
    const server = await open();
    try {
      for (let i = 0; i < 2; i++) applications.push(await TimedApplication.start(address(), server.timer()));
      await endWhileReshaped();
    } finally {
      await Promise.all(applications.splice(0).map((application) => application.stop()));
      await server.close();
    }
  },
);

it('BullMQ may have its jobs on the Cluster of the sessions', async () => {
  const connection = new Cluster(cluster.addresses, { redisOptions: { maxRetriesPerRequest: null } });
  const timer = () => new BullMqSessionTimer({ connection });
  try {
    for (let i = 0; i < 2; i++) applications.push(await TimedApplication.start(address(), timer()));
    await endWhileReshaped();
  } finally {
    await Promise.all(applications.splice(0).map((application) => application.stop()));
    connection.disconnect();
  }
});
