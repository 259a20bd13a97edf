import { createHash } from 'node:crypto';

/** What opens a session: the client holds the token, the store knows its id, by default the SHA-256 of the token. */
export interface SessionKey {
  /** The secret, for the client that owns the session. */
  readonly token: SessionToken;
  /** What the store, logs and events know the session by. */
  readonly id: string;
}

/**
 * The secret in the cookie. It prints as `[session token]` however it gets into a log line or an error, so that only
 * `reveal()`, called where the token leaves for the client, gives it away.
 */
export class SessionToken {
  readonly #value: string;

  constructor(value: string) {
    this.#value = value;
  }

  /** The token itself, to be sent to the client that owns it and nowhere else. */
  reveal(): string {
    return this.#value;
  }

  /** `[session token]`, never the token. */
  toString(): string {
    return '[session token]';
  }

  /** `[session token]`, never the token. */
  toJSON(): string {
    return this.toString();
  }

  [Symbol.for('nodejs.util.inspect.custom')](): string {
    return this.toString();
  }
}

// 128 random bits as base64url have 22 characters. All of them can stand in a cookie, a header and the key of a store.
const WELL_FORMED = /^[A-Za-z0-9_-]{22,128}$/;

/** The token that a client presented; undefined when it cannot be one, whatever it contains. */
export function sessionTokenOf(text: unknown): SessionToken | undefined {
  return isWellFormedSessionId(text) ? new SessionToken(text) : undefined;
}

/** Whether a string can be the token or the id of a session at all; no store needs to be asked about others. */
export function isWellFormedSessionId(id: unknown): id is string {
  return typeof id === 'string' && WELL_FORMED.test(id);
}

/** SHA-256, base64url. */
export function hashOf(token: string): string {
  return createHash('sha256').update(token).digest('base64url');
}
