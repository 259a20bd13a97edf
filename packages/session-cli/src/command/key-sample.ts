import { patternOf } from '@nest-session/redis-events/internal';
import { SessionPartitions } from '@nest-session/redis/internal';
import type { CommandCall } from './command.js';
import type { OpenStore } from './store-access.js';
import { nodesOf } from './store-nodes.js';

/** Keys of one kind, as far as they were measured. */
export interface KindOfKeys {
  readonly kind: string;
  readonly sampled: number;
  readonly averageBytes: number;
  readonly largestBytes: number;
}

// Keys that SCAN looks at per call, and calls per node: other applications may have many keys in this Redis.
const SCANNED_AT_ONCE = 500;
const MOST_CALLS = 400;

const KINDS_OF_SESSIONS: readonly (readonly [kind: string, name: RegExp])[] = [
  ['shadow keys', /^sessions:expires:/],
  ['forwarding marks', /^sessions:(forwarded|taken-over):/],
  ['session hashes', /^sessions:/],
  ['ends', /^(expirations|ends)/],
  ['indexes', /^(index|stray|ledger|revoked):/],
];
const KINDS_OF_DEADLINES: readonly (readonly [kind: string, name: RegExp])[] = [
  ['deadlines', /^deadlines:/],
  ['due lists', /^due/],
];
const COMMON: readonly (readonly [kind: string, name: RegExp])[] = [['events and groups', /^events/]];

/** Measures some keys of a namespace, the first ones that SCAN finds on each node. */
export async function sampleKeys(
  store: OpenStore,
  size: number,
  { signal, output }: Pick<CommandCall, 'signal' | 'output'>,
): Promise<KindOfKeys[]> {
  if (size === 0) return [];
  const nodes = await nodesOf(store);
  const kinds = new Map<string, { sampled: number; bytes: number; largestBytes: number }>();
  let measured = 0;
  for (const [i, { key }] of nodes.entries()) {
    const most = Math.ceil((size * (i + 1)) / nodes.length);
    let cursor = '0';
    for (let calls = 0; calls < MOST_CALLS && measured < most && !signal.aborted; calls++) {
      const [next, found] = await scan(store, key, cursor);
      const some = found.slice(0, most - measured);
      for (const [kind, bytes] of await measure(store, key, some)) {
        const known = kinds.get(kind) ?? { sampled: 0, bytes: 0, largestBytes: 0 };
        const largestBytes = Math.max(known.largestBytes, bytes);
        kinds.set(kind, { sampled: known.sampled + 1, bytes: known.bytes + bytes, largestBytes });
      }
      measured += some.length;
      output.progress(`${measured} keys measured`);
      cursor = next;
      if (cursor === '0') break;
    }
  }
  return [...kinds].map(([kind, { sampled, bytes, largestBytes }]) => ({
    kind,
    sampled,
    averageBytes: Math.round(bytes / sampled),
    largestBytes,
  }));
}

function scan({ connection, partitions }: OpenStore, key: string, cursor: string) {
  const pattern = `${patternOf(partitions.namespace)}:*`;
  return connection.run((client) => client.scan(cursor, 'MATCH', pattern, 'COUNT', SCANNED_AT_ONCE), key);
}

/** A key that is gone by then is left out. */
async function measure(
  store: OpenStore,
  node: string,
  keys: readonly string[],
): Promise<[kind: string, bytes: number][]> {
  const { connection } = store;
  const sizes = await connection.run(
    (client) => Promise.all(keys.map((key) => client.memory('USAGE', key).catch(ifMoved))),
    node,
  );
  return keys.flatMap((key, i) => (sizes[i] == null ? [] : [[kindOf(store, key), sizes[i]] as [string, number]]));
}

/** A node of a Cluster may have given a slot away. */
function ifMoved(error: unknown): null {
  if (/^(MOVED|ASK) /.test((error as Error).message)) return null;
  throw error;
}

function kindOf({ partitions }: OpenStore, key: string): string {
  const name = key.slice(partitions.namespace.length + 1).replace(/^\{[^}]*\}:/, '');
  const own = partitions instanceof SessionPartitions ? KINDS_OF_SESSIONS : KINDS_OF_DEADLINES;
  return [...own, ...COMMON].find(([, pattern]) => pattern.test(name))?.[0] ?? 'others';
}
