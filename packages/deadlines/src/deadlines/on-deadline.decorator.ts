import { assertOnInstance, markCaller } from '@nest-session/core/internal';
import { type Deadline, isDeadline } from './deadline.js';
import type { DeadlineEvent } from './deadline-event.js';

/** Options of `@OnDeadline`. */
export interface OnDeadlineOptions {
  /**
   * Calls the method on every instance instead of on one instance of each group. An instance receives what comes due
   * while it runs. A failure is logged and not retried. @default false
   */
  readonly broadcast?: boolean;
}

/** A kind of deadlines that a method is marked to handle. */
export interface HandledDeadline {
  readonly name: string;
  readonly broadcast: boolean;
}

const HANDLED_DEADLINES = Symbol('@nest-session/deadlines:handled-deadlines');

const CALLER = {
  module: 'DeadlineHandlerModule',
  missing:
    'with @OnDeadline will never be called: this application has no deadlines. Add DeadlineModule.forRoot() and ' +
    'RedisDeadlineModule.forRoot() of @nest-session/deadlines/redis to the imports of the root module, or ' +
    'MapDeadlineModule for a single process and for tests.',
};

/**
 * Calls a method of a provider or controller with each deadline of a kind that has come; use it several times for
 * several kinds. One instance of each group is called, at least once, in no promised order. A promise that the method
 * returns is awaited. If the method throws, the deadline is retried, and becomes a dead letter in the end. `event.id`
 * is the same at every delivery.
 * @throws TypeError for anything but what `deadline()` returns, and for other options
 */
export function OnDeadline<T>(kind: Deadline<T>, options: OnDeadlineOptions = {}) {
  const { broadcast = false } = options;
  const problem = problemOf(kind, { ...options, broadcast });
  if (problem !== undefined) throw new TypeError(`@OnDeadline() ${problem}`);
  return <Method extends (event: DeadlineEvent<Deadline<T>>) => unknown>(
    prototype: object,
    name: string | symbol,
    descriptor: TypedPropertyDescriptor<Method>,
  ): void => {
    assertOnInstance('@OnDeadline()', prototype, name);
    const method = descriptor.value!;
    markCaller(method, CALLER);
    Reflect.defineMetadata(HANDLED_DEADLINES, [{ name: kind.name, broadcast }, ...handledDeadlines(method)], method);
  };
}

function problemOf(kind: unknown, { broadcast, ...others }: OnDeadlineOptions): string | undefined {
  // It is undefined while its file is loaded in a circle.
  if (!isDeadline(kind)) return `takes what deadline() returns, but got a value of type ${typeof kind}`;
  const [unknown] = Object.keys(others);
  if (unknown !== undefined) return `has no option ${JSON.stringify(unknown)}: there is only \`broadcast\``;
  return typeof broadcast === 'boolean' ? undefined : 'takes true or false as its option `broadcast`';
}

/** The deadlines that `@OnDeadline` marks a method to handle; empty for any other value. */
export function handledDeadlines(method: unknown): readonly HandledDeadline[] {
  if (typeof method !== 'function') return [];
  return (Reflect.getOwnMetadata(HANDLED_DEADLINES, method) as HandledDeadline[] | undefined) ?? [];
}
