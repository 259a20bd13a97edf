import { Injectable } from '@nestjs/common';
import { EventEmitterModule, OnEvent } from '@nestjs/event-emitter';
import { OnSessionEvent, SessionDeletedEvent } from '@nest-session/core';
import { type SessionDeadLetter, SessionEventGroups } from '@nest-session/redis';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually } from '@nest-session/testing';
import { EventInstance, type EventInstanceOptions } from '../support/event-instance.fixture.js';
import { Store } from '../support/store.fixture.js';

LeakGuard.install();

const SESSIONS = 10_000;
const AT_A_TIME = 500;
const ATTEMPTS = 3;
const HOUR = 3_600_000;

let store: Store;
let instance: EventInstance;
beforeAll(async () => {
  store = await Store.open();
});
afterEach(async () => {
  await instance.stop();
  await store.client.flushall();
});
afterAll(() => store.close());

async function endSession(cart: string): Promise<string> {
  const id = await store.create({ cart: JSON.stringify(cart) });
  await store.scripts.delete(id);
  return id;
}

/** Starts an instance with two handlers, of which one fails for the sessions in `poison`. */
async function start(poison: Set<string>, pace?: EventInstanceOptions['pace']) {
  const reminded: unknown[] = [];
  const audited: string[] = [];
  const mirrored: string[] = [];
  @Injectable()
  class Reminders {
    @OnSessionEvent(SessionDeletedEvent)
    remind({ id, sessionId, session, dataLost }: SessionDeletedEvent) {
      if (poison.has(sessionId)) throw new Error('no mail');
      reminded.push({ id, cart: session.getAttribute('cart'), dataLost });
    }

    @OnSessionEvent(SessionDeletedEvent)
    audit({ id }: SessionDeletedEvent) {
      audited.push(id);
    }

    @OnEvent('session.deleted')
    mirror({ id }: SessionDeletedEvent) {
      mirrored.push(id);
    }
  }
  const redis = { url: store.server.url, events: { attempts: ATTEMPTS } };
  const imports = [EventEmitterModule.forRoot()];
  instance = await EventInstance.start({ redis, pace, imports, providers: [Reminders] });
  return { reminded, audited, mirrored };
}

/** The first dead letter that is not `before`. */
function nextDeadLetter(groups: SessionEventGroups, before?: SessionDeadLetter): Promise<SessionDeadLetter> {
  return eventually(async () => {
    const [letter] = await groups.deadLetters();
    if (!letter || letter.id === before?.id) throw new Error('There is no new dead letter');
    return letter;
  });
}

it('an event that always fails becomes a dead letter with reason and data, and can be replayed long after', async () => {
  const id = await endSession('apple');
  const poison = new Set([id]);
  const { reminded, audited, mirrored } = await start(poison);
  const groups = instance.module.get(SessionEventGroups);
  const { id: letter, event, ...failure } = await nextDeadLetter(groups);
  expect(failure).toMatchObject({
    group: 'default',
    attempts: ATTEMPTS,
    reason: 'Reminders.remind: Error: no mail',
    succeeded: ['Reminders.audit'],
  });
  expect(event).toBeInstanceOf(SessionDeletedEvent);
  expect([event!.id, event!.session.getAttribute('cart')]).toEqual([`deleted-${id}`, 'apple']);
  expect(await store.pending('default')).toBe(0);
  await eventually(() =>
    expect(EventInstance.log.matching(/is a dead letter now, .*: "Reminders\.remind: Error: no mail"/)).toHaveLength(1),
  );

  // As after the retention.
  await store.client.del(store.keys.session(id));
  poison.clear();
  expect(await groups.replay(letter)).toBe('replayed');
  await eventually(() => reminded.length === 1);
  await eventually(async () => (await store.pending('default')) === 0);
  expect(reminded).toEqual([{ id: `deleted-${id}`, cart: 'apple', dataLost: false }]);
  expect(audited).toEqual([`deleted-${id}`]);
  expect(mirrored).toEqual([`deleted-${id}`]);
  expect(await groups.deadLetters()).toEqual([]);
});

it('a replayed event has all its attempts and its data again', async () => {
  const id = await endSession('apple');
  const { audited } = await start(new Set([id]));
  const groups = instance.module.get(SessionEventGroups);
  const first = await nextDeadLetter(groups);
  await store.client.del(store.keys.session(id));
  await groups.replayAll();
  const second = await nextDeadLetter(groups, first);
  expect(second).toMatchObject({ attempts: ATTEMPTS, reason: first.reason, succeeded: ['Reminders.audit'] });
  expect([second.event!.at, second.event!.session.getAttribute('cart')]).toEqual([first.event!.at, 'apple']);
  expect(audited).toEqual([`deleted-${id}`]);
});

it('a retry that hangs leaves capacity for other events', async () => {
  const poison = new Set<string>();
  const seen: string[] = [];
  const hanging: string[] = [];
  let finish!: () => void;
  const finished = new Promise<void>((resolve) => (finish = resolve));
  @Injectable()
  class Reminders {
    @OnSessionEvent(SessionDeletedEvent)
    async remind({ sessionId }: SessionDeletedEvent) {
      const isRetry = seen.includes(sessionId);
      seen.push(sessionId);
      if (!poison.has(sessionId)) return;
      if (!isRetry) throw new Error('no mail');
      hanging.push(sessionId);
      await finished;
    }
  }
  for (let i = 0; i < 8; i++) poison.add(await endSession('poison'));
  const redis = { url: store.server.url, events: { concurrency: 8 } };
  instance = await EventInstance.start({ redis, providers: [Reminders] });
  await eventually(() => hanging.length >= 2);
  const others: string[] = [];
  for (let i = 0; i < 100; i++) others.push(await endSession('pear'));
  await eventually(() => others.every((id) => seen.includes(id)));
  expect(hanging).toHaveLength(2);
  finish();
  await eventually(async () => (await store.pending('default')) === 0);
  expect(hanging).toHaveLength(8);
});

it('an event that always fails does not delay the 10,000 events behind it', async () => {
  /** Milliseconds from the record of the last event until all but the poison were handled. */
  const handleAll = async (poison: Set<string>, pace?: EventInstanceOptions['pace']): Promise<number> => {
    for (let i = 0; i < SESSIONS; i += AT_A_TIME) {
      await Promise.all(Array.from({ length: AT_A_TIME }, () => endSession('pear')));
    }
    const { reminded } = await start(poison, pace);
    const begun = performance.now();
    await eventually(() => reminded.length === SESSIONS, { timeout: 120_000, interval: 5 });
    return performance.now() - begun;
  };
  const alone = await handleAll(new Set());
  await instance.stop();
  await store.client.flushall();
  const poison = new Set([await endSession('poison')]);
  const behind = await handleAll(poison);
  await eventually(async () => (await store.pending('default')) === 0);
  expect(await store.deadLetters()).toHaveLength(1);
  await instance.stop();
  await store.client.flushall();
  // Its retry is not due for an hour: no other event can have waited for it.
  await handleAll(new Set([await endSession('poison')]), { firstBackOff: HOUR, longestBackOff: HOUR });
  await eventually(async () => (await store.pending('default')) === 1);
  expect(await store.client.zcard(store.keys.retries('default'))).toBe(1);
  process.stdout.write(
    `${SESSIONS} events handled in ${Math.round(alone)} ms, behind an event that fails ${ATTEMPTS} times in ` +
      `${Math.round(behind)} ms\n`,
  );
}, 300_000);
