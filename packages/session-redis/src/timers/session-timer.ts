/**
 * Asks whether a session has ended, and records its end if that has not happened yet. If the session is alive, resolves
 * to the milliseconds after which to ask again. If no further question is needed, resolves to undefined. Rejects within
 * five seconds if Redis does not reply: ask again some seconds later. You may ask about any text.
 */
export type AskAboutSession = (id: string) => Promise<number | undefined>;

/**
 * A clock outside of Redis that decides when to ask about a session. It gives hints and stores nothing: only Redis
 * knows whether a session is alive, and the cleanup job finds every end that no timer asked about. So a timer may ask
 * early, late, twice or never. No request waits for a timer or fails because of it.
 *
 * `id` is the id of the session in Redis. By default it is a hash, with which nobody can open the session.
 */
export interface SessionTimer {
  /**
   * Starts to ask as soon as the timer's server is reachable. Do not wait for the server: after the command timeout,
   * the application starts anyway. It is called before all other methods, and another application may call it again
   * after `stop()`. Throw only errors that a person has to fix, because an outage ends by itself.
   */
  start(ask: AskAboutSession): void | Promise<void>;

  /**
   * Arranges that one instance of the application asks about a session after `delay` milliseconds, which is at most a
   * day. Resolves when the timer's server has recorded it. Rejects soon if that fails. The call is not repeated. If the
   * session is already scheduled, the timer may keep that schedule.
   */
  schedule(id: string, delay: number): Promise<void>;

  /** Cancels the question about a session, if that is cheap. */
  cancel(id: string): Promise<void>;

  /** Stops asking, waits for the answers to open questions, and closes all connections. You may call it again. */
  stop(): Promise<void>;
}

export const TIMER_METHODS = ['start', 'schedule', 'cancel', 'stop'] as const;

export function isSessionTimer(value: unknown): value is SessionTimer {
  return missingTimerMethods(value).length === 0;
}

/** The methods that a timer must have and a value lacks, written as calls. */
export function missingTimerMethods(value: unknown): string[] {
  const methods = Object(value) as Record<string, unknown>;
  return TIMER_METHODS.filter((name) => typeof methods[name] !== 'function').map((name) => `${name}()`);
}
