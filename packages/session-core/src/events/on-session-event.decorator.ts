import type { SessionEvent } from './session.events.js';

/** The class of an event, or a base class such as `SessionEvent`, which stands for all that extend it. */
export type SessionEventClass<E extends SessionEvent = SessionEvent> = abstract new (...args: never[]) => E;

/** Options of `@OnSessionEvent`. */
export interface OnSessionEventOptions {
  /**
   * Calls the method on every instance of the application instead of one of its group: for what each instance has of
   * its own, such as a cache or open sockets. It hears of what is recorded while the instance runs. A failure is logged
   * and not repeated; see `@OnSessionEventGap` for what can be missed.
   * @default false
   */
  readonly broadcast?: boolean;
}

/** What a method is marked for. */
export interface HandledEvent {
  readonly eventClass: SessionEventClass;
  readonly broadcast: boolean;
}

const HANDLED_EVENTS = Symbol('@nest-session/core:handled-events');

/**
 * Has a method of a provider or controller called with every event of a class; use it several times for several
 * classes. What the method returns is awaited, and what it throws counts as a failed delivery. An event is delivered
 * at least once: `event.id` tells a repetition.
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

/** What `@OnSessionEvent` marks a method for; empty for any other value. */
export function handledEvents(method: unknown): readonly HandledEvent[] {
  if (typeof method !== 'function') return [];
  return (Reflect.getOwnMetadata(HANDLED_EVENTS, method) as HandledEvent[] | undefined) ?? [];
}
