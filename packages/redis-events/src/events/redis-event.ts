import { type HandledName, HandlerMarks } from '@nest-session/core/internal';

/**
 * The data of your events by their types, where you declare them:
 *
 *     declare module '@nest-session/redis-events' {
 *       interface RedisEventTypes {
 *         'order.paid': { total: number };
 *       }
 *     }
 */
export interface RedisEventTypes {}

/** The data of events of a type: unknown unless `RedisEventTypes` declares it. */
export type RedisEventData<Type extends string> = Type extends keyof RedisEventTypes ? RedisEventTypes[Type] : unknown;

/** What a `RedisEvent` is made of. */
export interface RedisEventInit<Type extends string> {
  /** What `RedisEvents.record()` returned. */
  readonly id: string;
  /** The type with which it was recorded. */
  readonly type: Type;
  /** The data with which it was recorded; undefined without any. */
  readonly data: RedisEventData<Type>;
  /** When it was recorded, in epoch milliseconds. */
  readonly at: number;
  /** The number of the attempt. @default 1 */
  readonly attempt?: number;
  /** The W3C traceparent of the span that recorded it. */
  readonly traceparent?: string | undefined;
}

/** An event that `RedisEvents.record()` has recorded. `@OnRedisEvent` methods receive it. */
export class RedisEvent<Type extends string = string> {
  /** The same at every delivery, retry and replay, and in every group: use it where an effect must happen once. */
  readonly id: string;
  /** The type with which it was recorded. */
  readonly type: Type;
  /** The data with which it was recorded, if any. @throws RedisEventDataError where they cannot be read */
  declare readonly data: RedisEventData<Type>;
  /** When it was recorded: epoch milliseconds by the clock of Redis. */
  readonly at: number;
  /** The number of this attempt of the group, from 1. */
  readonly attempt: number;
  /** The W3C traceparent of the span that recorded it, if there was one. */
  readonly traceparent: string | undefined;

  /** Use it in tests of your handlers. */
  constructor(init: RedisEventInit<Type>) {
    this.id = init.id;
    this.type = init.type;
    // Read when a handler asks for it: what cannot be read then fails that handler, and the event is kept.
    Object.defineProperty(this, 'data', { enumerable: true, get: () => init.data });
    this.at = init.at;
    this.attempt = init.attempt ?? 1;
    this.traceparent = init.traceparent;
  }
}

/** The data of an event cannot be stored as they are, or not be read. It names type and path, never a value. */
export class RedisEventDataError extends Error {
  /** Always 'RedisEventDataError'. */
  override readonly name = 'RedisEventDataError';

  constructor(
    /** The type of the event. */
    readonly type: string,
    problem: string,
    options?: { readonly cause?: unknown },
  ) {
    super(`The data of an event ${JSON.stringify(type)} ${problem}`, options);
  }
}

const TYPE = /^[A-Za-z0-9][\w.:-]{0,99}$/;

/** The problem of a type, as the end of a sentence; undefined if it is valid. */
export function typeProblem(type: unknown): string | undefined {
  if (typeof type === 'string' && TYPE.test(type)) return undefined;
  const shown = typeof type === 'string' ? JSON.stringify(type.slice(0, 120)) : `a value of type ${typeof type}`;
  return `takes a type of 1 to 100 letters, digits, ".", ":", "-" and "_" that begins with a letter or digit, but got ${shown}`;
}

/** Options of `@OnRedisEvent`. */
export interface OnRedisEventOptions {
  /** Calls it on every instance, with what is recorded meanwhile. Failures are only logged. @default false */
  readonly broadcast?: boolean;
}

export const REDIS_EVENT_MARKS = new HandlerMarks<HandledName>(
  '@OnRedisEvent',
  'this application records and receives no such events. Add ' +
    'RedisEventsModule.forRoot() of @nest-session/redis-events to the imports of the root module.',
);

/**
 * Calls a method of a provider or controller with each event of a type, once for each time it is used. One instance of
 * each group is called, at least once. The result is awaited: if it fails, the event is retried, and becomes a dead
 * letter in the end. @throws TypeError for what can be no type, and for other options
 */
export function OnRedisEvent<Type extends string>(type: Type, options: OnRedisEventOptions = {}) {
  return REDIS_EVENT_MARKS.add<RedisEvent<Type>>(typeProblem(type), options, (broadcast) => ({
    name: type,
    broadcast,
  }));
}
