import type { Redis } from 'ioredis';

export interface CommandCount {
  readonly calls: number;
  /** The calls that Redis replied to with an error. */
  readonly failed: number;
}

/** How often each command was called since `CONFIG RESETSTAT`, by scripts as well, by its name: `xgroup|create`. */
export async function commandStats(client: Redis): Promise<Map<string, CommandCount>> {
  const stats = await client.info('commandstats');
  const lines = [...stats.matchAll(/^cmdstat_([^:]+):calls=(\d+),.*failed_calls=(\d+)/gm)];
  return new Map(lines.map(([, name, calls, failed]) => [name!, { calls: Number(calls), failed: Number(failed) }]));
}
