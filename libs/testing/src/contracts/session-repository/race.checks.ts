import assert from 'node:assert/strict';
import type { SessionRepository } from '@nest-session/core';
import { generateSessionKey } from '@nest-session/core/internal';
import type { CreateSession } from '@nest-session/core/store';
import { atOnce, ROUNDS } from './at-once.js';
import type { CheckGroup, Checks } from './check.group.js';
import { INTERVAL, SECOND, type ContractContext } from './contract.context.js';

/** One round of a race between requests of two repositories, which may be the same. */
type Race = (t: ContractContext, one: SessionRepository, two: SessionRepository, round: number) => Promise<void>;

const races: Readonly<Record<string, Race>> = {
  'a save and a deletion leave no session, and the deletion reports the end': async (t, one, two, round) => {
    const { id } = await t.stored();
    const saving = await t.load(id, one);
    saving.setAttribute('late', true);
    const [outcome, isDeleted] = await atOnce(
      round,
      () => saving.save(),
      () => two.deleteById(id),
    );
    assert.ok(outcome === 'saved' || outcome === 'gone');
    assert.equal(isDeleted, true);
    await t.isOver(id);
  },

  'a touch and a deletion leave no session': async (t, one, two, round) => {
    const { id } = await t.stored();
    const touching = await t.load(id, one);
    const [reply, isDeleted] = await atOnce(
      round,
      () => one.touch(touching),
      () => two.deleteById(id),
    );
    assert.ok(reply === 'touched' || reply === 'gone');
    assert.equal(isDeleted, true);
    await t.isOver(id);
  },

  'one of two deletions ends the session': async (t, one, two, round) => {
    const { id } = await t.stored();
    const results = await atOnce(
      round,
      () => one.deleteById(id),
      () => two.deleteById(id),
    );
    assert.deepEqual(new Set(results), new Set([true, false]));
    await t.isOver(id);
  },

  'a save and a rotation both take effect': async (t, one, two, round) => {
    const { id } = await t.stored({ a: 1 });
    const [saving, rotating] = [await t.load(id, one), await t.load(id, two)];
    saving.setAttribute('a', 2);
    saving.setAttribute('late', true);
    rotating.setAttribute('user', 'ann');
    const newId = rotating.changeSessionId();
    assert.deepEqual(
      await atOnce(
        round,
        () => saving.save(),
        () => rotating.save(),
      ),
      ['saved', 'saved'],
    );
    await t.isOver(id);
    assert.deepEqual(await t.attributesOf(newId), { a: 2, late: true, user: 'ann' });
  },

  'two saves of different attributes both take effect': async (t, one, two, round) => {
    const { id } = await t.stored({ a: 0, b: 0 });
    const sessions = [await t.load(id, one), await t.load(id, two)] as const;
    sessions[0].setAttribute('a', 1);
    sessions[1].setAttribute('b', 1);
    sessions[1].setAttribute('c', 1);
    await atOnce(
      round,
      () => t.saves(sessions[0]),
      () => t.saves(sessions[1]),
    );
    assert.deepEqual(await t.attributesOf(id), { a: 1, b: 1, c: 1 });
  },

  'a save and an update of another attribute both take effect': async (t, one, two, round) => {
    const { id } = await t.stored({ a: 0, n: 0 });
    const [saving, updating] = [await t.load(id, one), await t.load(id, two)];
    saving.setAttribute('a', 1);
    await atOnce(
      round,
      () => t.saves(saving),
      () => updating.updateAttribute<number>('n', (n = 0) => n + 1),
    );
    assert.deepEqual(await t.attributesOf(id), { a: 1, n: 1 });
  },

  'a load during a save finds the whole session': async (t, one, two, round) => {
    const { id } = await t.stored({ a: 0, large: 'x'.repeat(100_000), b: 0 });
    const saving = await t.load(id, one);
    for (const name of ['a', 'b']) saving.setAttribute(name, 1);
    await atOnce(
      round,
      () => t.saves(saving),
      async () => {
        for (let i = 0; i < 5; i++) {
          const session = await t.load(id, two);
          assert.equal(session.getAttribute('a'), session.getAttribute('b'));
        }
      },
    );
  },

  'a touch keeps a concurrent save': async (t, one, two, round) => {
    const { id } = await t.stored({ a: 0, removed: 0 });
    const [touching, saving] = [await t.load(id, one), await t.load(id, two)];
    saving.setAttribute('a', 1);
    saving.removeAttribute('removed');
    saving.maxInactiveInterval = 600;
    await atOnce(
      round,
      () => one.touch(touching),
      () => t.saves(saving),
    );
    assert.deepEqual(await t.attributesOf(id), { a: 1 });
    assert.equal((await t.load(id)).maxInactiveInterval, 600);
  },

  'a touch keeps a concurrent rotation': async (t, one, two, round) => {
    const { id } = await t.stored({ a: 1 });
    const [touching, rotating] = [await t.load(id, one), await t.load(id, two)];
    const newId = rotating.changeSessionId();
    const [reply] = await atOnce(
      round,
      () => one.touch(touching),
      () => t.saves(rotating),
    );
    assert.ok(reply === 'touched' || reply === 'forwarded');
    await t.isOver(id);
    assert.deepEqual(await t.attributesOf(newId), { a: 1 });
  },

  'two changes of different timeouts both take effect': async (t, one, two, round) => {
    const { id } = await t.stored();
    const sessions = [await t.load(id, one), await t.load(id, two)] as const;
    sessions[0].maxInactiveInterval = 600;
    sessions[1].absoluteTimeout = 7200;
    await atOnce(
      round,
      () => t.saves(sessions[0]),
      () => t.saves(sessions[1]),
    );
    const { maxInactiveInterval, absoluteTimeout } = await t.load(id);
    assert.deepEqual([maxInactiveInterval, absoluteTimeout], [600, 7200]);
  },

  'one of two rotations takes effect, and only its request has a token': async (t, one, two, round) => {
    const { id } = await t.stored({ a: 1 });
    const sessions = [await t.load(id, one), await t.load(id, two)] as const;
    for (const session of sessions) session.changeSessionId();
    const outcomes = await atOnce(
      round,
      () => sessions[0].save(),
      () => sessions[1].save(),
    );
    assert.deepEqual(outcomes.toSorted(), ['gone', 'saved']);
    const [winner, loser] = outcomes[0] === 'saved' ? sessions : [sessions[1], sessions[0]];
    assert.ok(winner.tokenToSend);
    assert.equal(loser.tokenToSend, undefined);
    assert.deepEqual(await t.attributesOf(winner.id), { a: 1 });
    await t.isOver(loser.id);
    await t.isOver(id);
  },

  'a rotation and a deletion by the old id leave no session': async (t, one, two, round) => {
    const { id } = await t.stored();
    const rotating = await t.load(id, one);
    const newId = rotating.changeSessionId();
    const [outcome, isDeleted] = await atOnce(
      round,
      () => rotating.save(),
      () => two.deleteById(id),
    );
    assert.ok(outcome === 'saved' || outcome === 'gone');
    assert.equal(isDeleted, true);
    await t.isOver(id);
    await t.isOver(newId);
  },

  'two updates of one attribute both take effect': async (t, one, two, round) => {
    const { id } = await t.stored({ n: 0 });
    const sessions = [await t.load(id, one), await t.load(id, two)] as const;
    const add = (n = 0) => n + 1;
    const values = await atOnce(
      round,
      () => sessions[0].updateAttribute<number>('n', add),
      () => sessions[1].updateAttribute<number>('n', add),
    );
    assert.deepEqual(new Set(values), new Set([1, 2]));
    assert.deepEqual(await t.attributesOf(id), { n: 2 });
  },

  'one of two creations under one id takes effect': async (t, one, two, round) => {
    const { id } = generateSessionKey();
    const create = (n: number): CreateSession => ({
      kind: 'create',
      id,
      presentedIds: [],
      maxInactiveInterval: INTERVAL / SECOND,
      absoluteTimeout: -1,
      attributes: new Map([['n', String(n)]]),
      indexes: new Map(),
    });
    const replies = await atOnce(
      round,
      () => one['write'](create(1)),
      () => two['write'](create(2)),
    );
    const outcomes = replies.map(({ outcome }) => outcome);
    assert.deepEqual(outcomes.toSorted(), ['collision', 'created']);
    assert.deepEqual(await t.attributesOf(id), { n: outcomes[0] === 'created' ? 1 : 2 });
  },
};

const checksOf = (other: (t: ContractContext) => SessionRepository): Checks =>
  Object.fromEntries(
    Object.entries(races).map(([name, race]) => [
      name,
      async (t: ContractContext) => {
        for (let round = 0; round < ROUNDS; round++) await race(t, t.repository, other(t), round);
      },
    ]),
  );

export const RACES: CheckGroup = { name: 'races', checks: checksOf((t) => t.repository) };
export const RACES_OF_NODES: CheckGroup = {
  name: 'races between nodes',
  needs: 'nodes',
  checks: checksOf((t) => t.other),
};
