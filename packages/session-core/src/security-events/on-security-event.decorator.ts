import type { SecurityEvent, SecurityEventKind } from './security-events.js';
import { markMethod } from '../discovery/handler-marks.js';

const HANDLED_KINDS = Symbol('@nest-session/core:handled-security-events');
const BESIDE_THE_LOG = Symbol('@nest-session/core:beside-the-log');

/**
 * Calls a method of a provider or controller with the security events of these kinds, or of all kinds when none is
 * named. The call happens in the process that saw the event, shortly after it, and delays no request. Failed calls are
 * not retried. The log names the first failure of a method and its first call that takes longer than 30 s. At most 16
 * calls of a method run at a time, and at most 1,000 events wait for it. The method misses events beyond that, and the
 * log says so once.
 */
export function OnSecurityEvent(...kinds: SecurityEventKind[]) {
  return markMethod<SecurityEvent>('@OnSecurityEvent()', HANDLED_KINDS, () => kinds);
}

/**
 * Marks an `@OnSecurityEvent` method that only counts: what it hears of is logged as without it. For the packages of
 * @nest-session.
 */
export function BesideTheLog() {
  return markMethod<SecurityEvent>('@BesideTheLog()', BESIDE_THE_LOG, () => true);
}

export function isBesideTheLog(method: unknown): boolean {
  return Reflect.hasOwnMetadata(BESIDE_THE_LOG, method as object);
}

/** The kinds that `@OnSecurityEvent` marks a method to handle. An empty list means all. */
export function handledKinds(method: unknown): readonly SecurityEventKind[] | undefined {
  if (typeof method !== 'function') return undefined;
  return Reflect.getOwnMetadata(HANDLED_KINDS, method) as SecurityEventKind[] | undefined;
}
