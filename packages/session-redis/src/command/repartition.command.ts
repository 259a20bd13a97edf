import { repartition } from '../repartitioning/repartition.js';
import type { CommandCall, ExitCode } from './command.js';
import { wholeNumber } from './whole-number.js';

/** Moves the sessions of a namespace to another number of partitions. */
export async function run({ address, values, signal, output }: CommandCall): Promise<ExitCode> {
  const [from, to] = [wholeNumber('from', values['from']!), wholeNumber('to', values['to']!)];
  const onProgress = ({ step, moved }: { step: string; moved: number }) =>
    output.progress(`${step}: ${moved} sessions moved`);
  const { moved } = await repartition(address, { from, to, signal, onProgress });
  const partitions = to === 1 ? '1 partition' : `${to} partitions`;
  output.report({ moved, partitions: to }, [
    `${moved} sessions moved`,
    `All sessions are in ${partitions}. Set the option partitions to ${to}, and start the applications.`,
  ]);
  return 0;
}
