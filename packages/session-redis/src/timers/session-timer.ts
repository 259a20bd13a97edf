/**
 * Asks whether a session has ended, and records that. Resolves to the milliseconds after which to ask again, or to
 * undefined when that is not needed. Rejects within five seconds if Redis does not reply. You may ask about any text.
 */
export type AskAboutSession = (id: string) => Promise<number | undefined>;

/**
 * A clock outside of Redis that decides when to ask about a session. It only gives hints: Redis knows whether a session
 * is alive, and the cleanup job finds every end that no timer asked about. So a timer may ask early, late, twice or
 * never, and no request waits for it or fails because of it. `id`: of the session in Redis; by default it is a hash.
 */
export interface SessionTimer {
  /**
   * Starts to ask as soon as the timer's server is reachable: do not wait for that. It is called first, and again by
   * another application after `stop()`. Throw only what a person has to fix, because an outage ends by itself.
   */
  start(ask: AskAboutSession): void | Promise<void>;

  /**
   * Lets one instance of the application ask about a session after `delay` milliseconds, at most a day. Resolves when
   * the timer's server has recorded it, or rejects soon: the call is not repeated. An earlier schedule may stay.
   */
  schedule(id: string, delay: number): Promise<void>;

  /** Cancels the question about a session, if that is cheap. */
  cancel(id: string): Promise<void>;

  /** Stops asking, waits for the answers to open questions, and closes all connections. You may call it again. */
  stop(): Promise<void>;
}

/** The methods that a timer must have and a value lacks, written as calls. */
export function missingTimerMethods(value: unknown): string[] {
  const methods = Object(value) as Record<string, unknown>;
  const names = ['start', 'schedule', 'cancel', 'stop'];
  return names.filter((name) => typeof methods[name] !== 'function').map((name) => `${name}()`);
}
