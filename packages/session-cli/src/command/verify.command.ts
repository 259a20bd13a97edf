import { RULES } from '../verification/rules.js';
import { type Verification, verify } from '../verification/verify.js';
import type { CommandCall, ExitCode } from './command.js';
import { assertNotBeside, type OpenStore, shownExample, withStore } from './store-access.js';
import { UsageError, wholeNumber } from './usage.error.js';

export async function run(call: CommandCall): Promise<ExitCode> {
  const { signal, output, flags, values } = call;
  const repair = flags.has('repair');
  const pace = values['rate'] === undefined ? {} : { rate: wholeNumber('rate', values['rate']) };
  if (pace.rate === 0) throw new UsageError('--rate must be at least 1.');
  const onProgress = (looked: number) => output.progress(`${looked} keys and entries`);
  const look = async ({ connections: { background: client }, partitions, options, shownId }: OpenStore) => {
    assertNotBeside(partitions);
    const found = await verify({ client, partitions, options }, { repair, signal, onProgress, ...pace });
    const shown = (all: Verification['findings']) =>
      all.map((each) => ({ ...each, examples: each.examples.map((text) => shownExample(text, shownId)) }));
    return report(call, { findings: shown(found.findings), left: shown(found.left), looked: found.looked }, repair);
  };
  return withStore(call, look, { writes: repair });
}

function report({ output }: CommandCall, { findings, left, looked }: Verification, repair: boolean): ExitCode {
  const text: string[] = [];
  for (const { rule, count, examples } of findings) {
    const { problem, mending } = RULES[rule];
    text.push(`${rule}: ${count}. ${problem.charAt(0).toUpperCase()}${problem.slice(1)}.`);
    text.push(`  such as ${examples.join(', ')}`, `  ${repair ? 'mended' : '--repair'}: ${mending}`);
  }
  const [broken, all] = [findings.length, Object.keys(RULES).length];
  const summary = `${broken || 'None'} of the ${all} rules ${broken > 1 ? 'are' : 'is'} broken.`;
  text.push(`${summary} ${looked} keys and entries were looked at.`);
  if (!repair && broken > 0) text.push('To mend it, run the command again with --repair.');
  if (left.length > 0)
    text.push(`Still there after the repair: ${left.map(({ rule, count }) => `${rule} ${count}`).join(', ')}.`);
  const code = repair ? (left.length > 0 ? 3 : 0) : broken > 0 ? 2 : 0;
  return output.report({ findings, ...(repair && { left }), looked }, text, code);
}
