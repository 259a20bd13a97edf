import { askRedis } from './ask-redis.js';
import type { RedisServer } from './redis.server.js';

/** A node as another node, or the node itself, sees it. */
export interface KnownNode {
  readonly id: string;
  readonly port: number;
  /** The flags, such as `master`, `slave`, `handshake` and `fail?`. */
  readonly flags: readonly string[];
  /** The id of its primary, or `-` if the node is a primary itself. */
  readonly primary: string;
  readonly slots: readonly number[];
}

/** How long to wait for a frozen node. */
const TIMEOUT = 500;

/** Returns the reply of a node to CLUSTER NODES, or undefined if it is stopped or does not reply. */
export async function viewOf(node: RedisServer): Promise<KnownNode[] | undefined> {
  if (!node.isRunning) return undefined;
  try {
    const [text] = await askRedis(node.port, [['CLUSTER', 'NODES']], TIMEOUT);
    return String(text).trim().split('\n').map(knownNode);
  } catch {
    return undefined;
  }
}

/** Whether two nodes agree on the owner of each slot, and on the primary of each of these nodes. */
export function agree(one: readonly KnownNode[], other: readonly KnownNode[], ports: ReadonlySet<number>): boolean {
  const primaries = (view: readonly KnownNode[]) => new Map(view.map(({ port, primary }) => [port, primary]));
  const [these, those] = [primaries(one), primaries(other)];
  const owners = ownersIn(other);
  return (
    [...ports].every((port) => these.get(port) === those.get(port)) &&
    ownersIn(one).every((port, slot) => port === owners[slot])
  );
}

/** The port of the primary of each slot. */
export function ownersIn(view: readonly KnownNode[]): readonly (number | undefined)[] {
  const owners = Array<number | undefined>(SLOTS).fill(undefined);
  for (const { slots, port } of view) for (const slot of slots) owners[slot] = port;
  return owners;
}

export const SLOTS = 16_384;

function knownNode(line: string): KnownNode {
  const [id = '', address = '', flags = '', primary = '', , , , , ...ranges] = line.split(' ');
  const port = Number(/:(\d+)(@|$|,)/.exec(address)?.[1]);
  // A migrating slot has an additional entry in brackets.
  const slots = ranges.filter((range) => !range.startsWith('[')).flatMap(slotsIn);
  return { id, port, flags: flags.split(','), primary, slots };
}

function slotsIn(range: string): number[] {
  const [first, last = first] = range.split('-').map(Number) as [number, number?];
  return Array.from({ length: last - first + 1 }, (_, i) => first + i);
}
