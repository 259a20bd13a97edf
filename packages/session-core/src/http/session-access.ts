import type { TouchOutcome } from '../session/session-change.js';

/** How recording an access went. */
export type AccessOutcome = TouchOutcome | 'failed';

/** The access to a session that its request may have to record: once, and only when that is due. */
export class SessionAccess {
  #touch: (() => Promise<AccessOutcome>) | undefined;
  #recorded: Promise<AccessOutcome> | undefined;

  /**
   * @param touch records the access, and never rejects; undefined when that is not due
   * @param isRolling whether the client keeps its token for a limited time, so that each renewal sends it again
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

  /** Records the access unless that is not due; resolves to the outcome. */
  record(): Promise<AccessOutcome> | undefined {
    this.#recorded ??= this.#touch?.();
    return this.#recorded;
  }

  /** The request is no access. */
  cancel(): void {
    this.#touch = undefined;
  }
}
