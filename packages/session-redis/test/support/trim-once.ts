import { type EventTrimmer, TrimCounter } from '../../../redis-events/src/delivery/event.trimmer.js';
import type { Partitions } from '../../../redis-events/src/partitions/partitions.js';

/** Trims every partition, one after the other, and tells of it as the cleanup does. */
export async function trimOnce(
  trimmer: EventTrimmer,
  { signal }: { readonly signal?: AbortSignal } = {},
): Promise<Pick<TrimCounter, 'removed' | 'dropped'>> {
  const counter = new TrimCounter();
  const { all } = Reflect.get(trimmer, 'partitions') as Partitions;
  for (const partition of all) await trimmer.trim(partition, counter, signal);
  await trimmer.checkGroups(signal);
  trimmer.report(counter);
  const { removed, dropped } = counter;
  return { removed, dropped };
}
