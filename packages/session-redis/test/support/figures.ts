import type { Redis } from 'ioredis';

export interface CommandFigures {
  readonly calls: number;
  /** Of the server's time, for all calls. */
  readonly microseconds: number;
  /** Of one call, rounded up to a power of two by the server's histogram. */
  readonly longest: string;
}

/** The cost of a command since the statistics of the server were reset. */
export async function figures(client: Redis, command: string): Promise<CommandFigures> {
  const stats = new RegExp(`cmdstat_${command}:calls=(\\d+),usec=(\\d+)`).exec(await client.info('commandstats'));
  const reply = (await client.call('LATENCY', 'HISTOGRAM', command)) as [string, (string | unknown[])[]] | [];
  const buckets = (reply[1]?.[3] ?? []) as unknown as number[];
  return { calls: Number(stats?.[1]), microseconds: Number(stats?.[2]), longest: `< ${buckets.at(-2)} us` };
}

/** Prints a figure for the reader of the run; no assertion depends on it. */
export function print(line: string): void {
  process.stdout.write(`\n  ${line}\n`);
}
