import { createHash, randomBytes } from 'node:crypto';

/** What opens a session: the client holds the token, the store knows only its id, the SHA-256 of the token. */
export interface SessionKey {
  readonly token: SessionToken;
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

  toString(): string {
    return '[session token]';
  }

  toJSON(): string {
    return this.toString();
  }

  [Symbol.for('nodejs.util.inspect.custom')](): string {
    return this.toString();
  }
}

// 256 bits (OWASP ASVS 5.0, 7.2.3 asks for 128), 43 characters of base64url: tokens and ids look alike.
const KEY_BYTES = 32;
const WELL_FORMED = /^[A-Za-z0-9_-]{43}$/;

/** A key that nobody has. With `accept`, keys are drawn until one has an acceptable id. */
export function generateSessionKey(accept: (id: string) => boolean = () => true): SessionKey {
  for (;;) {
    const key = keyOf(randomBytes(KEY_BYTES).toString('base64url'));
    if (accept(key.id)) return key;
  }
}

/** The key of a token that a client presented; undefined when it cannot be one of ours, whatever it contains. */
export function sessionKeyOf(token: unknown): SessionKey | undefined {
  return typeof token === 'string' && WELL_FORMED.test(token) ? keyOf(token) : undefined;
}

/** Whether a string can be the id of a session at all; no store needs to be asked about others. */
export function isWellFormedSessionId(id: unknown): id is string {
  return typeof id === 'string' && WELL_FORMED.test(id);
}

function keyOf(token: string): SessionKey {
  return { token: new SessionToken(token), id: createHash('sha256').update(token).digest('base64url') };
}
