import { ALL_CLASSES } from '../../notifications/key-event-names.js';
import { SessionPartitions } from '../../keys/session-partitions.js';
import type { OpenStore } from '../store-access.js';
import { inTime } from './examined-node.js';
import { type Check, ok, orOk, warning } from './finding.js';

const NEEDED = ['K', 'x'];

/** Whether Redis announces the sessions that have expired. */
export const NOTIFICATIONS: Check = {
  name: 'notifications',
  ofStore: true,
  async look({ nodes, store }) {
    const { partitions } = store!;
    if (!(partitions instanceof SessionPartitions)) return [ok('Deadlines need no key events')];
    if (await isSortedSet({ ...store!, partitions }))
      return [ok("With expirations: 'sorted-set', no key events are needed")];
    const replies = await Promise.all(
      nodes.map(async ({ address, client }) => ({
        address,
        reply: (await inTime(client.config('GET', 'notify-keyspace-events')).catch(() => [])) as string[],
      })),
    );
    const known = replies.filter(({ reply }) => reply.length === 2);
    if (known.length === 0)
      return [ok('CONFIG is not allowed, so this cannot be read. The log of the application says it')];
    const silent = known.filter(({ reply }) => {
      const flags = reply[1]!.replace('A', ALL_CLASSES);
      return NEEDED.some((flag) => !flags.includes(flag));
    });
    return orOk(
      silent.map(({ address, reply }) =>
        warning(
          `${address} announces no expired sessions: notify-keyspace-events is ${JSON.stringify(reply[1])}. Their ends are noticed up to a minute later`,
          "Set notify-keyspace-events to Kx, also in its configuration file. With the option notifications: 'off', add --ignore notifications.",
        ),
      ),
      'Redis announces expired sessions',
    );
  },
};

async function isSortedSet({ connection, partitions }: OpenStore<SessionPartitions>): Promise<boolean> {
  const counts = await connection.runInAll(partitions, (client, keys) =>
    Promise.all([client.zcard(keys.ends), client.zcard(keys.bucketList)]),
  );
  return counts.some(([ends]) => ends > 0) && counts.every(([, buckets]) => buckets === 0);
}
