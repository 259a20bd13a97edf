import type { OptionReader } from '@nest-session/core/store';
import { isSessionTimer, type SessionTimer } from '../timers/session-timer.js';

/** Where Redis notes when sessions end, and who watches the time besides. */
export interface ExpirationsOptions {
  /** `'buckets'`: a set of sessions for each minute. @default 'buckets' */
  readonly store?: 'buckets';
  /** Tells when a session may have ended. @default none */
  readonly timer?: SessionTimer;
}

export interface ResolvedExpirations {
  readonly store: 'buckets';
  readonly timer: SessionTimer | undefined;
}

const STORES = ['buckets'] as const;

/** What the option `expirations` says: a store, a timer, or both. */
export function readExpirations(
  reader: OptionReader,
  given: 'buckets' | SessionTimer | ExpirationsOptions | undefined,
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
