import assert from 'node:assert/strict';
import { generateSessionKey, PRINCIPAL_ATTRIBUTE } from '@nest-session/core/internal';
import type { CheckGroup } from './check.group.js';
import { INTERVAL, MINUTE } from './contract.context.js';

// None of these can be an id, which has 22 to 128 characters of base64url.
const NO_IDS = [
  '',
  ' ',
  'x',
  '*',
  '{x}',
  'expires:x',
  '__proto__',
  'constructor',
  `${'a'.repeat(42)}*`,
  'ä'.repeat(43),
];

export const LOADING: CheckGroup = {
  name: 'loading',
  checks: {
    'finds nothing under an unknown or malformed id': async (t) => {
      await t.stored();
      for (const id of [generateSessionKey().id, ...NO_IDS]) assert.equal(await t.repository.findById(id), null, id);
      assert.deepEqual(await t.repository.findByIds(NO_IDS), Array(NO_IDS.length).fill(null));
    },

    'finds several sessions in the order of the requested ids, repeated ids included': async (t) => {
      const [first, second, over] = [await t.stored({ n: 1 }), await t.stored({ n: 2 }), await t.stored()];
      await t.repository.deleteById(over.id);
      const ids = [second.id, 'x', over.id, first.id, generateSessionKey().id, second.id];
      const found = await t.repository.findByIds(ids);
      assert.deepEqual(
        found.map((session) => session?.id ?? null),
        [second.id, null, null, first.id, null, second.id],
      );
      assert.deepEqual(
        found.map((session) => session?.getAttribute('n')),
        [2, undefined, undefined, 1, undefined, 2],
      );
      assert.deepEqual(await t.repository.findByIds([]), []);
    },

    'finds a hundred sessions at once': async (t) => {
      const ids: string[] = [];
      for (let i = 0; i < 100; i++) ids.push((await t.stored({ i })).id);
      const found = await t.repository.findByIds(ids);
      assert.deepEqual(
        found.map((session) => session?.getAttribute('i')),
        ids.map((_, i) => i),
      );
    },

    'returns times as whole numbers': async (t) => {
      const { id } = await t.stored({ a: 1 }, (each) => (each.absoluteTimeout = 20 * 60));
      const { creationTime, lastAccessedTime, maxInactiveInterval, absoluteTimeout, timeToLive } = await t.recordOf(id);
      const times = { creationTime, lastAccessedTime, maxInactiveInterval, absoluteTimeout, timeToLive };
      for (const [name, time] of Object.entries(times))
        assert.ok(Number.isSafeInteger(time), `${name} is ${typeof time}`);
    },

    'returns the times, and at least the attributes that a caller asks for': async (t) => {
      const { id } = await t.stored({ a: 1, b: 2 }, (each) => {
        each.absoluteTimeout = 20 * 60;
        each.signIn('ann');
      });
      const only = ['b', 'missing', PRINCIPAL_ATTRIBUTE];
      const [whole, asked] = [await t.recordOf(id), await t.recordOf(id, only)];
      for (const time of ['creationTime', 'authenticatedAt', 'lastAccessedTime', 'maxInactiveInterval'] as const)
        assert.equal(asked[time], whole[time]);
      assert.equal(asked.absoluteTimeout, whole.absoluteTimeout);
      t.isAbout(whole.timeToLive! - asked.timeToLive!, 0);
      const texts = new Map(asked.attributes);
      for (const [name, text] of whole.attributes) if (only.includes(name)) assert.equal(texts.get(name), text);
    },

    'finds a session until its end, and no longer even before the expiry is noticed': async (t) => {
      const { id } = await t.stored();
      await t.advanceToJustBefore(INTERVAL);
      await t.load(id);
      await t.load(id, t.other);
      await t.advancePast();
      await t.isOver(id);
      assert.deepEqual(await t.repository.findByIds([id]), [null]);
    },

    'does not find an expired session after the expiry is noticed': async (t) => {
      const { id } = await t.stored();
      await t.expireAll();
      await t.reportExpired();
      await t.isOver(id);
    },

    'does not renew the session': async (t) => {
      const { id, creationTime } = await t.stored();
      await t.advance(20 * MINUTE);
      assert.equal((await t.load(id)).lastAccessedTime, creationTime);
      await t.repository.findByIds([id]);
      assert.equal((await t.load(id)).lastAccessedTime, creationTime);
      await t.advance(10 * MINUTE + 1);
      await t.isOver(id);
    },

    'returns for how long a session has been idle, which decides when a touch is due': async (t) => {
      const usual = await t.stored();
      const limited = await t.stored({ a: 1 }, (each) => (each.absoluteTimeout = 20 * 60));
      const onlyLimited = await t.stored({ a: 1 }, (each) => {
        each.absoluteTimeout = 20 * 60;
        each.maxInactiveInterval = -1;
      });
      const endless = await t.stored({ a: 1 }, (each) => (each.maxInactiveInterval = -1));
      await t.advance(10 * MINUTE);
      for (const { id } of [usual, limited, onlyLimited]) {
        const { idleTime } = await t.load(id);
        assert.ok(idleTime !== undefined, 'A session that ends has a `timeToLive`');
        t.isAbout(idleTime, 10 * MINUTE);
      }
      assert.equal((await t.load(endless.id)).idleTime, undefined);
      await t.repository.touch(usual);
      t.isAbout((await t.load(usual.id)).idleTime!, 0);
    },

    'gives each caller its own copy of a session': async (t) => {
      const { id } = await t.stored({ list: ['saved'] });
      const [one, two] = [await t.load(id), await t.load(id)];
      one.getAttribute<string[]>('list')!.push('not saved');
      one.setAttribute('b', 1);
      assert.deepEqual(two.getAttribute('list'), ['saved']);
      assert.deepEqual(await t.attributesOf(id), { list: ['saved'] });
    },
  },
};
