import assert from 'node:assert/strict';
import { IndexedSessionRepository } from '@nest-session/core';
import type { TrackedSession } from '@nest-session/core/internal';
import { atOnce, ROUNDS } from './at-once.js';
import type { CheckGroup } from './check.group.js';
import type { Account } from './contract-indexes.js';
import type { ContractContext } from './contract.context.js';

/** The ids of the sessions that an index lists under a value; asserts that both nodes find the same. */
async function idsIn(t: ContractContext, index: string, value: string): Promise<string[]> {
  const { indexed, other } = t;
  assert.ok(other instanceof IndexedSessionRepository);
  const found = await Promise.all([indexed.findByIndex(index, value), other.findByIndex(index, value)]);
  const [ids, elsewhere] = found.map((sessions) => sessions.map(({ id }) => id).toSorted());
  assert.deepEqual(elsewhere, ids);
  return ids!;
}

const inTenant = (t: ContractContext, tenant: string) => idsIn(t, 'tenant', tenant);
const of = (tenant: string): { account: Account } => ({ account: { tenant } });

/** The one session that is listed, for its id. */
const only = ({ id }: TrackedSession): string[] => [id];

export const INDEXED_ATTRIBUTES: CheckGroup = {
  name: 'indexed attributes',
  needs: 'indexes',
  checks: {
    'list a session under the values that follow from them': async (t) => {
      const [one, two] = [await t.stored(of('acme')), await t.stored(of('acme'))];
      const other = await t.stored({ account: { tenant: 'other', provider: { sid: 's1' } } satisfies Account });
      await t.stored({ account: {} });
      await t.stored();
      assert.deepEqual(await inTenant(t, 'acme'), [one.id, two.id].toSorted());
      assert.deepEqual(await inTenant(t, 'other'), only(other));
      assert.deepEqual(await idsIn(t, 'sid', 's1'), only(other));
      assert.deepEqual(await idsIn(t, 'sid', 'acme'), []);
      for (const value of ['', 'undefined', 'null']) assert.deepEqual(await inTenant(t, value), []);
    },

    'are followed by every kind of change': async (t) => {
      const session = await t.stored(of('acme'));
      session.setAttribute('account', { tenant: 'other' });
      await t.saves(session);
      assert.deepEqual([await inTenant(t, 'acme'), await inTenant(t, 'other')], [[], only(session)]);
      await session.updateAttribute('account', () => ({ tenant: 'acme', provider: { sid: 's1' } }));
      assert.deepEqual([await inTenant(t, 'acme'), await idsIn(t, 'sid', 's1')], [only(session), only(session)]);
      (session.getAttribute('account') as { tenant: string }).tenant = 'changed in place';
      await t.saves(session);
      assert.deepEqual([await inTenant(t, 'acme'), await inTenant(t, 'changed in place')], [[], only(session)]);
      session.removeAttribute('account');
      await t.saves(session);
      assert.deepEqual([await inTenant(t, 'changed in place'), await idsIn(t, 'sid', 's1')], [[], []]);
    },

    'keep a session listed while other attributes change': async (t) => {
      const session = await t.stored(of('acme'), (each) => (each.principalName = 'ann'));
      const late = await t.load(session.id, t.other);
      session.setAttribute('a', 2);
      session.principalName = 'bob';
      await t.saves(session);
      late.setAttribute('b', 1);
      await t.saves(late);
      await t.repository.touch(session);
      assert.deepEqual(await inTenant(t, 'acme'), only(session));
      session.principalName = undefined;
      await t.saves(session);
      assert.deepEqual(await inTenant(t, 'acme'), only(session));
    },

    'are followed through a rotation, also with a change': async (t) => {
      const session = await t.stored(of('acme'));
      await t.rotates(session);
      assert.deepEqual(await inTenant(t, 'acme'), only(session));
      session.setAttribute('account', { tenant: 'other' });
      await t.rotates(session);
      assert.deepEqual([await inTenant(t, 'acme'), await inTenant(t, 'other')], [[], only(session)]);
    },

    'list no session from which all attributes were removed': async (t) => {
      const session = await t.stored(of('acme'), (each) => (each.principalName = 'ann'));
      session.startAnew();
      session.setAttribute('a', 1);
      await t.saves(session);
      assert.deepEqual([await inTenant(t, 'acme'), await t.indexed.findByPrincipalName('ann')], [[], []]);
    },

    'list no session whose attribute a sign-in has not kept, known to it or not': async (t) => {
      const known = await t.stored(of('acme'));
      const other = await t.stored({ a: 1 });
      const late = await t.load(other.id, t.other);
      for (const [name, value] of Object.entries(of('acme'))) late.setAttribute(name, value);
      await t.saves(late);
      for (const session of [known, other]) {
        session.signIn('ann', { keep: [] });
        await t.saves(session);
      }
      assert.deepEqual(await inTenant(t, 'acme'), []);
    },

    'list no session that has ended': async (t) => {
      const [deleted, ended] = [await t.stored(of('acme')), await t.stored(of('acme'))];
      const expired = await t.stored(of('acme'));
      await t.repository.deleteById(deleted.id);
      ended.maxInactiveInterval = 0;
      await t.saves(ended);
      assert.deepEqual(await inTenant(t, 'acme'), only(expired));
      await t.expireAll();
      assert.deepEqual(await inTenant(t, 'acme'), []);
      await t.reportExpired();
      assert.deepEqual(await inTenant(t, 'acme'), []);
    },

    'agree with their indexes after two concurrent changes': async (t) => {
      for (let round = 0; round < ROUNDS; round++) {
        const { id } = await t.stored(of('acme'));
        const [one, two] = [await t.load(id), await t.load(id, t.other)];
        // The second one changes the attribute as well, but not, as far as it knows, what the index depends on.
        one.setAttribute('account', { tenant: 'other' });
        two.setAttribute('account', { tenant: 'acme', provider: { sid: 's1' } });
        await atOnce(
          round,
          () => one.save(),
          () => two.save(),
        );
        const { tenant } = (await t.load(id)).getRequiredAttribute<Account>('account');
        const [left, right] = tenant === 'acme' ? [[id], []] : [[], [id]];
        assert.deepEqual([await inTenant(t, 'acme'), await inTenant(t, 'other')], [left, right]);
        await t.repository.deleteById(id);
      }
    },

    'cannot be changed by a request that still holds the id from before a rotation': async (t) => {
      const session = await t.stored(of('acme'));
      const late = await t.load(session.id);
      await t.rotates(session);
      late.setAttribute('account', { tenant: 'other' });
      assert.equal(await late.save(), 'gone');
      assert.deepEqual([await inTenant(t, 'acme'), await inTenant(t, 'other')], [only(session), []]);
    },

    'keep different values apart, whatever characters they have and however long they are': async (t) => {
      const long = 'v'.repeat(257);
      const values = [
        'a',
        'a:',
        ':a',
        'a:b',
        '*',
        '%3A',
        '{a}',
        'v'.repeat(256),
        `${'v'.repeat(255)}w`,
        long,
        `${long}:`,
        'é'.repeat(200),
      ];
      const ids = new Map<string, string>();
      for (const value of values) ids.set(value, (await t.stored(of(value))).id);
      for (const [value, id] of ids) assert.deepEqual(await inTenant(t, value), [id], JSON.stringify(value));
      await t.repository.deleteById(ids.get(long)!);
      assert.deepEqual([await inTenant(t, long), (await inTenant(t, `${long}:`)).length], [[], 1]);
    },

    'keep different names of indexes apart': async (t) => {
      const [short, colon, escaped] = [
        await t.stored({ x: 'y:z' }),
        await t.stored({ 'x:y': 'z' }),
        await t.stored({ 'x%3Ay': 'z' }),
      ];
      assert.deepEqual(await idsIn(t, 'x', 'y:z'), only(short));
      assert.deepEqual(await idsIn(t, 'x:y', 'z'), only(colon));
      assert.deepEqual(await idsIn(t, 'x%3Ay', 'z'), only(escaped));
    },

    'are found by well-formed text only': async (t) => {
      await t.stored(of('a\ufffd'));
      await t.stored({ a: 1 }, (each) => (each.principalName = 'a\ufffd'));
      assert.deepEqual([await inTenant(t, 'a\ud800'), await t.indexed.findByPrincipalName('a\udfff')], [[], []]);
      assert.equal((await inTenant(t, 'a\ufffd')).length, 1);
    },
  },
};
