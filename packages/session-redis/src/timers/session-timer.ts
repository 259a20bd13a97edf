/**
 * Asks whether a session has ended, which records its end if nobody has yet. Resolves to the milliseconds after which to
 * ask again, because the session is still alive; to undefined when nobody needs to ask again. Rejects, within five
 * seconds, when Redis did not reply: ask again some seconds later. Any text may be asked about.
 */
export type AskAboutSession = (id: string) => Promise<number | undefined>;

/**
 * A clock outside of Redis that tells when to ask about a session. It is a hint and never a store: Redis alone knows
 * whether a session is alive, and the cleanup job finds every end that no timer asked about. So a timer may ask early,
 * late, twice or never. No request waits for a timer, and none fails because of one.
 *
 * `id` is the id under which Redis has the session. By default that is a hash, which opens no session.
 */
export interface SessionTimer {
  /**
   * Begins to ask as soon as the server of the timer is there, and does not wait for that: after the command timeout, the
   * application starts all the same. Called before all other methods, and after `stop()` perhaps again, by another
   * application. Throws only what a person must mend: an outage ends by itself.
   */
  start(ask: AskAboutSession): void | Promise<void>;

  /**
   * Arranges that one instance of the application asks about a session after `delay` milliseconds, at most a day.
   * Resolves when the server of the timer has noted that, and rejects soon when it cannot: nobody repeats the call. When the session is
   * scheduled already, the timer may do as well with that.
   */
  schedule(id: string, delay: number): Promise<void>;

  /** Makes it unnecessary to ask about a session, as far as that is cheap. */
  cancel(id: string): Promise<void>;

  /** Stops asking, lets the questions that are open be answered, and closes all connections. You may call it again. */
  stop(): Promise<void>;
}

const TIMER_METHODS = ['start', 'schedule', 'cancel', 'stop'] as const;

export function isSessionTimer(value: unknown): value is SessionTimer {
  return missingTimerMethods(value).length === 0;
}

/** The methods that a value lacks to be a timer, as calls. */
export function missingTimerMethods(value: unknown): string[] {
  const methods = Object(value) as Record<string, unknown>;
  return TIMER_METHODS.filter((name) => typeof methods[name] !== 'function').map((name) => `${name}()`);
}
