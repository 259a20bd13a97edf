import { RULES } from '../verification/rules.js';
import { verify } from '../verification/verify.js';
import type { CommandCall, ExitCode } from './command.js';
import { reportFindings } from './findings.js';
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
    return reportFindings(output, found, { rules: RULES, repair, show: (text) => shownExample(text, shownId) });
  };
  return withStore(call, look, { writes: repair });
}
