/** A time in which this instance may have missed broadcast events. It ends when the handler is called. */
export interface SessionEventGap {
  /** When the last event before the gap was recorded: epoch milliseconds by the store's clock. */
  readonly since: number;
}

const HANDLES_GAPS = Symbol('@nest-session/core:handles-gaps');

/**
 * Calls a method of a provider or controller when this instance may have missed events for its methods with
 * `@OnSessionEvent(..., { broadcast: true })`: it was without Redis until the events were removed, or Redis lost them.
 * Empty your caches in such a method. Events that are recorded later are delivered after the call.
 */
export function OnSessionEventGap() {
  return <Method extends (gap: SessionEventGap) => unknown>(
    _prototype: object,
    _name: string | symbol,
    descriptor: TypedPropertyDescriptor<Method>,
  ): void => Reflect.defineMetadata(HANDLES_GAPS, true, descriptor.value!);
}

/** Whether `@OnSessionEventGap` marks a method. */
export function handlesGaps(method: unknown): boolean {
  return typeof method === 'function' && Reflect.hasOwnMetadata(HANDLES_GAPS, method);
}
