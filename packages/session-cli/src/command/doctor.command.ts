import { SessionStoreError } from '@nest-session/core';
import type { CommandCall, ExitCode } from './command.js';
import { type Check, CHECK_NAMES, type CheckName, type Diagnosis, type Examined } from '../doctor/diagnosis.js';
import { CLEANUP, DEAD_LETTERS, FORMAT, GROUPS, INSTANCES, OVERDUE } from '../doctor/application.checks.js';
import { CLIENTS, CLOCK, LATENCY, MEMORY, NOTIFICATIONS, PERSISTENCE, SERVER } from '../doctor/server.checks.js';
import { examineNodes } from '../doctor/examined-node.js';
import { RIGHTS_CHECK } from '../doctor/rights.check.js';
import { counted } from './shown.js';
import { openStore, type ReachedRedis, withRedis, WRITES } from './store-access.js';
import { UsageError } from './usage.error.js';

const CHECKS: Readonly<Record<CheckName, Check>> = {
  server: SERVER,
  format: FORMAT,
  rights: RIGHTS_CHECK,
  clock: CLOCK,
  latency: LATENCY,
  memory: MEMORY,
  clients: CLIENTS,
  persistence: PERSISTENCE,
  notifications: NOTIFICATIONS,
  instances: INSTANCES,
  cleanup: CLEANUP,
  overdue: OVERDUE,
  groups: GROUPS,
  'dead-letters': DEAD_LETTERS,
};

export function run(call: CommandCall): Promise<ExitCode> {
  const chosen = checksOf(call);
  return withRedis(call, async (redis) => {
    const examined = await examine(call, redis);
    const checks = CHECK_NAMES.filter((name) => chosen.includes(name) || hidesOthers(name, examined));
    const found = await Promise.all(
      checks.map(async (check) => (await findingsOf(CHECKS[check], examined)).map((each) => ({ check, ...each }))),
    );
    call.signal.throwIfAborted();
    const all = found.flat();
    return call.output.report({ checks: all }, linesOf(all), all.every(({ status }) => status === 'ok') ? 0 : 2);
  });
}

function checksOf({ values }: CommandCall): readonly CheckName[] {
  const ignored: readonly string[] = values['ignore']?.split(',').map((name) => name.trim()) ?? [];
  const unknown = ignored.find((name) => !CHECK_NAMES.some((each) => each === name));
  if (unknown !== undefined) {
    throw new UsageError(`There is no check ${JSON.stringify(unknown)}. The checks are ${CHECK_NAMES.join(', ')}.`);
  }
  return CHECK_NAMES.filter((name) => !ignored.includes(name));
}

async function examine(call: CommandCall, redis: ReachedRedis): Promise<Examined> {
  const opened = openStore(redis, WRITES).catch((error: Error) => error);
  const [nodes, store] = await Promise.all([examineNodes(redis), opened]);
  return { call, redis, nodes, store };
}

/** Whether other checks find nothing only because of what this one finds: nobody can ignore that. */
function hidesOthers(check: CheckName, { nodes, store }: Examined): boolean {
  if (check === 'server') return nodes.some(({ silence }) => silence !== undefined);
  return check === 'format' && store instanceof SessionStoreError;
}

/** One that fails is a finding: the others are to be seen. */
async function findingsOf(check: Check, examined: Examined): Promise<readonly Diagnosis[]> {
  try {
    return await check(examined);
  } catch (error) {
    const advice = 'Run this again. If it fails again, correct what the message names.';
    return [{ status: 'error', message: `This could not be checked: ${(error as Error).message}`, advice }];
  }
}

function* linesOf(all: readonly (Diagnosis & { readonly check: CheckName })[]): Iterable<string> {
  const width = Math.max(...all.map(({ check }) => check.length));
  for (const { check, status, message, advice } of all) {
    yield `${status.padEnd(9)}${check.padEnd(width)}  ${message}`;
    if (advice !== undefined) yield `${' '.repeat(9 + width)}  ${advice}`;
  }
  const count = all.filter(({ status }) => status !== 'ok').length;
  yield count === 0 ? 'Everything is fine.' : `${counted(count, 'finding')}.`;
}
