import { shownText } from '@nest-session/core/internal';
import { lossOf } from '@nest-session/redis-events/internal';
import { counted } from '../command/counted.js';
import { shownBytes } from '../command/shown-time.js';
import type { ExaminedNode } from './examined-node.js';
import { type Check, error, type Diagnosis, ok, seePage, warning } from './diagnosis.js';

const MUCH = 0.75;
const ALMOST_ALL = 0.95;

/** Whether Redis evicts sessions, or is about to refuse them. */
export const MEMORY: Check = {
  look: ({ nodes, store }) =>
    nodes
      .filter(({ info }) => info.size > 0)
      .flatMap((node) => [...findingsOf(node, store?.partitions.owner.holds ?? 'sessions')]),
};

function* findingsOf({ address, info }: ExaminedNode, holds: string): Iterable<Diagnosis> {
  const number = (name: string) => Number(info.get(name) ?? 0);
  const [used, most] = [number('used_memory') - number('mem_not_counted_for_evict'), number('maxmemory')];
  const [policy, evictions] = [info.get('maxmemory_policy') ?? '', number('evicted_keys')];
  const noeviction = 'Set maxmemory-policy to noeviction, also in its configuration file.';
  if (policy !== 'noeviction') {
    yield error(`${address} may evict ${lossOf(holds)}: its maxmemory-policy is ${shownText(policy)}`, noeviction);
  }
  // Without the setting, it is no finding any more: nothing but a restart of Redis resets the number.
  const loss = `${address} has evicted ${counted(evictions, 'key')} since its start`;
  if (evictions > 0)
    yield policy === 'noeviction' ? ok(loss) : warning(loss, `${noeviction} Visitors were signed out.`);
  const share = most === 0 ? 0 : used / most;
  const size = most === 0 ? `${shownBytes(used)}, without a limit` : `${shownBytes(used)} of ${shownBytes(most)}`;
  const advice = `Raise maxmemory, or free memory. ${seePage('Scaling')}`;
  if (share >= ALMOST_ALL) yield error(`${address} is full, and then saves nothing: it uses ${size}`, advice);
  else if (share >= MUCH) yield warning(`${address} is almost full: it uses ${size}`, advice);
  else yield ok(`${address} uses ${size}`);
}
