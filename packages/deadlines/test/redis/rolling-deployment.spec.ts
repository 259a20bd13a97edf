import { deadline } from '@nest-session/deadlines';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually, RedisServer } from '@nest-session/testing';
import { Redis } from 'ioredis';
import { DeadlineInstance } from '../support/deadline.instance.js';

LeakGuard.install();

const old = deadline<unknown>('old');
const added = deadline<unknown>('added');

describe.each([1, 4])('partitions: %i,', (partitions) => {
  let server: RedisServer;
  let instances: DeadlineInstance[];
  beforeEach(async () => {
    server = await RedisServer.start();
    instances = [];
  });
  afterEach(async () => {
    await Promise.all(instances.map((each) => each.stop()));
    await server.stop();
  });

  async function start(
    handles: readonly (typeof old)[],
    group = 'default',
    lease: '1s' | '1h' = '1s',
  ): Promise<DeadlineInstance> {
    const redis = { url: server.url, partitions, events: { group, lease, attempts: 1000 } };
    const instance = await DeadlineInstance.start({ redis, handles });
    instances.push(instance);
    return instance;
  }

  async function stop(instance: DeadlineInstance): Promise<void> {
    instances = instances.filter((each) => each !== instance);
    await instance.stop();
  }

  const many = (count: number) =>
    Array.from({ length: count }, (_, i) => ({ key: `${i}`.padStart(3, '0'), in: `${2 * i}ms` as const, data: { i } }));

  /** Everything was handled. */
  async function isDone({ events }: DeadlineInstance): Promise<void> {
    await eventually(async () => {
      for (const group of await events.list()) expect(group).toMatchObject({ lag: 0, pending: 0, retrying: 0 });
    });
    expect(await events.deadLetters()).toEqual([]);
  }

  it('an instance without a handler leaves deadlines to the other one of its group', async () => {
    const before = await start([old]);
    const after = await start([old, added]);
    const all = many(150);
    await before.deadlines.scheduleMany(added, all);
    await after.deadlines.scheduleMany(old, all);
    await eventually(() => expect(after.handled.length + before.handled.length).toBe(2 * all.length));
    await isDone(before);
    expect(before.handled.filter(({ name }) => name === 'added')).toEqual([]);
    const ofAdded = after.handled.filter(({ name }) => name === 'added');
    expect(ofAdded.map(({ key }) => key).toSorted()).toEqual(all.map(({ key }) => key));
    for (const { key, data } of ofAdded) expect(data).toEqual({ i: Number(key) });
    const ofOld = [...before.handled, ...after.handled].filter(({ name }) => name === 'old');
    expect(ofOld.map(({ key }) => key).toSorted()).toEqual(all.map(({ key }) => key));
  });

  it('an instance takes what the others leave to it at once, and not when it looks for what a dead one has left', async () => {
    const before = await start([old], 'default', '1h');
    const after = await start([old, added], 'default', '1h');
    const all = many(50);
    await before.deadlines.scheduleMany(added, all);
    await eventually(() => expect(after.keys).toEqual(all.map(({ key }) => key)));
    await isDone(before);
  });

  it('a name that nobody handles yet waits for an instance that does', async () => {
    const before = await start([old]);
    await before.deadlines.scheduleMany(added, many(20));
    await before.deadlines.schedule(old, 'sentinel', { in: '100ms' });
    await eventually(() => expect(before.keys).toEqual(['sentinel']));
    expect(await before.deadlines.count(added)).toBe(20);
    const after = await start([old, added]);
    await eventually(() => expect(after.keys).toEqual(many(20).map(({ key }) => key)));
    expect(await before.deadlines.count(added)).toBe(0);
    await isDone(after);
  });

  it('a new name is handled again after Redis has come back with the data from before the deployment', async () => {
    await stop(await start([old]));
    const client = new Redis(server.url).on('error', () => undefined);
    try {
      await client.save();
      const after = await start([old, added]);
      await after.deadlines.schedule(added, 'before', { in: '1ms' });
      await eventually(() => expect(after.keys).toEqual(['before']));
      await server.kill();
      await server.restart();
      await eventually(() => after.deadlines.schedule(added, 'behind', { in: '1ms' }));
      await eventually(async () => {
        // Its timer may have looked before the group wanted the name again. The job of the minute looks once more.
        await after.sweep();
        expect(after.keys).toEqual(['before', 'behind']);
      });
    } finally {
      client.disconnect();
    }
  });

  it('what has come stays for the return of its handler, however often others start meanwhile', async () => {
    let others = await start([old]);
    const handler = await start([old, added]);
    handler.failures = Infinity;
    const all = many(20);
    await others.deadlines.scheduleMany(added, all);
    await eventually(async () => expect(await others.deadlines.count(added)).toBe(0));
    await stop(handler);
    for (let i = 0; i < 3; i += 1) {
      const next = await start([old]);
      await stop(others);
      others = next;
      await others.deadlines.schedule(old, `sentinel${i}`, { in: '100ms' });
      await eventually(() => expect(others.keys).toEqual([`sentinel${i}`]));
    }
    await stop(others);
    const back = await start([old, added]);
    await eventually(() => expect(back.keys).toEqual(all.map(({ key }) => key)));
    for (const { key, data } of back.handled) expect(data).toEqual({ i: Number(key) });
    await isDone(back);
  });

  it('a name that nobody handles waits whatever it is, also beside a group that was created for later', async () => {
    const instance = await start([old]);
    const named = deadline<unknown>('deadline');
    expect(await instance.events.create('later')).toBe(true);
    await instance.deadlines.schedule(named, 'early', { in: '1ms' });
    await instance.deadlines.schedule(old, 'sentinel', { in: '10ms' });
    await eventually(() => expect(instance.keys).toEqual(['sentinel']));
    expect(await instance.deadlines.get(named, 'early')).toBeDefined();
  });

  it('a name waits again after its handler has gone, also where all others started before', async () => {
    const before = await start([old, added]);
    const after = await start([old]);
    await eventually(async () => {
      await before.deadlines.scheduleMany(old, many(10));
      expect(after.handled.length).toBeGreaterThan(10);
    });
    await stop(before);
    let round = 0;
    await eventually(async () => {
      // In each partition.
      const all = many(50).map(({ key }) => ({ key: `${round}.${key}`, data: {} }));
      round++;
      await after.deadlines.scheduleMany(
        added,
        all.map((each) => ({ ...each, in: '1ms' as const })),
      );
      await after.deadlines.scheduleMany(
        old,
        all.map((each) => ({ ...each, in: '10ms' as const })),
      );
      await eventually(() => expect(after.keys).toEqual(expect.arrayContaining(all.map(({ key }) => key))));
      for (const { key } of all) expect(await after.deadlines.get(added, key)).toBeDefined();
    });
  });

  it('two groups handle each deadline once, also where only one of them wants it', async () => {
    const mail = [await start([old], 'mail'), await start([old], 'mail')];
    const stock = [await start([old, added], 'stock'), await start([old, added], 'stock')];
    const all = many(100);
    await mail[0]!.deadlines.scheduleMany(old, all);
    await mail[0]!.deadlines.scheduleMany(added, all);
    const count = (group: DeadlineInstance[]) => group.reduce((sum, { handled }) => sum + handled.length, 0);
    await eventually(() => expect([count(mail), count(stock)]).toEqual([100, 200]));
    await isDone(mail[0]!);
    for (const group of [mail, stock]) {
      const ofOld = group.flatMap(({ handled }) => handled).filter(({ name }) => name === 'old');
      expect(ofOld.map(({ key }) => key).toSorted()).toEqual(all.map(({ key }) => key));
    }
    const idsOf = (group: DeadlineInstance[]) => group.flatMap(({ handled }) => handled.map(({ id }) => id));
    expect(new Set(idsOf(stock))).toEqual(new Set([...idsOf(mail), ...idsOf(stock)]));
  });
});
