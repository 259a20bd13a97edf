import type { OptionReader } from '../option-reading/option.reader.js';
import type { MaxSessions } from '../session/session-state.js';

/** What happens to a sign-in when its principal has as many sessions as allowed. */
type WhenMaxSessionsReached = (typeof WAYS)[number];

const WAYS = ['end-oldest', 'refuse'] as const;

// A sign-in that reaches the limit looks at each session of the principal.
const MOST = 1000;

/** How many live sessions a principal may have. */
export interface MaxSessionsOptions {
  /** The number of sessions, from 1 to 1000. */
  perPrincipal: number;
  /**
   * - `'end-oldest'`: the session whose sign-in is the longest ago ends, as deleted, with its event.
   * - `'refuse'`: nothing is saved, and the save throws a `TooManySessionsError`, 409.
   * @default 'end-oldest'
   */
  whenReached?: WhenMaxSessionsReached;
}

/** Reads the option `maxSessions`. Undefined when there is no limit. */
export function readMaxSessions(parent: OptionReader): MaxSessions | undefined {
  if (parent.value('maxSessions', isObject, 'an object such as { perPrincipal: 5 }') === undefined) return undefined;
  const reader = parent.section('maxSessions');
  const perPrincipal = reader.integer('perPrincipal', 0, { atLeast: 1, atMost: MOST });
  const whenReached = reader.oneOf('whenReached', WAYS, 'end-oldest');
  reader.finish();
  return { perPrincipal, whenReached };
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
