import fc, { type RunDetails, type Scheduler } from 'fast-check';
import { repeated } from '../../support/repeated.js';
import { sequence } from './actors.js';
import { type ModelledStore, ModelledMapStore, ModelledRedisStore } from './modelled.store.js';
import { Sequence } from './sequence.js';
import { Turns } from './store.turns.js';

const FOLDER = 'packages/session-redis/test/store/model';

// For 10,000 sequences on a slow machine.
const TIMEOUT = 3_600_000;

interface Variant {
  readonly name: string;
  readonly open: (turns: Turns) => Promise<ModelledStore>;
}

const VARIANTS: readonly Variant[] = [
  { name: 'memory', open: async (turns) => new ModelledMapStore(turns) },
  { name: 'Redis', open: (turns) => ModelledRedisStore.open(turns, 1) },
  { name: 'Redis with four partitions', open: (turns) => ModelledRedisStore.open(turns, 4) },
  { name: 'Redis with a sorted set', open: (turns) => ModelledRedisStore.open(turns, 1, ['sorted-set']) },
];

/** All on one server, with those that take long. */
export const ALL_VARIANTS: readonly Variant[] = [
  ...VARIANTS,
  { name: 'Redis with four sorted sets', open: (turns) => ModelledRedisStore.open(turns, 4, ['sorted-set']) },
  {
    name: 'Redis with instances that write to buckets and to the sorted set',
    open: (turns) => ModelledRedisStore.open(turns, 1, ['buckets', 'sorted-set']),
  },
];

/**
 * Compares each store with the model for `runs` sequences. The environment variable `RUNS` overrides the number;
 * `REPEAT`, from the message of a failure, repeats that one.
 */
export function describeSessions(runs: number, variants: readonly Variant[] = VARIANTS): void {
  describe.each(variants)('sessions in $name', ({ open }) => {
    const turns = new Turns();
    let store: ModelledStore;
    beforeAll(async () => {
      store = await open(turns);
    }, 120_000);
    afterAll(() => store.close());

    it(
      'equal the model for any interleaving of requests, clock and sweeper',
      async () => {
        const property = fc.asyncProperty(sequence, fc.nat(), (plan, order) =>
          Sequence.run(store, turns, schedulerOf(order), plan),
        );
        const details = await fc.check(property, { numRuns: Number(process.env['RUNS'] ?? runs), ...repeated() });
        if (details.failed) throw new Error(report(details));
      },
      TIMEOUT,
    );
  });
}

/** A scheduler with a repeatable order. One among the arguments would continue from an earlier run. */
function schedulerOf(order: number): Scheduler {
  return fc.sample(fc.scheduler(), { seed: order, numRuns: 1 })[0]!;
}

function report<T>({ numRuns, numShrinks, seed, counterexamplePath, errorInstance }: RunDetails<T>): string {
  const found = `Sequence ${numRuns}, made shorter ${numShrinks} times, is not as the model says.`;
  const steps = errorInstance instanceof Error ? errorInstance.message : String(errorInstance);
  const { testPath, currentTestName } = expect.getState();
  const script = testPath?.endsWith('.chaos.ts') ? 'run chaos' : 'test';
  const again = `REPEAT=${seed}/${counterexamplePath} npm ${script} -- ${FOLDER} -t '${currentTestName}'`;
  return `${found}\n\n${steps}\n\nOnce more: ${again}`;
}
