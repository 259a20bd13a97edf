import type { Session } from './session.js';

/** What an application requires of each of its sessions, whichever code changes it: see `SessionExtension.rule`. */
export interface SessionRule {
  /** Called before each save, which also writes what it changes. What it throws fails the save. */
  beforeSave(session: Session): void;
  /**
   * Returns the update that is made instead of one by `updateAttribute()`, which stores the attribute without a save.
   * What the returned function throws fails the update.
   */
  updating(session: Session, name: string, update: (current: unknown) => unknown): (current: unknown) => unknown;
}
