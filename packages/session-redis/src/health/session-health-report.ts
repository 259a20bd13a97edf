/** What a look at the sessions has found. */
export interface SessionHealthReport {
  readonly state: 'up' | 'degraded' | 'down';
  /** For everybody to read: words and numbers, no address, password, id or value. */
  readonly data: Readonly<Record<string, unknown>>;
}

/** Looks at the health of the sessions. */
export interface HealthLook {
  /** `late`: the age in milliseconds from which on an unread event is late. Resolves within the command timeout. */
  look(late: number): Promise<SessionHealthReport>;
}
