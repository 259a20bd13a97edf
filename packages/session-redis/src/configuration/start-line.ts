import { shownAddress } from '../connection/shown-address.js';
import type { ResolvedRedisSessionOptions } from './redis-session.options.js';

/** What the log says at the start: in one line all that somebody has to know who reads on. */
export function startLine({ connection, namespace, partitions }: ResolvedRedisSessionOptions): string {
  const facts = [shownAddress(connection), `namespace ${JSON.stringify(namespace)}`, `partitions ${partitions}`];
  return `Sessions are kept in Redis: ${facts.join('; ')}`;
}
