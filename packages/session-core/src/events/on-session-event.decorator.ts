import { type HandlerMark, HandlerMarks, markMethod } from '../discovery/handler-marks.js';
import { SessionEvent } from './session.events.js';

/** The class of an event, or a base class such as `SessionEvent`, which stands for all classes that extend it. */
export type SessionEventClass<E extends SessionEvent = SessionEvent> = abstract new (...args: never[]) => E;

/** Options of `@OnSessionEvent`. */
export interface OnSessionEventOptions {
  /**
   * Calls the method on every instance, for caches and the like, with the events that are recorded while it runs. A
   * failure is logged and not retried. See `@OnSessionEventGap`. @default false
   */
  readonly broadcast?: boolean;
}

export interface HandledEvent extends HandlerMark {
  readonly eventClass: SessionEventClass;
}

/** What `@OnSessionEvent` leaves on methods. */
export const SESSION_EVENT_MARKS = new HandlerMarks<HandledEvent>('@OnSessionEvent');

/**
 * Calls a method of a provider or controller with every event of a class; use it several times for several classes.
 * A promise that the method returns is awaited. If the method throws, the event is retried. An event is delivered at
 * least once, and `event.id` is the same at every delivery.
 * @throws TypeError for anything but the class of a session event, and for other options
 */
export function OnSessionEvent<E extends SessionEvent>(
  eventClass: SessionEventClass<E>,
  options: OnSessionEventOptions = {},
) {
  return SESSION_EVENT_MARKS.add<E>(problemOfClass(eventClass), options, (broadcast) => ({ eventClass, broadcast }));
}

function problemOfClass(eventClass: unknown): string | undefined {
  if (eventClass === SessionEvent) return undefined;
  if (typeof eventClass === 'function' && eventClass.prototype instanceof SessionEvent) return undefined;
  // A class is undefined while its file is loaded in a circle.
  const given = { function: 'another class', undefined: 'undefined' }[String(typeof eventClass)];
  return (
    'takes a class of events of @nest-session/core, such as SessionCreatedEvent, SessionSignedInEvent, ' +
    `SessionIdChangedEvent, SessionDestroyedEvent or SessionEvent, but got ${given ?? `a value of type ${typeof eventClass}`}`
  );
}

/** A period in which this instance may have missed broadcast events. It ends when the handler is called. */
export interface SessionEventGap {
  /** When the last event before the gap was recorded, in epoch milliseconds by the store's clock. */
  readonly since: number;
}

const HANDLES_GAPS = Symbol('@nest-session/core:handles-gaps');

/**
 * Calls a method when this instance may have missed broadcast events, because it could not reach Redis until they were
 * removed, or Redis lost them. Clear your caches in it. Later events are delivered after the call.
 */
export function OnSessionEventGap() {
  return markMethod<SessionEventGap>('@OnSessionEventGap()', HANDLES_GAPS, () => true);
}

export function handlesGaps(method: unknown): boolean {
  return typeof method === 'function' && Reflect.hasOwnMetadata(HANDLES_GAPS, method);
}
