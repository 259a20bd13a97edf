import { RedisServer } from '@nest-session/testing';
import { Redis } from 'ioredis';
import { BareStore } from './budgets.bare.js';
import { budgetProblems, budgetsReport } from './budgets.report.js';
import { redisUsage } from './redis.usage.js';
import { byFigure, type Comparison, isQuick, readResults, recordedFile, writeResults } from './results.js';
import { interleave } from './rounds.js';
import { startStore } from './store.context.js';
import { measureOperation, NAME, OPERATION_NAMES, type Operations, operationsOf, TEXT } from './store.operations.js';

const ROUNDS = isQuick ? 9 : 25;
const WARM_UP = 2;
const CONCURRENCY = [16, 1];

function bareOperationsOf(store: BareStore): Operations {
  return {
    load: (id) => store.load(id),
    save: (id) => store.save(id, NAME, TEXT),
    touch: (id) => store.touch(id),
    create: (id) => store.create(id, NAME, TEXT),
    changeId: (id, newId) => store.changeId(id, newId),
    delete: (id) => store.delete(id),
  };
}

/** Operations of the store beside scripts that do the least. */
async function compare(): Promise<{ comparisons: Comparison[]; version: string | undefined }> {
  const server = await RedisServer.start();
  const redis = new Redis(server.url);
  const ours = await startStore({ url: server.url });
  const bare = new BareStore(server.url);
  const operations = operationsOf(ours.store);
  const bareOperations = bareOperationsOf(bare);
  const comparisons: Comparison[] = [];
  for (const limit of CONCURRENCY) {
    for (const operation of OPERATION_NAMES) {
      // The bare commands load sessions of ours.
      const beside = operation === 'load' ? { ...operations, load: bareOperations.load } : bareOperations;
      const each = Object.entries({ ours: operations, bare: beside }).map(([name, contender]) => ({
        name,
        measure: () => measureOperation(contender, operation, limit, () => redisUsage(redis)),
      }));
      const rounds = await interleave(each, ROUNDS, WARM_UP);
      const figures = each.map(({ name }, n) => ({ name, figures: byFigure(rounds[n]!) }));
      comparisons.push({ title: `${operation}, ${limit} in flight`, contenders: figures });
    }
  }
  const [, version] = /redis_version:(\S+)/.exec(await redis.info('server')) ?? [];
  await ours.stop();
  bare.stop();
  redis.disconnect();
  await server.stop();
  return { comparisons, version };
}

const { comparisons, version } = await compare();
const results = await writeResults('budgets', comparisons, version);
console.log(budgetsReport(results));
if (recordedFile !== undefined) {
  const problems = budgetProblems(results, await readResults(recordedFile));
  for (const problem of problems) console.error(problem);
  process.exitCode = problems.length > 0 ? 1 : 0;
}
