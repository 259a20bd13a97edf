import { OnSessionEvent, SessionCreatedEvent } from '@nest-session/core';
import { SESSION_READER, type SessionReader } from '@nest-session/core/internal';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually } from '@nest-session/testing';
import { Injectable } from '@nestjs/common';
import { EventInstance } from '../support/event-instance.fixture.js';
import { Store } from '../support/store.fixture.js';

LeakGuard.install();

const NEVER = { cron: '0 0 0 29 2 *' };

@Injectable()
class Handlers {
  fails = false;

  @OnSessionEvent(SessionCreatedEvent)
  onCreated() {
    if (this.fails) throw new Error('on purpose');
  }
}

describe.each([1, 4])('the reader of the store with %d partitions', (partitions) => {
  let store: Store;
  let instance: EventInstance;
  let reader: SessionReader;

  beforeAll(async () => {
    store = await Store.open({ partitions });
    const redis = {
      url: store.server.url,
      partitions,
      notifications: 'off',
      cleanup: NEVER,
      events: { attempts: 1 },
    } as const;
    instance = await EventInstance.start({ redis, providers: [Handlers] });
    reader = instance.module.get<SessionReader>(SESSION_READER, { strict: false });
  });
  afterAll(async () => {
    await instance.stop();
    await store.close();
  });

  it('knows the group and the namespace, and the work of its instance', () => {
    expect(reader).toMatchObject({ group: 'default', namespace: 'nest:session', notifications: 'off' });
    expect(reader.cleanupAge).toBeGreaterThan(0);
  });

  it('counts the sessions that can end, and tells how long the oldest end is overdue', async () => {
    const { sessions } = await reader.read();
    const ids = await Promise.all(Array.from({ length: 5 }, () => store.create({ a: '1' })));
    expect(await reader.read()).toMatchObject({ sessions: sessions + 5, overdue: 0 });
    await store.runOutLongAgo(ids[0]!);
    expect((await reader.read()).overdue).toBeGreaterThan(60_000);
    await store.scripts.delete(ids[1]!);
    expect((await reader.read()).sessions).toBe(sessions + 4);
  });

  it('counts the buckets that do not fit into one call', async () => {
    const { sessions } = await reader.read();
    const keys = store.partitions.all[0]!;
    const pipeline = store.client.pipeline();
    for (let i = 1; i <= 2100; i++) {
      const minute = `${Date.now() + i * 60_000}`;
      pipeline.zadd(keys.bucketList, minute, minute);
      pipeline.sadd(keys.bucket(minute), 'expires:a', 'expires:b');
    }
    await pipeline.exec();
    expect((await reader.read()).sessions).toBe(sessions + 4200);
  });

  it('counts the dead letters of a group', async () => {
    instance.module.get(Handlers).fails = true;
    await store.create({ a: '1' });
    await eventually(async () => {
      const { groups } = await reader.read();
      expect(groups).toEqual([expect.objectContaining({ name: 'default', deadLetters: 1, pending: 0, lag: 0 })]);
    });
  });
});
