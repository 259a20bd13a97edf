import { markMethod } from '@nest-session/core/internal';
import type { ProviderEvent, ProviderEventName } from './provider-event.js';

const HANDLED_NAMES = Symbol('@nest-session/provider-logout:handled-events');

/**
 * Calls a method of a provider or controller with what identity providers tell, by these names or all. The call happens
 * in the process that received it, after the sessions have ended, and the provider does not wait for it. Failed calls
 * are not retried; the log names the first failure of a method. At most 16 calls of a method run at a time, and at most
 * 1,000 events wait for it.
 */
export function OnProviderEvent(...names: ProviderEvent['name'][] | ProviderEventName[]) {
  return markMethod<ProviderEvent>('@OnProviderEvent()', HANDLED_NAMES, () => names);
}

/** Undefined for a method that is no handler. An empty list means all. */
export function handledNames(method: unknown): readonly string[] | undefined {
  if (typeof method !== 'function') return undefined;
  return Reflect.getOwnMetadata(HANDLED_NAMES, method) as string[] | undefined;
}
