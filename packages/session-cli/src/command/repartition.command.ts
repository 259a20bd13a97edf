import { rangeOfPartitions } from '@nest-session/redis-events/internal';
import { repartition } from '../repartitioning/repartition-run.js';
import type { CommandCall, ExitCode } from './command.js';
import { counted } from './shown.js';
import { UsageError, wholeNumber } from './usage.error.js';

export async function run({ address, values, signal, output }: CommandCall): Promise<ExitCode> {
  const from = wholeNumber('from', values['from']!);
  const to = wholeNumber('to', values['to']!, rangeOfPartitions(address.cluster !== undefined));
  if (from === to) throw new UsageError('--from and --to must be different numbers.');
  const onProgress = ({ step, moved }: { step: string; moved: number }) =>
    output.progress(`${step}: ${counted(moved, 'session')} moved`);
  const { moved } = await repartition(address, { from, to, signal, onProgress });
  return output.report({ moved, partitions: to }, [
    `${counted(moved, 'session')} moved`,
    `All sessions are in ${counted(to, 'partition')}. Set the option partitions to ${to}, and start the applications.`,
  ]);
}
