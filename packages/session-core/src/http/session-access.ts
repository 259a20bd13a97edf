import type { TouchOutcome } from '../session/session-change.js';

/** The outcome of a touch. */
export type AccessOutcome = TouchOutcome | 'failed';

/** The touch that a request may owe its session: at most one, and only when it is due. */
export class SessionAccess {
  #touch: (() => Promise<AccessOutcome>) | undefined;
  #recorded: Promise<AccessOutcome> | undefined;

  /**
   * @param touch touches the session, and never rejects; undefined when no touch is due
   * @param isRolling whether the cookie has a lifetime, so that each touch sends it again
   */
  constructor(
    touch?: () => Promise<AccessOutcome>,
    readonly isRolling = false,
  ) {
    this.#touch = touch;
  }

  get isDue(): boolean {
    return this.#touch !== undefined;
  }

  /** Touches the session if that is due and was not done yet. */
  record(): Promise<AccessOutcome> | undefined {
    this.#recorded ??= this.#touch?.();
    return this.#recorded;
  }

  /** The request does not count as an access. */
  cancel(): void {
    this.#touch = undefined;
  }
}
