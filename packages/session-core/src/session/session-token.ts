import { hash } from 'node:crypto';

/** The token of a session, which only the client holds, and the id by which the store knows it. */
export interface SessionKey {
  /** The secret, for the client that owns the session. */
  readonly token: SessionToken;
  /** What the store, logs and events know the session by. */
  readonly id: string;
}

/**
 * The secret in the cookie or header. It prints as `[session token]` in log lines and errors: only `reveal()` gives the
 * token itself.
 */
export class SessionToken {
  readonly #value: string;

  constructor(value: string) {
    this.#value = value;
  }

  /** The token itself. Send it to the client that owns the session, and nowhere else. */
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

// 128 random bits as base64url have 22 characters. All characters are valid in cookies, headers and keys of stores.
const WELL_FORMED = /^[A-Za-z0-9_-]{22,128}$/;

/** The token in a text that a client sent; undefined when the text is not a well-formed token. Never throws. */
export function sessionTokenOf(text: unknown): SessionToken | undefined {
  return isWellFormedIdOrToken(text) ? new SessionToken(text) : undefined;
}

/** Whether a value has the form of a token or session id. A store need not be asked about others. */
export function isWellFormedIdOrToken(id: unknown): id is string {
  return typeof id === 'string' && WELL_FORMED.test(id);
}

/** SHA-256, base64url. */
export function hashOf(token: string): string {
  return hash('sha256', token, 'base64url');
}
