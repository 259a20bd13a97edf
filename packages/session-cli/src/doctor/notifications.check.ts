import { ALL_CLASSES } from '@nest-session/redis-events/internal';
import { SessionPartitions } from '@nest-session/redis/internal';
import type { OpenStore } from '../command/store-access.js';
import { inTime } from './examined-node.js';
import { type Check, ok, orOk, warning } from './diagnosis.js';

/**
 * What a Redis must announce, by one of some settings, of which the first is best. And what is missing without that.
 */
const OF_OWN = {
  flags: ['Kx', 'Ex'],
  what: 'expired sessions',
  otherwise: "Unless option expirations is 'sorted-set', their ends are noticed up to a minute later",
  // They may be off on purpose.
  unless: " With the options notifications: 'off' or expirations: 'sorted-set', add --ignore notifications.",
};
const OF_SHARED = {
  flags: ['Egx'],
  what: 'what happens to sessions of Spring',
  otherwise: 'Neither application hears what the other one ends',
  unless: '',
};

/** Whether Redis announces the sessions that have expired. */
export const NOTIFICATIONS: Check = {
  ofStore: true,
  async look({ nodes, store }) {
    const { partitions } = store!;
    if (!(partitions instanceof SessionPartitions)) return [ok('Deadlines need no key events')];
    const needed = partitions.owner.holds === 'shared-sessions' ? OF_SHARED : OF_OWN;
    if (needed === OF_OWN && (await isSortedSet({ ...store!, partitions })))
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
      return !needed.flags.some((setting) => setting.split('').every((flag) => flags.includes(flag)));
    });
    return orOk(
      silent.map(({ address, reply }) =>
        warning(
          `${address} does not announce ${needed.what}: notify-keyspace-events is ${JSON.stringify(reply[1])}. ${needed.otherwise}`,
          `Set notify-keyspace-events to ${needed.flags[0]}, also in its configuration file.${needed.unless}`,
        ),
      ),
      `Redis announces ${needed.what}`,
    );
  },
};

async function isSortedSet({ connection, partitions }: OpenStore<SessionPartitions>): Promise<boolean> {
  const counts = await connection.runInAll(partitions, (client, keys) =>
    Promise.all([client.zcard(keys.ends), client.zcard(keys.bucketList)]),
  );
  return counts.some(([ends]) => ends > 0) && counts.every(([, buckets]) => buckets === 0);
}
