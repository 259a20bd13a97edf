import { type HandledName, HandlerMarks } from '@nest-session/core/internal';
import { type RedisEvent, typeProblem } from './redis-event.js';

/** Options of `@OnRedisEvent`. */
export interface OnRedisEventOptions {
  /**
   * Calls the method on every instance instead of on one instance of each group. An instance receives what is recorded
   * while it runs. A failure is logged and not retried. @default false
   */
  readonly broadcast?: boolean;
}

/** What `@OnRedisEvent` leaves on methods. */
export const REDIS_EVENT_MARKS = new HandlerMarks<HandledName>(
  '@OnRedisEvent',
  'this application records and receives no such events. Add ' +
    'RedisEventsModule.forRoot() of @nest-session/redis-events to the imports of the root module.',
);

/**
 * Calls a method of a provider or controller with each event of a type; use it several times for several types. One
 * instance of each group is called, at least once. A promise that the method returns is awaited. If the method throws,
 * the event is retried, and becomes a dead letter in the end. `event.id` is the same at every delivery.
 * @throws TypeError for what can be no type, and for other options
 */
export function OnRedisEvent<Type extends string>(type: Type, options: OnRedisEventOptions = {}) {
  return REDIS_EVENT_MARKS.add<RedisEvent<Type>>(typeProblem(type), options, (broadcast) => ({
    name: type,
    broadcast,
  }));
}
