import { Injectable } from '@nestjs/common';
import { OnSessionEvent, SessionDeletedEvent, SessionEvent, SessionIdChangedEvent } from '@nest-session/core';
import {
  type RedisSessionModuleOptions,
  RedisSessionRepository,
  SessionEventGroups,
  SessionExpirationSweeper,
} from '@nest-session/redis';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually, type HttpAgent, SessionEventRecorder } from '@nest-session/testing';
import { EventTrimmer } from '../../../redis-events/src/delivery/event.trimmer.js';
import { App } from '../support/app.fixture.js';
import { EventInstance } from '../support/event-instance.fixture.js';
import { GRACE, MINUTE, type SteppableStore, Store } from '../support/store.fixture.js';
import { WorkerProcess } from '../support/worker.process.js';
import { trimOnce } from '../support/trim-once.js';

LeakGuard.install();

const PARTITIONS = 4;
/** Enough for each partition to have some. */
const SESSIONS = 60;

let store: SteppableStore;
let redis: RedisSessionModuleOptions & { url: string };
beforeEach(async () => {
  store = await Store.openSteppable({ partitions: PARTITIONS });
  // The test runs the job.
  const cleanup = { cron: '0 0 0 29 2 *' };
  redis = { url: store.server.url, partitions: PARTITIONS, notifications: 'off', cleanup, commandTimeout: '1m' };
});
afterEach(() => store.close());

const times = <T>(count: number, make: (i: number) => Promise<T>) =>
  Promise.all(Array.from({ length: count }, (_, i) => make(i)));
const idOf = async (agent: HttpAgent) => ((await agent.get('/read')).json() as { id: string }).id;

const TYPES = ['created', 'deleted', 'expired', 'id-changed', 'signed-in'] as const;

/** Every key except the counters. */
async function leftInRedis(): Promise<string[]> {
  const keys = await store.client.keys('*');
  const documented = store.partitions.all.flatMap((keys) => {
    const { events, trimmed, handlers, wanted, cleanup } = keys;
    return [events, trimmed, handlers, wanted, cleanup, ...TYPES.map((type) => keys.broadcastWanted(type))];
  });
  return keys.filter((key) => ![...documented, store.partitions.meta, store.partitions.instances].includes(key));
}

async function cleanUp(instance: { get: App['nest']['get'] }): Promise<void> {
  await instance.get(SessionExpirationSweeper, { strict: false }).runOnce({ ahead: MINUTE });
  await trimOnce(instance.get(EventTrimmer, { strict: false }));
}

it('requests, logins, look-ups and ends work in all partitions, and every instance is notified', async () => {
  const heard = new SessionEventRecorder();
  @Injectable()
  class Everywhere {
    @OnSessionEvent(SessionEvent, { broadcast: true })
    hear(event: SessionEvent) {
      heard.record(event);
    }
  }
  const app = await App.start({ redis, providers: [Everywhere] });
  const another = await App.start({ redis, adapter: 'fastify' });
  try {
    const agents = Array.from({ length: SESSIONS }, () => app.agent());
    await Promise.all(agents.map((agent) => agent.post('/set/cart', { value: ['apple'] })));
    const firstIds = await Promise.all(agents.map(idOf));
    expect(new Set(firstIds.map((id) => store.keysOf(id)))).toEqual(new Set(store.partitions.all));
    await Promise.all(agents.flatMap((agent) => [agent.post('/push/a'), agent.post('/push/b'), agent.post('/count')]));
    const planted = agents.map((agent) => agent.cookie('SESSION')!);
    await Promise.all(agents.map((agent) => agent.post('/login/ann')));
    const ids = await Promise.all(agents.map(idOf));
    expect(ids.map((id) => store.keysOf(id))).toEqual(firstIds.map((id) => store.keysOf(id)));
    for (const [i, agent] of agents.entries()) {
      const { attributes } = (await agent.get('/read')).json() as { attributes: { list: string[] } };
      expect(attributes).toMatchObject({ cart: ['apple'], count: 1, user: 'ann' });
      expect(attributes.list.toSorted()).toEqual(['a', 'b']);
      const old = await another.agent().get('/read', { headers: { cookie: `SESSION=${planted[i]}` } });
      expect(old.json()).toMatchObject({ isNew: true, attributes: {} });
    }

    const repository = another.nest.get(RedisSessionRepository, { strict: false });
    const found = await repository.findByPrincipalName('ann');
    expect(found.map(({ id }) => id).toSorted()).toEqual(ids.toSorted());
    await agents[0]!.post('/logout');
    for (const id of ids) expect(await repository.deleteById(id)).toBe(id !== ids[0]);
    expect(await repository.findByPrincipalName('ann')).toEqual([]);

    for (const [i, id] of ids.entries()) {
      const of = (recorder: SessionEventRecorder, type: SessionEvent['type']) => recorder.count(type, id);
      const handled = (type: SessionEvent['type']) => of(app.events, type) + of(another.events, type);
      await eventually(() => handled('id-changed') + handled('deleted') + heard.all(id).length === 4);
      expect([handled('id-changed'), handled('deleted')]).toEqual([1, 1]);
      expect(heard.all(id).map(({ type }) => type)).toEqual(['id-changed', 'deleted']);
      const [changed] = heard.all(id) as [SessionIdChangedEvent];
      expect(changed.previousSessionId).toBe(firstIds[i]);
    }

    // The leases end with the step: an event that is being handled would be claimed by another instance.
    await eventually(async () => expect(await store.pending('default')).toBe(0));
    await store.server.stepClock(GRACE + MINUTE);
    await eventually(async () => {
      await cleanUp(app.nest);
      expect(await leftInRedis()).toEqual([]);
      for (const { events } of store.partitions.all) expect(await store.client.xlen(events)).toBe(0);
    });
  } finally {
    await app.stop();
    await another.stop();
  }
});

it('events of all partitions are retried, made dead letters, replayed and claimed, and leave no key', async () => {
  let isRepaired = false;
  const handled: string[] = [];
  const failed = new Set<string>();
  @Injectable()
  class Reminders {
    @OnSessionEvent(SessionDeletedEvent)
    remind({ sessionId, session }: SessionDeletedEvent) {
      const kind = session.getAttribute<string>('kind');
      const isFirst = !failed.has(sessionId);
      failed.add(sessionId);
      if (!isRepaired && (kind === 'poison' || (kind === 'flaky' && isFirst))) throw new Error('no mail');
      handled.push(sessionId);
    }
  }
  const endSessions = (kind: string) =>
    times(SESSIONS, async () => {
      const id = await store.create({ kind: JSON.stringify(kind), cart: '["apple"]' });
      await store.scripts.delete(id);
      return id;
    });
  const [fine, flaky, poison] = [await endSessions('fine'), await endSessions('flaky'), await endSessions('poison')];
  const events = { group: 'mails', attempts: 3 };
  const instance = await EventInstance.start({ redis: { ...redis, events }, providers: [Reminders] });
  const workers: WorkerProcess[] = [];
  try {
    const groups = instance.module.get(SessionEventGroups);
    await eventually(async () => expect(await groups.deadLetters()).toHaveLength(SESSIONS));
    await eventually(() => expect(handled).toHaveLength(2 * SESSIONS));
    expect(new Set(handled)).toEqual(new Set([...fine, ...flaky]));
    const letters = await groups.deadLetters();
    expect(new Set(letters.map(({ event }) => event?.sessionId))).toEqual(new Set(poison));
    isRepaired = true;
    expect(await groups.replayAll()).toBe(SESSIONS);
    await eventually(() => expect(new Set(handled)).toEqual(new Set([...fine, ...flaky, ...poison])));
    expect(handled).toHaveLength(3 * SESSIONS);
    expect(await groups.deadLetters()).toEqual([]);

    const startWorker = async (environment = {}) => {
      const worker = await WorkerProcess.start({
        REDIS_URL: redis.url,
        PARTITIONS: String(PARTITIONS),
        NOTIFICATIONS: 'off',
        ...environment,
      });
      workers.push(worker);
      return worker;
    };
    const doomed = await startWorker({ HANG: '1' });
    await doomed.saysLine(/^handling deleted-/);
    const next = await startWorker();
    await doomed.end('SIGKILL');
    for (const id of [...fine, ...flaky, ...poison]) await next.saysLine(new RegExp(`^handled deleted-${id}$`));
    await eventually(async () => {
      for (const { pending, lag } of await groups.list()) expect([pending, lag]).toEqual([0, 0]);
    });

    await store.server.stepClock(GRACE + MINUTE);
    // The turn may be that of a worker.
    await eventually(async () => {
      await cleanUp(instance.module);
      expect((await leftInRedis()).filter((key) => !key.endsWith(':dead'))).toEqual([]);
    });
    for (const { events: stream, deadLetters } of store.partitions.all) {
      expect([await store.client.xlen(stream), await store.client.xlen(deadLetters)]).toEqual([0, 0]);
    }
  } finally {
    await instance.stop();
    await Promise.all(workers.map((worker) => worker.end()));
  }
});
