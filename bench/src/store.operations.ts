import { generateSessionKey, type StorePrimitives } from '@nest-session/core/internal';
import type { RedisUsage } from './redis.usage.js';
import { inFlight } from './store.context.js';

const AMOUNT = 2000;

/** The operations of a store, on sessions by their ids. */
export interface Operations {
  load(id: string): Promise<unknown>;
  save(id: string): Promise<unknown>;
  touch(id: string): Promise<unknown>;
  create(id: string): Promise<unknown>;
  changeId(id: string, newId: string): Promise<unknown>;
  delete(id: string): Promise<unknown>;
}

export const OPERATION_NAMES: readonly (keyof Operations)[] = ['load', 'save', 'touch', 'create', 'changeId', 'delete'];

/** The only attribute of these sessions. */
export const NAME = 'cart';
export const TEXT = JSON.stringify({ items: ['A-1001', 'A-1002', 'A-1003'], note: 'x'.repeat(60) });

export function operationsOf(store: StorePrimitives): Operations {
  const attributes = new Map([[NAME, TEXT]]);
  const nothing = new Map<string, string>();
  const timeouts = { maxInactiveInterval: 1800, absoluteTimeout: -1 };
  return {
    load: (id) => store.load([id]),
    save: (id) => store.write({ kind: 'update', id, attributes, indexes: nothing }),
    touch: (id) => store.write({ kind: 'touch', id }),
    create: (id) => store.write({ kind: 'create', id, presentedIds: [], ...timeouts, attributes, indexes: nothing }),
    changeId: (id, newId) => store.write({ kind: 'update', id, newId, attributes: nothing, indexes: nothing }),
    delete: (id) => store.write({ kind: 'delete', id }),
  };
}

/**
 * What an operation costs, on average, with so many of them in flight. `mayReplace`: which id a session may get.
 * `settled`: resolves when what the operations have caused is over; by default they cause nothing.
 */
export async function measureOperation(
  operations: Operations,
  name: keyof Operations,
  limit: number,
  usage: () => Promise<RedisUsage>,
  mayReplace: (drawn: string, id: string) => boolean = () => true,
  settled: () => Promise<void> = () => Promise.resolve(),
) {
  const amount = limit === 1 ? AMOUNT / 2 : AMOUNT;
  const ids = Array.from({ length: amount }, () => generateSessionKey().id);
  const newId = (id: string) => generateSessionKey((drawn) => mayReplace(drawn, id)).id;
  const pairs = ids.map((id) => [id, name === 'changeId' ? newId(id) : id] as const);
  if (name !== 'create') await inFlight(ids, 64, (id) => operations.create(id));
  await settled();
  const before = await usage();
  const cpuBefore = process.cpuUsage();
  const began = performance.now();
  await inFlight(pairs, limit, ([id, next]) => operations[name](id, next));
  const elapsed = performance.now() - began;
  await settled();
  const cpu = process.cpuUsage(cpuBefore);
  const after = await usage();
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
