import assert from 'node:assert/strict';
import { Injectable } from '@nestjs/common';
import { type DeadlineEvent, OnDeadline } from '@nest-session/deadlines';
import { Gate } from '../gate/gate.js';
import type { DeadlineCheckGroup } from './deadline-check.group.js';
import { type DeadlineApplication, keysOfEvents } from './deadline-trial.js';
import { Announcements, visit, Visits } from './visits.js';

/** Takes as long as a test wants. */
@Injectable()
class SlowVisits {
  readonly gate = new Gate();
  readonly events: DeadlineEvent[] = [];

  @OnDeadline(visit)
  async record(event: DeadlineEvent<typeof visit>) {
    await this.gate.pass();
    this.events.push(event);
  }
}

export const GROUP: DeadlineCheckGroup = {
  name: 'the group',
  checks: {
    'is listed with nothing to do, and with its instance': async (t) => {
      const app = await t.start(Visits);
      const group = await t.untilFirst(() => app.events.list());
      await t.until(async () => assert.equal((await app.events.list())[0]?.consumers.length, 1));
      assert.ok(group.name.length > 0);
      const none = { lag: 0, oldestUnread: undefined, pending: 0, retrying: 0, dropped: 0, lostDeadLetters: 0 };
      assert.deepEqual(group, { ...group, ...none });
      assert.equal((await app.events.list()).length, 1);
    },

    'counts what its handlers have not finished': async (t) => {
      const app = await t.start(SlowVisits);
      const { gate, events } = app.get(SlowVisits);
      try {
        await app.deadlines.schedule(visit, 'a', { in: 0 });
        await gate.reached();
        assert.equal((await app.events.list())[0]?.pending, 1);
        assert.equal(await app.deadlines.cancel(visit, 'a'), 'fired');
      } finally {
        gate.open();
      }
      await t.until(() => assert.equal(events.length, 1));
      await t.until(async () => assert.equal((await app.events.list())[0]?.pending, 0));
    },

    'cannot be removed while its instance runs, and another does not exist': async (t) => {
      const app = await t.start(Visits);
      const { name } = await t.untilFirst(() => app.events.list());
      assert.equal(await app.events.remove(name), 'live');
      assert.equal(await app.events.remove('unknown'), 'unknown');
      assert.equal((await app.events.list()).length, 1);
    },

    'is not created again, and has a name': async (t) => {
      const app = await t.start(Visits);
      const { name } = await t.untilFirst(() => app.events.list());
      assert.equal(await app.events.create(name), false);
      await assert.rejects(app.events.create(' '), RangeError);
    },
  },
};

export const INSTANCES: DeadlineCheckGroup = {
  name: 'instances',
  needs: 'instances',
  checks: {
    'share what waits': async (t) => {
      const [one, other] = [await t.start(), await t.start()];
      await one.deadlines.schedule(visit, 'a', { in: '1h', data: 1 });
      assert.equal((await other.deadlines.get(visit, 'a'))?.data, 1);
      assert.equal(await other.deadlines.schedule(visit, 'a', { in: '1h', data: 2 }), 'replaced');
      assert.equal(await one.deadlines.cancel(visit, 'a'), 'cancelled');
      assert.equal(await other.deadlines.cancel(visit, 'a'), 'none');
    },

    'handle each deadline once, on one of them': async (t) => {
      const apps = [await t.start(Visits), await t.start(Visits)];
      const all = Array.from({ length: 60 }, (_, i) => ({ key: `${i}`, in: `${i * 5}ms` }));
      await apps[0]!.deadlines.scheduleMany(visit, all);
      const handled = () => apps.flatMap((app) => app.get(Visits).events);
      await t.until(() => assert.ok(handled().length >= all.length));
      await apps[1]!.deadlines.schedule(visit, 'sentinel', { in: '100ms' });
      await t.until(() => assert.ok(keysOfEvents(handled()).includes('sentinel')));
      assert.deepEqual(keysOfEvents(handled()), [...all.map(({ key }) => key), 'sentinel'].toSorted());
    },

    'handle what one without handlers scheduled, and fires for the others': async (t) => {
      const [scheduler, handler] = [await t.start(), await t.start(Visits)];
      await scheduler.deadlines.schedule(visit, 'a', { in: '60ms', data: 1 });
      await t.until(() => assert.deepEqual(keysOfEvents(handler.get(Visits).events), ['a']));
    },

    'hear of broadcasts, each of them': async (t) => {
      const apps = [await t.start(Announcements), await t.start(Announcements), await t.start(Visits)];
      // An instance receives what comes due while it runs: it may have to get ready first.
      await eachHears(apps.slice(0, 2), async (key) => {
        await apps[2]!.deadlines.schedule(visit, key, { in: 0, data: key });
        await t.pass(100);
      });
      for (const app of apps.slice(0, 2))
        for (const { key, data } of app.get(Announcements).events) assert.equal(data, key);
      const keys = keysOfEvents(apps[0]!.get(Announcements).events);
      assert.equal(new Set(keys).size, keys.length);
    },

    'find what came due while none ran, with its data': async (t) => {
      const first = await t.start(Visits);
      await first.deadlines.schedule(visit, 'a', { in: '100ms', data: { n: 1 } });
      await first.deadlines.schedule(visit, 'b', { in: '1h', data: { n: 2 } });
      await first.close();
      await t.pass(200);
      const second = await t.start(Visits);
      await t.until(() => assert.deepEqual(keysOfEvents(second.get(Visits).events), ['a']));
      const [event] = second.get(Visits).events;
      assert.deepEqual(event?.data, { n: 1 });
      assert.ok(event.at >= event.dueAt, `${event.late}`);
      assert.deepEqual(first.get(Visits).events, []);
      assert.deepEqual((await second.deadlines.get(visit, 'b'))?.data, { n: 2 });
    },

    'leave a kind without handlers to one that comes later': async (t) => {
      const first = await t.start();
      await first.deadlines.schedule(visit, 'a', { in: 0, data: 1 });
      await t.pass(300);
      assert.equal(await first.deadlines.count(visit), 1);
      const second = await t.start(Visits);
      await t.until(() => assert.deepEqual(keysOfEvents(second.get(Visits).events), ['a']));
      const [event] = second.get(Visits).events;
      assert.equal(event?.data, 1);
      assert.ok(event.late >= 300, `${event.late}`);
      assert.equal(await first.deadlines.count(visit), 0);
    },

    'let a handler finish before its application is closed': async (t) => {
      const app = await t.start(SlowVisits);
      const { gate, events } = app.get(SlowVisits);
      await app.deadlines.schedule(visit, 'a', { in: 0 });
      await gate.reached();
      const closed = app.close();
      setTimeout(() => gate.open(), 50);
      await closed;
      assert.deepEqual(keysOfEvents(events), ['a']);
      const next = await t.start(Visits);
      await next.deadlines.schedule(visit, 'sentinel', { in: '100ms' });
      await t.until(() => assert.ok(keysOfEvents(next.get(Visits).events).includes('sentinel')));
      assert.deepEqual(keysOfEvents(next.get(Visits).events), ['sentinel']);
    },
  },
};

export const GROUPS: DeadlineCheckGroup = {
  name: 'groups',
  needs: 'groups',
  checks: {
    'hear each of a deadline, with the same id and data': async (t) => {
      const apps = [
        await t.startWith({ providers: [Visits], group: 'mail' }),
        await t.startWith({ providers: [Visits], group: 'stock' }),
      ];
      const [mail, stock] = apps.map((app) => app.get(Visits).events);
      await t.until(async () => assert.equal((await apps[0]!.events.list()).length, 2));
      await apps[0]!.deadlines.schedule(visit, 'a', { in: '60ms', data: 1 });
      await t.until(() => assert.deepEqual([keysOfEvents(mail!), keysOfEvents(stock!)], [['a'], ['a']]));
      assert.equal(mail![0]!.id, stock![0]!.id);
      assert.deepEqual([mail![0]!.data, stock![0]!.data], [1, 1]);
      assert.deepEqual(
        (await apps[0]!.events.list()).map(({ name }) => name),
        ['mail', 'stock'],
      );
    },

    'keep what comes due for instances that start later, once they are created': async (t) => {
      const mail = await t.startWith({ providers: [Visits], group: 'mail' });
      assert.equal(await mail.events.create('stock'), true);
      assert.equal(await mail.events.create('stock'), false);
      await mail.deadlines.schedule(visit, 'a', { in: 0, data: 1 });
      await t.until(() => assert.equal(mail.get(Visits).events.length, 1));
      const waiting = (await mail.events.list()).find(({ name }) => name === 'stock');
      assert.equal(waiting?.lag, 1);
      const stock = await t.startWith({ providers: [Visits], group: 'stock' });
      await t.until(() => assert.deepEqual(keysOfEvents(stock.get(Visits).events), ['a']));
      assert.equal(stock.get(Visits).events[0]?.data, 1);
    },

    'are removed when no instance of theirs runs': async (t) => {
      const app = await t.startWith({ providers: [Visits], group: 'mail' });
      await app.events.create('old');
      assert.equal(await app.events.remove('old'), 'removed');
      assert.equal(await app.events.remove('old'), 'unknown');
      assert.deepEqual(
        (await app.events.list()).map(({ name }) => name),
        ['mail'],
      );
    },
  },
};

/** Announces keys until each of these applications has heard of one. */
async function eachHears(apps: readonly DeadlineApplication[], announce: (key: string) => Promise<void>) {
  for (let turn = 0; turn < 100; turn += 1) {
    if (apps.every((app) => app.get(Announcements).events.length > 0)) return;
    await announce(`${turn}`);
  }
  assert.fail('Not every instance heard of a broadcast');
}
