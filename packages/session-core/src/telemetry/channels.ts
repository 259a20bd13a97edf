import { tracingChannel, type TracingChannel } from 'node:diagnostics_channel';
import type { SessionStoreError } from '../errors/session.errors.js';

/**
 * What a message of `nest-session:load` is about: a call that reads the store. All messages of one call have the same
 * object. The fields that are only known at the end are set before `asyncStart`.
 */
export interface SessionLoadContext {
  /**
   * `load`: sessions by their ids. `list`: those that an index lists; where they are read page after page, the first
   * page. `count`: how many it lists.
   */
  readonly operation: 'load' | 'list' | 'count';
  /** The namespace of the store; empty for a store without one. */
  readonly namespace: string;
  /** The id of the session, if it is one. If the option `sessionIds` is `'plain'`, a fingerprint of it. */
  readonly sessionId?: string | undefined;
  /** How many sessions were read or counted; of a first page, 1 when it has any. */
  found?: number;
  /** Bytes of the names and texts of all attributes; undefined where only some attributes were read. */
  size?: number;
  /**
   * Why it failed. The message quotes no value; `cause` is what the store threw, and one of your own may quote
   * anything.
   */
  error?: SessionStoreError;
}

/**
 * What a message of `nest-session:save` is about: a call that changes the store. `sessionId` is as the request loaded
 * it. See `SessionLoadContext`.
 */
export interface SessionSaveContext extends Pick<SessionLoadContext, 'namespace' | 'sessionId' | 'error'> {
  /**
   * `create`: a new session, or one of express-session that is taken over. `save`: changes of a session. `change_id`:
   * changes with a new id, such as a sign-in. `update`: `updateAttribute()`. `touch`: only the idle timeout. `delete`:
   * the end of a session. `end_all`: the end of all sessions of an index, or of every session.
   */
  readonly operation: 'create' | 'save' | 'change_id' | 'update' | 'touch' | 'delete' | 'end_all';
  /**
   * How the store answered: `created`, `saved`, `touched`, `deleted` or `forwarded` when it made the change, `ended`
   * for `end_all`. When it changed nothing: `gone`, `collision`, `refused`, `full` or `conflict`.
   */
  outcome?: string;
}

/** What a message of `nest-session:event` is about: one call of one handler. See `SessionLoadContext`. */
export interface SessionHandlerContext {
  /** The handler, such as `Carts.onExpired`. */
  readonly handler: string;
  /**
   * The type of the event, such as `expired`; `deadline` for one of `Deadlines`; that of `record()` for one of
   * `RedisEvents`.
   */
  readonly type: string;
  /** The name of the deadline, where it is one. */
  readonly deadline?: string;
  /** `event.id` as log lines show it. */
  readonly eventId: string;
  /** When the event was recorded, in epoch milliseconds by the store's clock. */
  readonly at: number;
  /** The number of this attempt, from 1. */
  readonly attempt: number;
  /** Whether every instance calls the handler, or only one of the group. */
  readonly broadcast: boolean;
  /**
   * The W3C traceparent of the span that caused the event, if there was one: link to it, it may have ended long ago.
   */
  readonly traceparent?: string | undefined;
  /** What the handler threw. It may quote anything. */
  error?: unknown;
}

/** What a message of `nest-session:deadline` is about: a call of `Deadlines`. See `SessionLoadContext`. */
export interface DeadlineContext {
  /** The namespace of the store; empty for a store without one. */
  readonly namespace: string;
  /** The method. `schedule`: also each call of the store by `scheduleMany()`. */
  readonly operation: 'schedule' | 'reschedule' | 'cancel' | 'get' | 'count' | 'list';
  /** The name of the deadlines. */
  readonly deadline: string;
  /** How the store answered: the word of the method, of several the first; undefined for the methods that only read. */
  outcome?: string;
  /** See `SessionLoadContext`. */
  error?: unknown;
}

/** What a message of `nest-session:sweep` is about: a search for sessions that are due. See `SessionLoadContext`. */
export interface SessionSweepContext {
  /** The namespace of the store. */
  readonly namespace: string;
  /**
   * `sweep`: the cleanup job. `poll`: the poller of deadlines, and of `expirations: 'sorted-set'`. `key_event`: Redis.
   * `timer`: a timer.
   */
  readonly noticedBy: 'sweep' | 'poll' | 'key_event' | 'timer';
  /** How many sessions ended. */
  claimed?: number;
  /** How many of them were due over two minutes ago. */
  late?: number;
  /** By session, how many milliseconds after its end it was found, where its data tell; in no order. */
  delays?: readonly number[];
  /** Why it failed. */
  error?: unknown;
}

/** The names of the channels, and what their messages are about. */
export interface SessionChannels {
  /** Calls that read the store. */
  readonly 'nest-session:load': SessionLoadContext;
  /** Calls that change the store. */
  readonly 'nest-session:save': SessionSaveContext;
  /** Calls of handlers. */
  readonly 'nest-session:event': SessionHandlerContext;
  /** Searches for sessions that are due. */
  readonly 'nest-session:sweep': SessionSweepContext;
  /** Calls of `Deadlines`. */
  readonly 'nest-session:deadline': DeadlineContext;
}

/** The channel `nest-session:load`: calls that read the store. */
export const loadChannel = channelOf('nest-session:load');
/** The channel `nest-session:save`: calls that change the store. */
export const saveChannel = channelOf('nest-session:save');
/** The channel `nest-session:event`: calls of handlers. */
export const eventChannel = channelOf('nest-session:event');
/** The channel `nest-session:sweep`: searches for sessions that are due. */
export const sweepChannel = channelOf('nest-session:sweep');
/** The channel `nest-session:deadline`: calls of `Deadlines`. */
export const deadlineChannel = channelOf('nest-session:deadline');

/** Of one type twice, because the second parameter of `TracingChannel` is the first one since `@types/node` 26. */
function channelOf<Name extends keyof SessionChannels>(
  name: Name,
): TracingChannel<SessionChannels[Name], SessionChannels[Name]> {
  return tracingChannel<SessionChannels[Name], SessionChannels[Name]>(name);
}

/**
 * Traces a call. Ask `hasSubscribers` before, so that nothing is made for nobody. `conclude` sets in the context what
 * the result says: the result itself, which has values of the application, is in no message.
 */
export async function traced<T, Context extends object>(
  channel: TracingChannel<Context, Context>,
  context: Context,
  call: () => Promise<T> | T,
  conclude: (result: T) => Partial<Context> = () => ({}),
): Promise<T> {
  let result!: T;
  await channel.tracePromise(async () => {
    result = await call();
    Object.assign(context, conclude(result));
  }, context);
  return result;
}
