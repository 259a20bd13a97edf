import type { Finding } from '@nest-session/redis-events/internal';
import type { Rule } from '../scripts/verification/verification.scripts.js';
import { RULES } from '../verification/rules.js';
import { type Verification, verify } from '../verification/verify.js';
import type { CommandCall, ExitCode } from './command.js';
import { shownExample } from './shown-example.js';
import { adviceForFindings, exitCodeOfFindings, linesOfFinding, summaryOfFindings } from './shown-findings.js';
import { assertNotBeside, type OpenStore, withStore, WRITES } from './store-access.js';
import { UsageError } from './usage.error.js';
import { wholeNumber } from './whole-number.js';

/** Looks for what breaks a rule of the data model. */
export async function run(call: CommandCall): Promise<ExitCode> {
  const repair = call.flags.has('repair');
  const rate = rateOf(call);
  const { signal, output } = call;
  const onProgress = (looked: number) => output.progress(`${looked} keys and entries`);
  const look = async ({ connections: { background: client }, partitions, options, shownId }: OpenStore) => {
    assertNotBeside(partitions);
    const asked = { repair, signal, onProgress, ...(rate && { rate }) };
    const verification = shown(await verify({ client, partitions, options }, asked), shownId);
    output.report(...reportOf(verification, repair));
    return exitCodeOfFindings(verification, repair);
  };
  return repair ? withStore(call, look, WRITES) : withStore(call, look);
}

function rateOf({ values: { rate } }: CommandCall): number | undefined {
  if (rate === undefined) return undefined;
  const number = wholeNumber('rate', rate);
  if (number > 0) return number;
  throw new UsageError('--rate must be at least 1.');
}

/** With ids as logs show them. */
function shown({ findings, left, looked }: Verification, shownId: (id: string) => string): Verification {
  const each = ({ rule, count, examples }: Finding<Rule>) => {
    return { rule, count, examples: examples.map((example) => shownExample(example, shownId)) };
  };
  return { findings: findings.map(each), left: left.map(each), looked };
}

function reportOf({ findings, left, looked }: Verification, repair: boolean): [json: object, lines: string[]] {
  const json = { findings, ...(repair && { left }), looked };
  const found = findings.flatMap((each) => linesOfFinding(each, RULES, repair));
  const summary = summaryOfFindings(findings, RULES, looked);
  return [json, [...found, summary, ...adviceForFindings(findings, left, repair)]];
}
