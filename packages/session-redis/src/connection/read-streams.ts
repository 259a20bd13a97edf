import { setTimeout as pause } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import { isCluster } from './node-with.js';

// Milliseconds between two reads on a Cluster while there is nothing new.
const POLL = 500;

/**
 * Reads some streams. Where one server has all of them, `ask` is called once, with `wait`: the milliseconds to wait for an
 * entry. On a Cluster no command can read the streams of two slots, so it is called for each stream alone, without waiting;
 * when there is nothing new, the result comes a while later.
 */
export async function readStreams<Stream, Found>(
  client: Redis,
  streams: readonly Stream[],
  wait: number | undefined,
  ask: (streams: readonly Stream[], wait: number | undefined) => Promise<Found[] | null>,
): Promise<Found[]> {
  if (!isCluster(client)) return (await ask(streams, wait)) ?? [];
  const replies = await Promise.all(streams.map((stream) => ask([stream], undefined)));
  const found = replies.flatMap((reply) => reply ?? []);
  if (found.length === 0 && wait !== undefined) await pause(POLL, undefined, { ref: false });
  return found;
}
