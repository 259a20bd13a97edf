import type { OptionReader } from '@nest-session/core/internal';
import { missingTimerMethods, type SessionTimer } from '../timers/session-timer.js';

const STORES = ['buckets', 'sorted-set'] as const;

export type ExpirationStoreName = (typeof STORES)[number];

/** The option `expirations`: a store; or a timer, beside the buckets. */
export function readExpirations(
  reader: OptionReader,
  given: unknown,
): { readonly store: ExpirationStoreName; readonly timer: SessionTimer | undefined } {
  const read = reader.value('expirations', isStoreOrTimer, `${ACCEPTED}, but is ${shown(given)}`) ?? 'buckets';
  return typeof read === 'string' ? { store: read, timer: undefined } : { store: 'buckets', timer: read };
}

const ACCEPTED = `${STORES.map((store) => JSON.stringify(store)).join(', ')} or a SessionTimer`;

function isStoreOrTimer(value: unknown): value is ExpirationStoreName | SessionTimer {
  return STORES.some((store) => store === value) || missingTimerMethods(value).length === 0;
}

function shown(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value);
  if (typeof value === 'function') return 'a function or a class: pass an instance, as in `new MyTimer()`';
  if (Array.isArray(value)) return 'a list';
  if (typeof value !== 'object' || value === null) return String(value);
  if ('then' in value) return 'a Promise: await it first';
  return `an object without ${missingTimerMethods(value).join(', ')}`;
}
