import { setTimeout as pause } from 'node:timers/promises';
import { deadline } from '@nest-session/deadlines';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually, RedisServer } from '@nest-session/testing';
import { DeadlineInstance } from '../support/deadline.instance.js';
import { print } from '../../../session-redis/test/support/figures.js';

LeakGuard.install();

const visit = deadline<string>('visit');

/** What a client was told of its key. `unknown`: the call failed, and may have taken effect. */
interface Told {
  readonly key: string;
  readonly scheduled: string;
  readonly cancelled: string | undefined;
}

const FAULTS: Record<string, (server: RedisServer) => Promise<void>> = {
  'killed and started again': async (server) => {
    await server.kill();
    await pause(500);
    await server.restart();
  },
  'frozen for three seconds': async (server) => {
    server.freeze();
    await pause(3000);
    server.thaw();
  },
};

describe.each([1, 4])('partitions: %i,', (partitions) => {
  let server: RedisServer;
  let instances: DeadlineInstance[];
  beforeEach(async () => {
    server = await RedisServer.start({ args: ['--appendonly', 'yes', '--appendfsync', 'always'] });
    const redis = { url: server.url, partitions, commandTimeout: '1s', events: { lease: '2s' } } as const;
    instances = [];
    for (let i = 0; i < 3; i += 1) instances.push(await DeadlineInstance.start({ redis, handles: [visit] }));
  });
  afterEach(async () => {
    for (const each of instances) await each.stop();
    await server.stop();
  });

  /** Schedules key after key, and cancels some of them, until it is told to end. */
  async function visits(client: number, isOver: () => boolean): Promise<Told[]> {
    const { deadlines } = instances[client % instances.length]!;
    const told: Told[] = [];
    for (let i = 0; !isOver(); i += 1) {
      const key = `${client}.${i}`;
      const time = `${(i * 37) % 1500}ms` as const;
      const scheduled = await deadlines.schedule(visit, key, { in: time, data: key }).catch(() => 'unknown');
      await pause(5);
      const cancelled = i % 3 === 0 ? await deadlines.cancel(visit, key).catch(() => 'unknown') : undefined;
      told.push({ key, scheduled, cancelled });
    }
    return told;
  }

  it.each(Object.keys(FAULTS))('nothing is lost, and answers stay right, when Redis is %s', async (fault) => {
    let isOver = false;
    const clients = Promise.all(Array.from({ length: 12 }, (_, client) => visits(client, () => isOver)));
    for (let i = 0; i < 3; i += 1) {
      await pause(1500);
      await FAULTS[fault]!(server);
    }
    await pause(1500);
    isOver = true;
    const told = (await clients).flat();
    const [{ deadlines, events }] = instances as [DeadlineInstance];
    await eventually(
      async () => {
        expect(await deadlines.count(visit)).toBe(0);
        const [group] = await events.list();
        expect(group).toMatchObject({ lag: 0, pending: 0, retrying: 0 });
      },
      { timeout: 60_000 },
    );
    const handled = instances.flatMap((each) => each.handled);
    const ids = new Map<string, Set<string>>();
    for (const { key, id, data, at, dueAt } of handled) {
      expect([data, at >= dueAt]).toEqual([key, true]);
      ids.set(key, (ids.get(key) ?? new Set()).add(id));
    }
    const wrong = told.filter((each) => !expected(each).includes(ids.get(each.key)?.size ?? 0));
    expect(wrong).toEqual([]);
    expect(await events.deadLetters()).toEqual([]);
    const unknown = told.filter(({ scheduled, cancelled }) => [scheduled, cancelled].includes('unknown'));
    expect(unknown.length).toBeGreaterThan(0);
    print(`${told.length} deadlines, ${unknown.length} with an unknown answer, handled ${handled.length} times`);
  });
});

/** How many deadlines of a key may have been handled. */
function expected({ scheduled, cancelled }: Told): readonly number[] {
  if (cancelled === 'cancelled') return scheduled === 'unknown' ? [0, 1] : [0];
  if (scheduled === 'unknown' || cancelled === 'unknown') return [0, 1];
  return cancelled === 'none' ? [] : [1];
}
