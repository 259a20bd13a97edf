import { LeakGuard } from '@nest-session/test-infrastructure';
import { describeMoves } from '../support/repartition.suite.js';

LeakGuard.install();

// `repartition.spec.ts` has one of each kind.
describeMoves('buckets', {
  moves: [
    [4, 1],
    [4, 64],
    // These have partitions in common.
    [2, 4],
  ],
  interrupted: [[3, 2]],
});
describeMoves('sorted-set', {
  moves: [
    [4, 1],
    [4, 64],
    [2, 4],
    [3, 2],
  ],
  interrupted: [[2, 1]],
});
