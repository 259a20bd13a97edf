// The order in which Jest starts the test files. By itself, Jest starts those first that took long in an earlier run,
// or, in a fresh clone, the large ones. The suite of a contract is a small file, and one of those that take longest: it
// would start last, and run alone in the end.
import TestSequencer from '@jest/test-sequencer';

const OF_A_CONTRACT = /contract\.spec\.ts$/;

export default class extends TestSequencer {
  sort(tests) {
    const [contracts, others] = [true, false].map((isOne) => (each) => OF_A_CONTRACT.test(each.path) === isOne);
    const sorted = super.sort(tests);
    return [...sorted.filter(contracts), ...sorted.filter(others)];
  }
}
