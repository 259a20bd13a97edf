import assert from 'node:assert/strict';
import { Inject, Injectable } from '@nestjs/common';
import { type DeadlineEvent, Deadlines, OnDeadline, type ScheduledDeadline } from '@nest-session/deadlines';
import type { DeadlineCheckGroup } from './deadline-check.group.js';
import { keysOfEvents } from './deadline-trial.js';
import { Announcements, call, unhandled, visit, Visits } from './visits.js';

/** Schedules the next one of the same key. */
@Injectable()
class Rounds {
  readonly ids: string[] = [];
  readonly answers: string[] = [];

  constructor(@Inject(Deadlines) private readonly deadlines: Deadlines) {}

  @OnDeadline(visit)
  async next({ id, key }: DeadlineEvent<typeof visit>) {
    this.ids.push(id);
    if (this.ids.length < 3) this.answers.push(await this.deadlines.schedule(visit, key, { in: '20ms' }));
  }
}

export const FIRING: DeadlineCheckGroup = {
  name: 'firing',
  checks: {
    'tells the handler all about the deadline': async (t) => {
      const { deadlines, visits } = await t.visited();
      let waiting: ScheduledDeadline<unknown> | undefined;
      // A slow machine may look only after it has fired.
      for (let delay = 60; !waiting; delay *= 2) {
        await deadlines.schedule(visit, 'a', { in: `${delay}ms`, data: { n: 1 } });
        waiting = await deadlines.get(visit, 'a');
      }
      const { id: awaited } = waiting;
      const event = await t.untilFirst(() => visits.events.filter(({ id }) => id === awaited));
      const { id, name, key, data, dueAt, attempt, at, late } = event;
      assert.deepEqual([id, key, data, dueAt], [waiting.id, waiting.key, waiting.data, waiting.dueAt]);
      assert.deepEqual([name, attempt], [visit.name, 1]);
      assert.ok(at >= dueAt, `${at - dueAt}`);
      assert.equal(late, at - dueAt);
    },

    'never comes before its time': async (t) => {
      const { deadlines, visits } = await t.visited();
      const times = [0, 40, 90, 140, 190, 240, 290].map((ms) => ({ key: `${ms}`, in: `${ms}ms` }));
      await deadlines.scheduleMany(visit, times);
      for (let past = 0; past < 400; past += 25) {
        const came = visits.events.map(({ dueAt }) => dueAt);
        assert.ok(Math.max(0, ...came) <= t.now + 1, `${came.join()} at ${t.now}`);
        await t.pass(25);
      }
      await t.until(() => assert.equal(visits.events.length, times.length));
      for (const { at, dueAt } of visits.events) assert.ok(at >= dueAt, `${at - dueAt}`);
    },

    'comes once, and does not wait any more': async (t) => {
      const { deadlines, visits } = await t.visited();
      await deadlines.schedule(visit, 'a', { in: 0 });
      await t.until(() => assert.equal(visits.events.length, 1));
      assert.equal(await deadlines.get(visit, 'a'), undefined);
      assert.deepEqual([await deadlines.count(visit), await deadlines.list(visit)], [0, []]);
      await deadlines.schedule(visit, 'sentinel', { in: '100ms' });
      await t.until(() => assert.ok(visits.events.length > 1));
      assert.deepEqual(keysOfEvents(visits.events), ['a', 'sentinel']);
    },

    'calls every handler of the kind, and a method of two kinds for both': async (t) => {
      @Injectable()
      class Others extends Visits {}
      const app = await t.start(Visits, Others);
      await app.deadlines.schedule(visit, 'a', { in: 0, data: 1 });
      await app.deadlines.schedule(call, 'b', { in: 0 });
      for (const provider of [Visits, Others])
        await t.until(() => assert.deepEqual(keysOfEvents(app.get(provider).events), ['a', 'b']));
    },

    'brings many of one time, each once': async (t) => {
      const { deadlines, visits } = await t.visited();
      const at = t.now + 60;
      const all = Array.from({ length: 250 }, (_, i) => ({ key: `${i}`, at, data: i }));
      await deadlines.scheduleMany(visit, all);
      await t.until(() => assert.ok(visits.events.length >= all.length));
      assert.equal(visits.events.length, all.length);
      assert.equal(new Set(keysOfEvents(visits.events)).size, all.length);
      for (const { key, data } of visits.events) assert.equal(data, Number(key));
    },

    'lets those wait of a kind that has no handler here': async (t) => {
      const { deadlines, visits } = await t.visited();
      await deadlines.schedule(unhandled, 'a', { in: 0, data: 1 });
      await deadlines.schedule(visit, 'sentinel', { in: '100ms' });
      await t.until(() => assert.equal(visits.events.length, 1));
      assert.equal(await deadlines.count(unhandled), 1);
      assert.equal((await deadlines.get(unhandled, 'a'))?.data, 1);
    },

    'lets a handler schedule the next one under the same key': async (t) => {
      const app = await t.start(Rounds);
      await app.deadlines.schedule(visit, 'a', { in: 0 });
      await t.until(() => assert.equal(app.get(Rounds).ids.length, 3));
      assert.deepEqual(app.get(Rounds).answers, ['scheduled', 'scheduled']);
      assert.equal(new Set(app.get(Rounds).ids).size, 3);
    },
  },
};

/** Fails each time. */
@Injectable()
class FailingAnnouncements {
  calls = 0;

  @OnDeadline(visit, { broadcast: true })
  async announce() {
    this.calls += 1;
    throw new Error('Nobody listens');
  }
}

export const BROADCASTS: DeadlineCheckGroup = {
  name: 'broadcasts',
  checks: {
    'calls broadcast handlers beside those of the group': async (t) => {
      const app = await t.start(Announcements, Visits);
      await app.deadlines.schedule(visit, 'a', { in: '60ms', data: { n: 1 } });
      await t.until(() => assert.equal(app.get(Visits).events.length, 1));
      await t.until(() => assert.equal(app.get(Announcements).events.length, 1));
      const [own] = app.get(Visits).events;
      const [event] = app.get(Announcements).events;
      assert.deepEqual([event?.id, event?.key, event?.data, event?.dueAt], [own?.id, 'a', { n: 1 }, own?.dueAt]);
    },

    'lets a deadline come that has a broadcast handler only': async (t) => {
      const app = await t.start(Announcements);
      await app.deadlines.schedule(visit, 'a', { in: '60ms', data: 1 });
      await t.until(() => assert.deepEqual(keysOfEvents(app.get(Announcements).events), ['a']));
      assert.equal(await app.deadlines.count(visit), 0);
    },

    'does not call a broadcast handler again that failed, and no other because of it': async (t) => {
      const app = await t.start(FailingAnnouncements, Announcements, Visits);
      await app.deadlines.schedule(visit, 'a', { in: 0 });
      await t.until(() => assert.equal(app.get(FailingAnnouncements).calls, 1));
      let passes = 0;
      await t.untilRetried(() => (passes += 1) > 2);
      assert.equal(app.get(FailingAnnouncements).calls, 1);
      assert.equal(app.get(Announcements).events.length, 1);
      assert.equal(app.get(Visits).events.length, 1);
      assert.deepEqual(await app.events.deadLetters(), []);
    },
  },
};
