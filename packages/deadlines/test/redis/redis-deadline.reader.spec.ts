import { Test, type TestingModule } from '@nestjs/testing';
import { DEADLINE_READER, type DeadlineReading, type StoreReader } from '@nest-session/core/internal';
import { deadline, DeadlineModule, Deadlines, OnDeadline } from '@nest-session/deadlines';
import { RedisDeadlineModule } from '@nest-session/deadlines/redis';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually, RedisServer } from '@nest-session/testing';
import { Injectable } from '@nestjs/common';
import { Redis } from 'ioredis';

LeakGuard.install();

const unhandled = deadline('nobody.handles');
const failing = deadline('always.fails');

@Injectable()
class Failing {
  @OnDeadline(failing)
  fail() {
    throw new Error('on purpose');
  }
}

describe.each([1, 4])('the reader of deadlines with %d partitions', (partitions) => {
  let server: RedisServer;
  let module: TestingModule;
  let reader: StoreReader<DeadlineReading>;

  beforeAll(async () => {
    server = await RedisServer.start();
    const options = {
      url: server.url,
      namespace: 'shop:deadlines',
      partitions,
      events: { attempts: 1, group: 'billing' },
    };
    module = await Test.createTestingModule({
      imports: [DeadlineModule, RedisDeadlineModule.forRoot(options)],
      providers: [Failing],
    }).compile();
    await module.init();
    reader = module.get<StoreReader<DeadlineReading>>(DEADLINE_READER, { strict: false });
  });
  afterAll(async () => {
    await module.close();
    await server.stop();
  });

  it('knows the group and the namespace, and the work of its instance', () => {
    expect(reader).toMatchObject({ group: 'billing', namespace: 'shop:deadlines' });
    expect(reader.cleanupAge).toBeGreaterThan(0);
  });

  it('counts what waits by name, and tells for how long the first one has been due', async () => {
    const deadlines = module.get(Deadlines);
    expect((await reader.read()).waiting).toEqual([]);
    for (let i = 0; i < 9; i++) await deadlines.schedule(unhandled, `${i}`, { in: '1h' });
    await deadlines.schedule(failing, 'later', { in: '1h' });
    expect((await reader.read()).waiting).toEqual([
      { name: 'always.fails', count: 1, overdue: 0 },
      { name: 'nobody.handles', count: 9, overdue: 0 },
    ]);
    await deadlines.reschedule(unhandled, '3', { in: 0 });
    await eventually(async () => expect((await reader.read()).waiting[1]!.overdue).toBeGreaterThanOrEqual(5));
    await deadlines.cancel(failing, 'later');
    expect((await reader.read()).waiting).toEqual([expect.objectContaining({ name: 'nobody.handles', count: 9 })]);
  });

  it('counts the dead letters of a group', async () => {
    await module.get(Deadlines).schedule(failing, 'now', { in: 0 });
    await eventually(async () => {
      const { groups } = await reader.read();
      expect(groups).toEqual([expect.objectContaining({ name: 'billing', deadLetters: 1, pending: 0, lag: 0 })]);
    });
  });

  it('counts a stray key in the place of the deadlines of a name as none', async () => {
    const client = new Redis(server.url);
    try {
      const due = (await client.keys('*:due:nobody.handles'))[0]!;
      const { waiting } = await reader.read();
      const here = await client.zcard(due);
      await client.del(due);
      await client.set(due, 'stray');
      const left = (await reader.read()).waiting.find(({ name }) => name === 'nobody.handles')?.count ?? 0;
      expect(left).toBe(waiting[0]!.count - here);
    } finally {
      client.disconnect();
    }
  });
});
