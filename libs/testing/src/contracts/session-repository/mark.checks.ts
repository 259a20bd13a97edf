import assert from 'node:assert/strict';
import { marksOf } from '@nest-session/core/internal';
import type { CheckGroup } from './check.group.js';
import { type ContractContext, MINUTE } from './contract.context.js';

const ONE = 'a'.repeat(43);
const TWO = 'b'.repeat(43);

function marksIn(t: ContractContext) {
  const [own, other] = [marksOf(t.repository), marksOf(t.other)];
  assert.ok(own && other, '`marks` are offered by `leaveMark()` and `readMarks()`');
  return { own, other };
}

export const MARKS: CheckGroup = {
  name: 'marks',
  needs: 'marks',
  checks: {
    'are read on every node, each under its own name': async (t) => {
      const { own, other } = marksIn(t);
      await own.leave(ONE, 1_764_519_226, 10 * MINUTE);
      assert.deepEqual(await other.read([TWO, ONE]), [undefined, 1_764_519_226]);
    },

    'keep the greater number and the later end': async (t) => {
      const { own, other } = marksIn(t);
      await own.leave(ONE, 7, 10 * MINUTE);
      await other.leave(ONE, 5, MINUTE);
      await own.leave(TWO, 5, MINUTE);
      await other.leave(TWO, 7, 10 * MINUTE);
      await t.advance(5 * MINUTE);
      assert.deepEqual(await own.read([ONE, TWO]), [7, 7]);
    },

    'are gone at their end, with their number': async (t) => {
      const { own } = marksIn(t);
      await own.leave(ONE, 7, 5 * MINUTE);
      await own.leave(TWO, 7, 10 * MINUTE);
      await t.advance(6 * MINUTE);
      assert.deepEqual(await own.read([ONE, TWO]), [undefined, 7]);
      await own.leave(ONE, 3, 5 * MINUTE);
      assert.deepEqual(await own.read([ONE]), [3]);
    },
  },
};
