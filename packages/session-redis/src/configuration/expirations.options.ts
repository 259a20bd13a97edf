import type { OptionReader } from '@nest-session/core/store';
import { isSessionTimer, type SessionTimer } from '../timers/session-timer.js';

const STORES = ['buckets', 'sorted-set'] as const;

/** Where the scripts note when a session ends. */
export type ExpirationStoreName = (typeof STORES)[number];

/** Where the scripts note when a session ends, and who watches the time besides. */
export interface ExpirationsOptions {
  /** @default 'buckets' */
  readonly store?: ExpirationStoreName;
  /** Tells when a session may have ended. @default none */
  readonly timer?: SessionTimer;
}

export interface ResolvedExpirations {
  readonly store: ExpirationStoreName;
  readonly timer: SessionTimer | undefined;
}

/** What the option `expirations` says: a store, a timer, or both. */
export function readExpirations(
  reader: OptionReader,
  given: ExpirationStoreName | SessionTimer | ExpirationsOptions | undefined,
): ResolvedExpirations {
  if (typeof given !== 'object') {
    return { store: reader.oneOf('expirations', STORES, 'buckets'), timer: undefined };
  }
  if (isSessionTimer(given)) {
    return { store: 'buckets', timer: reader.value('expirations', isSessionTimer, TIMER) };
  }
  const section = reader.section('expirations');
  const store = section.oneOf('store', STORES, 'buckets');
  const timer = section.value('timer', isSessionTimer, TIMER);
  section.finish();
  return { store, timer };
}

const TIMER = 'a SessionTimer';
