import { fileURLToPath } from 'node:url';
import { setTimeout as pause } from 'node:timers/promises';
import { LeakGuard, SteppableRedisServer } from '@nest-session/test-infrastructure';
import { eventually } from '@nest-session/testing';
import { Redis } from 'ioredis';
import { resolveRedisSessionOptions } from '../../../session-redis/src/configuration/redis-session.options.js';
import { DeadlinePartitions } from '../../../deadlines/src/redis/deadline-keys.js';
import { SessionPartitions } from '../../../session-redis/src/keys/session-partitions.js';
import { verify } from '../../src/verification/verify.js';
import { print } from '../../../session-redis/test/support/figures.js';
import { MINUTE } from '../../../session-redis/test/support/store.fixture.js';
import { WorkerProcess } from '../../../session-redis/test/support/worker.process.js';

LeakGuard.install();

const PROGRAM = fileURLToPath(new URL('../../../session-redis/test/support/busy.worker.mjs', import.meta.url));
/** Steps of the clock: two hours, with those back. */
const STEPS = 75;

describe.each([
  { PARTITIONS: '1', EXPIRATIONS: 'buckets' },
  { PARTITIONS: '4', EXPIRATIONS: 'sorted-set' },
])('two hours of killed instances, a killed Redis and a stepped clock', (environment) => {
  let server: SteppableRedisServer;
  let workers: WorkerProcess[];
  let client: Redis;
  beforeEach(async () => {
    server = await SteppableRedisServer.start({ args: ['--appendonly', 'yes'] });
    client = new Redis(server.url);
    workers = [];
    for (let i = 0; i < 3; i++) workers.push(await start());
  });
  afterEach(async () => {
    await Promise.all(workers.map((worker) => worker.end()));
    client.disconnect();
    await server.stop();
  });

  const start = () => WorkerProcess.start({ REDIS_URL: server.url, ...environment }, { program: PROGRAM });
  const partitions = Number(environment.PARTITIONS);
  const namespaces = [
    new SessionPartitions('nest:session', partitions),
    new DeadlinePartitions('nest:deadlines', partitions),
  ];
  const problems = async () => {
    const options = resolveRedisSessionOptions({});
    const all = await Promise.all(namespaces.map((each) => verify({ client, partitions: each, options })));
    return all.flatMap(({ findings }) => findings);
  };

  it(`leave nothing that verify() finds, meanwhile or afterwards, with ${environment.EXPIRATIONS}`, async () => {
    let looks = 0;
    for (let step = 1; step <= STEPS; step++) {
      await pause(500);
      await server.stepClock(step % 15 === 0 ? -MINUTE : 2 * MINUTE);
      if (step % 10 === 5) {
        await workers.shift()!.end('SIGKILL');
        workers.push(await start());
      }
      if (step % 25 === 0) {
        await server.kill();
        await server.restart();
        await pause(1000);
      }
      if (step % 3 === 0) {
        // The clock has run ahead of the instances: however slow the machine is, they catch up while it does not.
        expect((await problems()).filter(({ rule }) => !rule.endsWith('-overdue'))).toEqual([]);
        await eventually(async () => expect(await problems()).toEqual([]));
        looks++;
      }
    }
    await Promise.all(workers.map((worker) => worker.end()));
    expect(await problems()).toEqual([]);
    const [keys, letters] = [await client.dbsize(), await client.xlen('nest:session:events:dead')];
    print(`${environment.EXPIRATIONS}: ${looks} looks meanwhile, ${keys} keys, ${letters} dead letters at the end`);
    expect(keys).toBeGreaterThan(1000);
  });
});
