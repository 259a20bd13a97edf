import { setTimeout as pause } from 'node:timers/promises';
import { byPosition, type PartitionKeys, toStreamEntry } from '@nest-session/redis-events/internal';
import type { CommandCall, ExitCode } from './command.js';
import { type OpenStore, withStore } from './store-access.js';
import { shownEvent, storeEvents, toldEvent } from './store-content.js';
import { shownTime } from './shown.js';

const BATCH_SIZE = 100;
// Milliseconds between two looks, each one command in every partition.
const [INTERVAL, INTERVAL_OF_MANY] = [250, 1000];
const MANY = 8;
const NOTHING = '0-0';

/** Reads events beside all groups: nothing is kept for it, and nothing is recorded because of it. */
export async function run(call: CommandCall): Promise<ExitCode> {
  await withStore(call, (store) => watch(call, store)).catch((error: unknown) => {
    // The signal has closed the connections.
    if (!call.signal.aborted) throw error;
  });
  return 0;
}

async function watch({ output, signal }: CommandCall, store: OpenStore): Promise<void> {
  const { partitions, connection, shownId } = store;
  const { scripts } = storeEvents(store);
  const positions = new Map<PartitionKeys, string>();
  const interval = partitions.count > MANY ? INTERVAL_OF_MANY : INTERVAL;
  const ended = AbortSignal.any([signal, output.closed]);
  const lookAt = async (keys: PartitionKeys) => {
    const position = positions.get(keys);
    const [word, reply] = await connection.run(
      // Without types, it is not told of events that have made room for ends.
      (client) => scripts(client).readEvents(keys, position, BATCH_SIZE, [], NOTHING),
      keys.prefix,
    );
    if (word === 'read') return reply.map((entry) => toStreamEntry(keys, entry));
    positions.set(keys, reply);
    if (word === 'gap') output.note('Some events were removed before they were shown.');
    return [];
  };
  output.note('Waiting for events. Press Ctrl+C to end.');
  while (!ended.aborted) {
    const entries = (await Promise.all(partitions.all.map(lookAt))).flat().sort(byPosition);
    for (const entry of entries) {
      positions.set(entry.partition, entry.position);
      const event = toldEvent(entry, shownId);
      if (event && !ended.aborted) await output.event(event, `${shownTime(event.at)} ${shownEvent(event)}`);
    }
    if (entries.length === 0) await pause(interval, undefined, { signal: ended }).catch(() => undefined);
  }
}
