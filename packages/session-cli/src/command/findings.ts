import type { Finding } from '@nest-session/redis-events/internal';
import type { CommandOutput } from './command-output.js';
import type { ExitCode } from './command.js';

interface Found<Name extends string> {
  readonly findings: readonly Finding<Name>[];
  readonly left: readonly Finding<Name>[];
  /** How many keys and entries were looked at. */
  readonly looked: number;
}

interface Report<Name extends string> {
  /** What each rule is broken by, and what mends it: undefined if no command can. */
  readonly rules: Readonly<Record<Name, { readonly problem: string; readonly mending?: string }>>;
  readonly repair: boolean;
  readonly show: (example: string, rule: Name) => string;
  readonly json?: object;
  readonly lines?: readonly string[];
}

export function reportFindings<Name extends string>(
  output: CommandOutput,
  found: Found<Name>,
  { rules, repair, show, json, lines = [] }: Report<Name>,
): ExitCode {
  const shown = (all: readonly Finding<Name>[]) =>
    all.map(({ rule, count, examples }) => ({ rule, count, examples: examples.map((each) => show(each, rule)) }));
  const [findings, left] = [shown(found.findings), shown(found.left)];
  const text = [...lines];
  for (const { rule, count, examples } of findings) {
    const { problem, mending } = rules[rule];
    text.push(`${rule}: ${count}. ${problem.charAt(0).toUpperCase()}${problem.slice(1)}.`);
    text.push(`  such as ${examples.join(', ')}`);
    if (mending !== undefined) text.push(repair ? `  mended: ${mending}` : `  --repair: ${mending}`);
  }
  const [broken, all] = [findings.length, Object.keys(rules).length];
  const summary = `${broken || 'None'} of the ${all} rules ${broken > 1 ? 'are' : 'is'} broken.`;
  text.push(`${summary} ${found.looked} keys and entries were looked at.`);
  if (!repair && findings.some(({ rule }) => rules[rule].mending !== undefined))
    text.push('To mend it, run the command again with --repair.');
  if (left.length > 0)
    text.push(`Still there after the repair: ${left.map(({ rule, count }) => `${rule} ${count}`).join(', ')}.`);
  const code = repair ? (left.length > 0 ? 3 : 0) : broken > 0 ? 2 : 0;
  return output.report({ ...json, findings, ...(repair && { left }), looked: found.looked }, text, code);
}
