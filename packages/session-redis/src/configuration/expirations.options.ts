import type { OptionReader } from '@nest-session/core/internal';
import { isSessionTimer, missingTimerMethods, type SessionTimer, TIMER_METHODS } from '../timers/session-timer.js';

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
  if (isPlainObject(given) && !isMeantAsTimer(given)) {
    const section = reader.section('expirations');
    const store = section.oneOf('store', STORES, 'buckets');
    const timer = section.value('timer', isSessionTimer, `a SessionTimer, but is ${shown(given.timer)}`);
    section.finish();
    return { store, timer };
  }
  const read = reader.value('expirations', isStoreOrTimer, `${ACCEPTED}, but is ${shown(given)}`) ?? 'buckets';
  return typeof read === 'string' ? { store: read, timer: undefined } : { store: 'buckets', timer: read };
}

const ACCEPTED = `${STORES.map((store) => JSON.stringify(store)).join(', ')}, a SessionTimer or { store, timer }`;

function isStoreOrTimer(value: unknown): value is ExpirationStoreName | SessionTimer {
  return STORES.some((store) => store === value) || isSessionTimer(value);
}

/** Of any realm. Only such an object is a group of options: the methods of a class are on its prototype. */
function isPlainObject(value: unknown): value is ExpirationsOptions {
  if (typeof value !== 'object' || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

/** Whether an object has the methods of a timer, or some of them and no option. A timer may keep a `timer` of its own. */
function isMeantAsTimer(value: object): boolean {
  const { length } = missingTimerMethods(value);
  return length === 0 || (length < TIMER_METHODS.length && !('store' in value || 'timer' in value));
}

/** What a value is that cannot be used, and what to do. */
function shown(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value);
  if (typeof value === 'function') return 'a function or a class: pass an instance, as in `new MyTimer()`';
  if (Array.isArray(value)) return 'a list';
  if (typeof value !== 'object' || value === null) return String(value);
  if ('then' in value) return 'a Promise: await it first';
  return `an object without ${missingTimerMethods(value).join(', ')}`;
}
