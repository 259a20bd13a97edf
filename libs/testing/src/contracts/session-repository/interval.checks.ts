import assert from 'node:assert/strict';
import type { CheckGroup } from './check.group.js';
import { DAY, MINUTE, SECOND, type ContractContext } from './contract.context.js';

/** Sets the idle timeout of a session, in seconds, without an access. */
async function setInterval(t: ContractContext, id: string, seconds: number): Promise<void> {
  const session = await t.load(id);
  session.maxInactiveInterval = seconds;
  await t.saves(session);
  if (seconds !== 0) assert.equal((await t.load(id)).maxInactiveInterval, seconds);
}

export const INTERVALS: CheckGroup = {
  name: 'idle timeout',
  checks: {
    'can be longer or shorter for one session': async (t) => {
      for (const seconds of [120 * 60, 10 * 60, 61]) {
        const { id } = await t.stored();
        await setInterval(t, id, seconds);
        await t.advanceToJustBefore(seconds * SECOND);
        await t.load(id);
        await t.advancePast();
        await t.isOver(id);
      }
    },

    'counts from each access': async (t) => {
      const { id } = await t.stored();
      await setInterval(t, id, 10 * 60);
      for (let access = 0; access < 5; access++) {
        await t.advance(9 * MINUTE);
        assert.equal(await t.repository.touch(await t.load(id)), 'touched');
      }
      await t.advance(10 * MINUTE + 1);
      await t.isOver(id);
    },

    'never ends the session when it is negative, until it is set again': async (t) => {
      const { id } = await t.stored();
      await setInterval(t, id, -1);
      await t.advance(400 * DAY);
      await t.reportExpired();
      assert.equal(await t.repository.touch(await t.load(id)), 'touched');
      await t.advance(400 * DAY);
      await setInterval(t, id, 10 * 60);
      await t.advanceToJustBefore(10 * MINUTE);
      await t.load(id);
      await t.advancePast();
      await t.isOver(id);
    },

    'can be negative from the creation, and stays so through saves and rotations': async (t) => {
      const sessions = [];
      for (let i = 0; i < 3; i++) sessions.push(await t.stored({ a: 1 }, (each) => (each.maxInactiveInterval = -1)));
      const [, saved, rotated] = sessions;
      saved!.setAttribute('a', 2);
      await t.saves(saved!);
      await t.rotates(rotated!);
      await t.advance(400 * DAY);
      await t.reportExpired();
      for (const { id } of sessions) assert.equal((await t.load(id)).maxInactiveInterval, -1);
    },

    'can be any negative number': async (t) => {
      const { id } = await t.stored();
      const session = await t.load(id);
      session.maxInactiveInterval = -5;
      await t.saves(session);
      await t.advance(DAY);
      const { maxInactiveInterval } = await t.load(id);
      assert.ok(maxInactiveInterval < 0);
    },

    'can be as long as 2147483647 seconds': async (t) => {
      const longest = 2 ** 31 - 1;
      const session = await t.stored({ a: 1 }, (each) => (each.maxInactiveInterval = each.absoluteTimeout = longest));
      await t.advance(400 * DAY);
      await t.reportExpired();
      assert.equal(await t.repository.touch(session), 'touched');
      const loaded = await t.load(session.id);
      assert.deepEqual([loaded.maxInactiveInterval, loaded.absoluteTimeout], [longest, longest]);
    },

    'ends the session when it is 0': async (t) => {
      const { id } = await t.stored();
      const session = await t.load(id);
      session.maxInactiveInterval = 0;
      await t.saves(session);
      assert.equal(session.isDeleted, true);
      await t.isOver(id);
      assert.equal(await t.repository.deleteById(id), false);
    },

    'counts from the last access when it is changed without one': async (t) => {
      const [longer, shorter, over] = [await t.stored(), await t.stored(), await t.stored()];
      await t.advance(20 * MINUTE);
      const accessed = new Map<string, number>();
      for (const session of [longer, shorter, over]) {
        await t.repository.touch(session);
        accessed.set(session.id, (await t.load(session.id)).lastAccessedTime);
      }
      await t.advance(20 * MINUTE);
      const minutes = new Map([
        [longer, 60],
        [shorter, 25],
        [over, 10],
      ]);
      for (const [session, interval] of minutes) {
        session.keepIdle();
        session.maxInactiveInterval = interval * 60;
        await t.saves(session);
      }
      await t.isOver(over.id);
      for (const { id } of [longer, shorter]) {
        const { lastAccessedTime, maxInactiveInterval } = await t.load(id);
        assert.equal(lastAccessedTime, accessed.get(id));
        assert.equal(maxInactiveInterval, (id === longer.id ? 60 : 25) * 60);
      }
      await t.advance(5 * MINUTE + 1);
      await t.isOver(shorter.id);
      await t.advance(30 * MINUTE);
      await t.load(longer.id);
      await t.advance(5 * MINUTE);
      await t.isOver(longer.id);
    },

    'applies to the new id when the same save rotates the session': async (t) => {
      const session = await t.stored();
      session.maxInactiveInterval = 10 * 60;
      await t.rotates(session);
      assert.equal((await t.load(session.id)).maxInactiveInterval, 10 * 60);
      await t.advance(10 * MINUTE + 1);
      await t.isOver(session.id);
    },
  },
};
