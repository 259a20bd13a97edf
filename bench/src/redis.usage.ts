import type { Redis } from 'ioredis';

/** What a Redis has done so far. */
export interface RedisUsage {
  /** Microseconds of processor time, those of the system's calls for its sockets included. */
  readonly processorTime: number;
  /** Microseconds inside of scripts, and inside of the commands that clients and scripts have called. */
  readonly inScripts: number;
  readonly inCommands: number;
  /** Commands that clients and scripts have called, calls of scripts not among them. */
  readonly commands: number;
}

// What measures, and what subscribes and waits in the background.
const NOT_COUNTED = new Set(['info', 'ping', 'xreadgroup', 'xread', 'slowlog', 'config', 'select', 'hello', 'client']);
const SCRIPTS = new Set(['eval', 'evalsha', 'fcall']);

export async function redisUsage(client: Redis): Promise<RedisUsage> {
  const cpu = await client.info('cpu');
  const commands = await client.info('commandstats');
  const processorTime = 1e6 * (field(cpu, 'used_cpu_user') + field(cpu, 'used_cpu_sys'));
  const stats = [...commands.matchAll(/^cmdstat_([^:|]+)(?:\|[^:]*)?:calls=(\d+),usec=(\d+)/gm)]
    .map(([, name = '', calls, usec]) => ({ name, calls: Number(calls), usec: Number(usec) }))
    .filter(({ name }) => !NOT_COUNTED.has(name));
  const sum = (some: typeof stats, what: 'calls' | 'usec') => some.reduce((total, each) => total + each[what], 0);
  const scripts = stats.filter(({ name }) => SCRIPTS.has(name));
  const others = stats.filter(({ name }) => !SCRIPTS.has(name));
  return {
    processorTime,
    inScripts: sum(scripts, 'usec'),
    inCommands: sum(others, 'usec'),
    commands: sum(others, 'calls'),
  };
}

function field(info: string, name: string): number {
  return Number(new RegExp(`^${name}:([\\d.]+)`, 'm').exec(info)?.[1]);
}
