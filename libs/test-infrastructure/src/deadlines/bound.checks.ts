import assert from 'node:assert/strict';
import { Injectable } from '@nestjs/common';
import { OnSecurityEvent, type SecurityEvent } from '@nest-session/core';
import { type DeadlineBound, DeadlineBoundError } from '@nest-session/deadlines';
import { eventually } from '@nest-session/testing';
import type { DeadlineCheckGroup } from './deadline-check.group.js';
import { call, visit, Visits } from './visits.js';

@Injectable()
class Alarms {
  readonly limits: unknown[] = [];

  @OnSecurityEvent('limit-reached')
  hear({ limit }: SecurityEvent) {
    this.limits.push(limit);
  }
}

export const BOUNDS: DeadlineCheckGroup = {
  name: 'bounds',
  checks: {
    'refuses data whose text has more bytes than maxDataSize, and leaves what waits': async (t) => {
      const { deadlines } = await t.startWith({ options: { maxDataSize: 100 } });
      // With its two quotation marks, and in two bytes for each letter.
      assert.equal(await deadlines.schedule(visit, 'a', { in: '1h', data: 'é'.repeat(49) }), 'scheduled');
      await refused('maxDataSize', 100, () => deadlines.schedule(visit, 'a', { in: '1h', data: 'é'.repeat(50) }));
      await refused('maxDataSize', 100, () => deadlines.schedule(visit, 'b', { in: '1h', data: 'x'.repeat(99) }));
      assert.equal((await deadlines.get(visit, 'a'))?.data, 'é'.repeat(49));
      assert.equal(await deadlines.count(visit), 1);
    },

    'refuses a new one when as many of the name wait as maxScheduled allows': async (t) => {
      const { deadlines } = await t.startWith({ options: { maxScheduled: 2 } });
      await deadlines.schedule(visit, 'a', { in: '1h' });
      await deadlines.schedule(visit, 'b', { in: '1h' });
      await refused('maxScheduled', 2, () => deadlines.schedule(visit, 'c', { in: '1h' }));
      assert.equal(await deadlines.get(visit, 'c'), undefined);
      assert.equal(await deadlines.count(visit), 2);
      assert.equal(await deadlines.schedule(call, 'c', { in: '1h' }), 'scheduled');
    },

    'lets what waits be replaced and moved at the bound': async (t) => {
      const { deadlines } = await t.startWith({ options: { maxScheduled: 1 } });
      await deadlines.schedule(visit, 'a', { in: '1h' });
      assert.equal(await deadlines.schedule(visit, 'a', { in: '2h', data: 2 }), 'replaced');
      assert.equal(await deadlines.schedule(visit, 'a', { in: '2h', ifExists: 'keep' }), 'kept');
      assert.equal(await deadlines.reschedule(visit, 'a', { in: '3h' }), 'moved');
    },

    'has room again after one was cancelled or has fired': async (t) => {
      const app = await t.startWith({ providers: [Visits], options: { maxScheduled: 1 } });
      const { deadlines } = app;
      await deadlines.schedule(visit, 'a', { in: '1h' });
      await deadlines.cancel(visit, 'a');
      assert.equal(await deadlines.schedule(visit, 'b', { in: 0 }), 'scheduled');
      await t.until(() => assert.equal(app.get(Visits).events.length, 1));
      assert.equal(await deadlines.schedule(visit, 'c', { in: '1h' }), 'scheduled');
    },

    'rejects scheduleMany() at the bound; what had room is scheduled': async (t) => {
      const { deadlines } = await t.startWith({ options: { maxScheduled: 2 } });
      const many = ['a', 'b', 'c'].map((key) => ({ key, in: '1h' }));
      await refused('maxScheduled', 2, () => deadlines.scheduleMany(visit, many));
      assert.equal(await deadlines.count(visit), 2);
    },

    'reports both as security events': async (t) => {
      const app = await t.startWith({ providers: [Alarms], options: { maxDataSize: 10, maxScheduled: 1 } });
      const { deadlines } = app;
      await refused('maxDataSize', 10, () => deadlines.schedule(visit, 'a', { in: '1h', data: 'x'.repeat(20) }));
      await deadlines.schedule(visit, 'a', { in: '1h' });
      await refused('maxScheduled', 1, () => deadlines.schedule(visit, 'b', { in: '1h' }));
      await eventually(() => assert.deepEqual(app.get(Alarms).limits, ['maxDataSize', 'maxScheduled']));
    },
  },
};

async function refused(bound: DeadlineBound, limit: number, schedule: () => Promise<unknown>): Promise<void> {
  await assert.rejects(schedule, (error: unknown) => {
    assert.ok(error instanceof DeadlineBoundError, String(error));
    assert.deepEqual([error.bound, error.limit, error.deadlineName], [bound, limit, visit.name]);
    const [status, reason] = bound === 'maxDataSize' ? [413, 'deadline-too-large'] : [503, 'too-many-deadlines'];
    const { statusCode, reason: told } = error.getResponse() as { statusCode?: number; reason?: string };
    assert.deepEqual([error.getStatus(), statusCode, told], [status, status, reason]);
    return true;
  });
}
