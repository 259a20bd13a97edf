import { assertOnInstance } from '../discovery/handler-marks.js';

/** A period in which this instance may have missed broadcast events. It ends when the handler is called. */
export interface SessionEventGap {
  /** When the last event before the gap was recorded, in epoch milliseconds by the store's clock. */
  readonly since: number;
}

const HANDLES_GAPS = Symbol('@nest-session/core:handles-gaps');

/**
 * Calls a method of a provider or controller when this instance may have missed events for its methods with
 * `@OnSessionEvent(..., { broadcast: true })`. That happens when it could not reach Redis until the events were
 * removed, or when Redis lost them. Clear your caches in such a method. Later events are delivered after the call.
 */
export function OnSessionEventGap() {
  return <Method extends (gap: SessionEventGap) => unknown>(
    prototype: object,
    name: string | symbol,
    descriptor: TypedPropertyDescriptor<Method>,
  ): void => {
    assertOnInstance('@OnSessionEventGap()', prototype, name);
    Reflect.defineMetadata(HANDLES_GAPS, true, descriptor.value!);
  };
}

/** Whether `@OnSessionEventGap` marks a method. */
export function handlesGaps(method: unknown): boolean {
  return typeof method === 'function' && Reflect.hasOwnMetadata(HANDLES_GAPS, method);
}
