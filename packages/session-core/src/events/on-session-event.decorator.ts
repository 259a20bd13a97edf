import type { SessionEvent } from './session.events.js';

/** The class of an event, or a base class such as `SessionEvent`, which stands for all that extend it. */
export type SessionEventClass<E extends SessionEvent = SessionEvent> = abstract new (...args: never[]) => E;

const HANDLED_EVENTS = Symbol('@nest-session/core:handled-events');

/**
 * Has a method of a provider or controller called with every event of a class; use it several times for several
 * classes. What the method returns is awaited, and what it throws counts as a failed delivery. An event is delivered
 * at least once: `event.id` tells a repetition.
 */
export function OnSessionEvent<E extends SessionEvent>(eventClass: SessionEventClass<E>) {
  return <Method extends (event: E) => unknown>(
    _prototype: object,
    _name: string | symbol,
    descriptor: TypedPropertyDescriptor<Method>,
  ): void => {
    const method = descriptor.value!;
    Reflect.defineMetadata(HANDLED_EVENTS, [eventClass, ...handledEvents(method)], method);
  };
}

/** The classes for which `@OnSessionEvent` marks a method; empty for any other value. */
export function handledEvents(method: unknown): readonly SessionEventClass[] {
  if (typeof method !== 'function') return [];
  return (Reflect.getOwnMetadata(HANDLED_EVENTS, method) as SessionEventClass[] | undefined) ?? [];
}
