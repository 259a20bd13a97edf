import { LeakGuard, TcpProxy } from '@nest-session/test-infrastructure';
import { eventually } from '@nest-session/testing';
import { EventInstance } from '../../../session-redis/test/support/event-instance.fixture.js';
import { recordedExpirations } from '../../../session-redis/test/support/key-event.fixture.js';
import { Store } from '../../../session-redis/test/support/store.fixture.js';
import { ONLY_TIMERS, TimedApplication, untilEnded } from '../support/timed.application.js';
import { TIMER_SERVERS, type TestTimerServer } from '../support/timer.servers.js';
import { WorkerProcess } from '../../../session-redis/test/support/worker.process.js';

// A worker of BullMQ whose server is away leaves a timer of six seconds.
LeakGuard.install({ grace: 10_000 });

const TIMER = new URL('../support/worker-timer.mjs', import.meta.url).href;

describe.each(TIMER_SERVERS)('%s', (_name, open) => {
  let store: Store;
  let server: TestTimerServer;
  const applications: TimedApplication[] = [];

  beforeEach(async () => {
    [store, server] = [await Store.open({ partitions: 4 }), await open()];
    EventInstance.log.lines.length = 0;
  });
  afterEach(async () => {
    await Promise.all(applications.splice(0).map((application) => application.stop()));
    await server.close();
    await store.close();
  });

  async function startTwo(): Promise<readonly [TimedApplication, TimedApplication]> {
    const two = [
      await TimedApplication.on(store, server.timer()),
      await TimedApplication.on(store, server.timer()),
    ] as const;
    applications.push(...two);
    return two;
  }

  /** Resolves when the timers have connected again: a session of one second ends by a timer. */
  async function untilTimed(application: TimedApplication): Promise<void> {
    await eventually(
      async () => {
        const [id] = await application.create(1, 1);
        await untilEnded(store, applications, [id!], 5000);
      },
      { timeout: 60_000 },
    );
  }

  it('its server is killed and comes back without its jobs: the cleanup finds the sessions that it missed', async () => {
    const [one, other] = await startTwo();
    const lost = await one.create(200, 5);
    await server.kill();
    const unheard = await other.create(100, 5);
    await server.restart();
    await untilTimed(one);
    const heard = await other.create(100, 1);
    await untilEnded(store, applications, heard);
    const missed = [...lost, ...unheard];
    await eventually(async () =>
      expect((await Promise.all(missed.map((id) => store.isAlive(id)))).includes(true)).toBe(false),
    );
    await one.sweep();
    await untilEnded(store, applications, [...missed, ...heard]);
    // One of each application.
    expect(EventInstance.log.matching(/^error .*The timer of `expirations` fails/).length).toBeLessThanOrEqual(2);
    expect(EventInstance.log.matching(/^error .*does not report ended sessions/).length).toBeLessThanOrEqual(2);
  });

  it('its jobs come early, late, twice, and with ids that no session has: each end is reported once, none early', async () => {
    const [one] = await startTwo();
    // Nobody schedules these.
    const unknown = await Promise.all(
      Array.from({ length: 20 }, () => store.create({ timeout: '1' }, { interval: 1 })),
    );
    const ids = await one.create(50, 4);
    const jobs = ids.flatMap((id) => [0, 0, 1, 4, 4].map((delay) => [id, delay] as const));
    await server.put([...jobs, ['no id', 0], ['x'.repeat(200), 0], ['0'.repeat(43), 0]]);
    await untilEnded(store, applications, ids);
    await server.put([...ids, ...unknown].map((id) => [id, 0]));
    await untilEnded(store, applications, [...ids, ...unknown]);
    expect(EventInstance.log.matching(/^warn The timer .* asks about ids that no session can have/)).not.toEqual([]);
  });

  it('Redis does not reply when the time comes: the timer asks again until it does', async () => {
    const [one, other] = await startTwo();
    const ids = [...(await one.create(100, 2)), ...(await other.create(100, 3))];
    store.server.freeze();
    await new Promise((resolve) => setTimeout(resolve, 10_000));
    store.server.thaw();
    await untilEnded(store, applications, ids);
  });

  it.each(['request', 'reply'] as const)(
    'an instance is killed while it has a job, at the %s of the claim',
    async (direction) => {
      const proxy = await TcpProxy.start({ port: store.server.port });
      const workers: WorkerProcess[] = [];
      const start = async (url: string) => {
        const { notifications, cleanup } = ONLY_TIMERS;
        const settings = {
          NOTIFICATIONS: notifications,
          CRON: cleanup.cron,
          PARTITIONS: '4',
          TIMER,
          TIMER_SERVER: server.address,
        };
        const worker = await WorkerProcess.start({ REDIS_URL: url, ...settings });
        workers.push(worker);
        return worker;
      };
      try {
        await start(proxy.url);
        const isClaim = (data: Buffer) => data.includes('expires:') && data.includes('events:dead');
        let hasClaimed = false;
        proxy.onData('request', (data) => void (hasClaimed ||= isClaim(data)));
        const matches = direction === 'request' ? isClaim : () => hasClaimed;
        proxy.hold(direction, matches);
        const ids = await Promise.all(
          Array.from({ length: 20 }, () => store.create({ cart: '"apple"' }, { interval: 1 })),
        );
        await server.put(ids.map((id) => [id, 2]));
        await proxy.untilHeld(direction);
        await workers[0]!.end('SIGKILL');
        proxy.cut();
        proxy.release();
        const next = await start(store.server.url);
        for (const id of ids) await next.saysLine(new RegExp(`^handled expired-${id}$`), { timeout: 120_000 });
        const recorded = await recordedExpirations(store);
        expect(ids.map((id) => recorded.get(id))).toEqual(ids.map(() => 1));
      } finally {
        await Promise.all(workers.map((worker) => worker.end()));
        await proxy.stop();
      }
    },
  );
});
