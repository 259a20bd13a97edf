import type { SessionTelemetry } from '@nest-session/core/internal';
import { DEAD_LETTER_BYTES } from '@nest-session/redis-events/internal';
import type { ExpirationStoreName } from '../../configuration/expirations.options.js';
import type { ResolvedRedisSessionOptions } from '../../configuration/redis-session.options.js';
import type { SessionPartitions } from '../../keys/session-partitions.js';

/** Where the scripts note the end of a session, how long they keep ended ones, and how much room dead letters have. */
export interface KeepingRules {
  /** @default 'buckets' */
  readonly store?: ExpirationStoreName;
  /** Milliseconds by which the session hash outlives the session, so that handlers can still read the data. */
  readonly grace: number;
  /** Milliseconds for which the session hash is kept after the end was recorded: at least `grace`. */
  readonly retention: number;
  /** The W3C traceparent of what causes a change now, for its event; undefined: none. */
  readonly traceparent?: (() => string | undefined) | undefined;
  /** `maxSize`: most bytes of the dead letters of a partition. */
  readonly deadLetters: { readonly maxSize: number };
}

/** What options of the module say of that. */
export function keepingRules(
  { grace, events, expirations }: Pick<ResolvedRedisSessionOptions, 'grace' | 'events' | 'expirations'>,
  partitions: SessionPartitions,
  telemetry?: Pick<SessionTelemetry, 'traceparent'>,
): KeepingRules {
  const maxSize = partitions.shareOf(DEAD_LETTER_BYTES);
  const traceparent = telemetry && (() => telemetry.traceparent());
  return { grace, retention: events.retention, store: expirations.store, traceparent, deadLetters: { maxSize } };
}
