import type { SessionEvent } from './session.events.js';

/** The class of an event, or a base class such as `SessionEvent`, which stands for all classes that extend it. */
export type SessionEventClass<E extends SessionEvent = SessionEvent> = abstract new (...args: never[]) => E;

/** Options of `@OnSessionEvent`. */
export interface OnSessionEventOptions {
  /**
   * Calls the method on every instance instead of on one instance of the group. Use it for per-instance state such as
   * caches and open sockets. An instance receives the events that are recorded while it runs. A failure is logged and
   * not retried. An `@OnSessionEventGap` method is called when events may have been missed.
   * @default false
   */
  readonly broadcast?: boolean;
}

/** An event that a method is marked to handle. */
export interface HandledEvent {
  readonly eventClass: SessionEventClass;
  readonly broadcast: boolean;
}

const HANDLED_EVENTS = Symbol('@nest-session/core:handled-events');

/**
 * Calls a method of a provider or controller with every event of a class; use it several times for several classes.
 * A promise that the method returns is awaited. If the method throws, the event is retried. An event is delivered at
 * least once, and `event.id` is the same at every delivery.
 */
export function OnSessionEvent<E extends SessionEvent>(
  eventClass: SessionEventClass<E>,
  { broadcast = false }: OnSessionEventOptions = {},
) {
  return <Method extends (event: E) => unknown>(
    _prototype: object,
    _name: string | symbol,
    descriptor: TypedPropertyDescriptor<Method>,
  ): void => {
    const method = descriptor.value!;
    Reflect.defineMetadata(HANDLED_EVENTS, [{ eventClass, broadcast }, ...handledEvents(method)], method);
  };
}

/** The events that `@OnSessionEvent` marks a method to handle; empty for any other value. */
export function handledEvents(method: unknown): readonly HandledEvent[] {
  if (typeof method !== 'function') return [];
  return (Reflect.getOwnMetadata(HANDLED_EVENTS, method) as HandledEvent[] | undefined) ?? [];
}
