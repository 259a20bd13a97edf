/** A time in which this instance may have missed events that are broadcast. It ends with the call that tells of it. */
export interface SessionEventGap {
  /** When the last event before the gap was recorded: epoch milliseconds by the store's clock. */
  readonly since: number;
}

const HANDLES_GAPS = Symbol('@nest-session/core:handles-gaps');

/**
 * Has a method of a provider or controller called when this instance may have missed events for its methods with
 * `@OnSessionEvent(..., { broadcast: true })`: it was without Redis for so long that they were removed meanwhile, or
 * Redis has lost them. A cache is emptied here. Events that are recorded later are delivered after the call.
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
