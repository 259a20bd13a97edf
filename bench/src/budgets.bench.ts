import { RedisServer } from '@nest-session/testing';
import { generateSessionKey, type StorePrimitives } from '@nest-session/core/store';
import { Redis } from 'ioredis';
import { BareStore } from './budgets.bare.js';
import { budgetProblems, budgetsReport } from './budgets.report.js';
import { redisUsage } from './redis.usage.js';
import { byFigure, type Comparison, isQuick, readResults, recordedFile, writeResults } from './results.js';
import { interleave } from './rounds.js';
import { inFlight, startStore } from './store.context.js';

const ROUNDS = isQuick ? 9 : 25;
const WARM_UP = 2;
const OPERATIONS = 2000;
const CONCURRENCY = [16, 1];

const NAME = 'cart';
const TEXT = JSON.stringify({ items: ['A-1001', 'A-1002', 'A-1003'], note: 'x'.repeat(60) });
const NOTHING = new Map<string, string>();

/** The operations of a store, on sessions by their ids. */
interface Operations {
  load(id: string): Promise<unknown>;
  save(id: string): Promise<unknown>;
  touch(id: string): Promise<unknown>;
  create(id: string): Promise<unknown>;
  changeId(id: string): Promise<unknown>;
  delete(id: string): Promise<unknown>;
}

const OPERATION_NAMES: readonly (keyof Operations)[] = ['load', 'save', 'touch', 'create', 'changeId', 'delete'];

function operationsOf(store: StorePrimitives): Operations {
  const attributes = new Map([[NAME, TEXT]]);
  const timeouts = { maxInactiveInterval: 1800, absoluteTimeout: -1 };
  return {
    load: (id) => store.load([id]),
    save: (id) => store.write({ kind: 'update', id, attributes, indexes: NOTHING }),
    touch: (id) => store.write({ kind: 'touch', id }),
    create: (id) => store.write({ kind: 'create', id, presentedIds: [], ...timeouts, attributes, indexes: NOTHING }),
    changeId: (id) =>
      store.write({ kind: 'update', id, newId: generateSessionKey().id, attributes: NOTHING, indexes: NOTHING }),
    delete: (id) => store.write({ kind: 'delete', id }),
  };
}

function bareOperationsOf(store: BareStore): Operations {
  return {
    load: (id) => store.load(id),
    save: (id) => store.save(id, NAME, TEXT),
    touch: (id) => store.touch(id),
    create: (id) => store.create(id, NAME, TEXT),
    changeId: (id) => store.changeId(id, generateSessionKey().id),
    delete: (id) => store.delete(id),
  };
}

async function measure(operations: Operations, name: keyof Operations, limit: number, redis: Redis) {
  const amount = limit === 1 ? OPERATIONS / 2 : OPERATIONS;
  const ids = Array.from({ length: amount }, () => generateSessionKey().id);
  if (name !== 'create') await inFlight(ids, 64, (id) => operations.create(id));
  const before = await redisUsage(redis);
  const cpuBefore = process.cpuUsage();
  const began = performance.now();
  await inFlight(ids, limit, (id) => operations[name](id));
  const elapsed = performance.now() - began;
  const cpu = process.cpuUsage(cpuBefore);
  const after = await redisUsage(redis);
  // A load is the only operation without a script.
  const where = name === 'load' ? 'inCommands' : 'inScripts';
  // Otherwise each round has a fuller Redis than the one before.
  if (name !== 'delete' && name !== 'changeId') await inFlight(ids, 64, (id) => operations.delete(id));
  return {
    perSecond: (1000 * amount) / elapsed,
    nodeTime: (cpu.user + cpu.system) / amount,
    redisTime: (after.processorTime - before.processorTime) / amount,
    execution: (after[where] - before[where]) / amount,
    commands: (after.commands - before.commands) / amount,
  };
}

/** Operations of the store beside scripts that do the least. */
async function compare(): Promise<{ comparisons: Comparison[]; version: string | undefined }> {
  const server = await RedisServer.start();
  const redis = new Redis(server.url);
  const ours = await startStore(server.url);
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
        measure: () => measure(contender, operation, limit, redis),
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
