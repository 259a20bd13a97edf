import type { RequestConnection, ScriptsOn } from '@nest-session/redis-events/internal';
import type { SessionPartitions } from '../keys/session-partitions.js';
import type { SessionScripts } from '../scripts/session/session.scripts.js';

/**
 * Says that every session that was created and signed in to until a time is over, and tells the instances. They record
 * the ends. Returns the time until which that holds in all partitions; it is later than `at` if sessions were ended so
 * before.
 * @param at epoch milliseconds, by default now
 */
export async function raiseEpochs(
  connection: RequestConnection,
  scripts: ScriptsOn<SessionScripts>,
  partitions: SessionPartitions,
  at?: number,
): Promise<number> {
  // Send the signal together with the script, whatever the replies will be. A signal from inside the script would be
  // lost during a slot migration. Send it again after the reply: if Redis has forgotten the script, the first signal
  // comes before the script.
  const replies = await connection.writeInAll(partitions, (client, keys) => {
    const signal = () => keys.hasSignals && client.spublish(keys.events, 'epoch');
    const raised = scripts(client).raiseEpoch(keys, at);
    return Promise.all([raised, signal(), raised.then(signal)]);
  });
  return Math.min(...replies.map(([epoch]) => Number(epoch)));
}
