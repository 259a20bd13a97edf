import type { Finding } from '@nest-session/redis-events/internal';
import type { ExitCode } from './command.js';

/** What a rule is broken by, and what mends it: undefined if no command can. */
interface ShownRule {
  readonly problem: string;
  readonly mending?: string;
}

interface Found<Name extends string> {
  readonly findings: readonly Finding<Name>[];
  /** After a repair. */
  readonly left: readonly Finding<Name>[];
}

export function exitCodeOfFindings({ findings, left }: Found<string>, repair: boolean): ExitCode {
  if (repair) return left.length > 0 ? 3 : 0;
  return findings.length > 0 ? 2 : 0;
}

/** @param rules the texts of all rules */
export function linesOfFinding<Name extends string>(
  { rule, count, examples }: Finding<Name>,
  rules: Readonly<Record<Name, ShownRule>>,
  repair: boolean,
): string[] {
  const { problem, mending } = rules[rule];
  const lines = [`${rule}: ${count}. ${capital(problem)}.`, `  such as ${examples.join(', ')}`];
  if (mending !== undefined) lines.push(repair ? `  mended: ${mending}` : `  --repair: ${mending}`);
  return lines;
}

/** How many of the rules are broken, and how much was looked at. */
export function summaryOfFindings(findings: readonly object[], rules: object, looked: number): string {
  const [broken, all] = [findings.length, Object.keys(rules).length];
  const rule = `${broken || 'None'} of the ${all} rules ${broken > 1 ? 'are' : 'is'} broken`;
  return `${rule}. ${looked} keys and entries were looked at.`;
}

/** What to do about them. */
export function adviceForFindings(
  findings: readonly Finding<string>[],
  left: readonly Finding<string>[],
  repair: boolean,
): string[] {
  if (findings.length > 0 && !repair) return ['To mend it, run the command again with --repair.'];
  const rules = left.map(({ rule, count }) => `${rule} ${count}`);
  return rules.length > 0 ? [`Still there after the repair: ${rules.join(', ')}.`] : [];
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
