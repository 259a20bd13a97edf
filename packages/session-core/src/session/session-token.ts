import { hash, randomBytes } from 'node:crypto';
import { SessionStoreError } from '../errors/session.errors.js';

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
  readonly #turn: string;

  /** @param turn what a cookie has behind the token: see the option `rotateEvery` */
  constructor(value: string, turn = '') {
    this.#value = value;
    this.#turn = turn;
  }

  /** @internal What the cookie had behind the token; empty for nothing. */
  get turn(): string {
    return this.#turn;
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

/** Whether a value has the form that tokens and session ids share. The store is not asked about any other. */
export function isWellFormedIdOrToken(id: unknown): id is string {
  return typeof id === 'string' && WELL_FORMED.test(id);
}

/** SHA-256, base64url. */
export function hashOf(token: string): string {
  return hash('sha256', token, 'base64url');
}

/**
 * Generates the tokens of new and of rotated sessions. A token has 22 to 128 letters, digits, `-` and `_`; anything
 * else, or the same token twice in a row, is refused.
 */
export abstract class SessionTokenGenerator {
  /** A token that cannot be guessed: at least 128 bits from a cryptographic source. */
  abstract generate(): string;

  /** Whether `generate()` can have returned a token that a client presents. The store is not asked about others. */
  canHaveDrawn(_token: string): boolean {
    return true;
  }
}

// OWASP ASVS 5.0, 7.2.3 asks for 128 bits.
const TOKEN_BYTES = 32;
const DRAWN = /^[A-Za-z0-9_-]{43}$/;

/** Generates tokens of 256 random bits, base64url; the default. */
export class RandomSessionTokenGenerator extends SessionTokenGenerator {
  generate(): string {
    return randomBytes(TOKEN_BYTES).toString('base64url');
  }

  override canHaveDrawn(token: string): boolean {
    return DRAWN.test(token);
  }
}

/** The form of session ids: the SHA-256 of the token, or the token itself. */
export type SessionIdForm = 'hashed' | 'plain';

const FINGERPRINT_LENGTH = 16;

/** Makes the tokens and ids of sessions, and finds the id of a token that a client presents. */
export class SessionIds {
  #last: string | undefined;

  constructor(
    private readonly generator: SessionTokenGenerator = new RandomSessionTokenGenerator(),
    /** The option `sessionIds`. */
    readonly form: SessionIdForm = 'hashed',
  ) {}

  /**
   * A fresh token and its id. With `accept`, tokens are drawn until one has an acceptable id.
   * @throws SessionStoreError when the generator returns a token that can be guessed, or that is not well-formed
   */
  draw(accept: (id: string) => boolean = () => true): SessionKey {
    for (;;) {
      const token = this.#generate();
      const id = this.#idOf(token);
      if (accept(id)) return { token, id };
    }
  }

  /** The id of a token; undefined for a token that the generator cannot have drawn. */
  find(token: SessionToken): string | undefined {
    return this.generator.canHaveDrawn(token.reveal()) ? this.#idOf(token) : undefined;
  }

  /** Whether a session can have this id. */
  mayBeId(id: string): boolean {
    return this.form === 'plain' ? this.generator.canHaveDrawn(id) : DRAWN.test(id);
  }

  /** The id as log lines show it: an id that is a token is replaced by a fingerprint. */
  shown(id: string): string {
    return this.form === 'plain' ? `sha256:${hashOf(id).slice(0, FINGERPRINT_LENGTH)}` : id;
  }

  #idOf(token: SessionToken): string {
    return this.form === 'plain' ? token.reveal() : hashOf(token.reveal());
  }

  #generate(): SessionToken {
    const drawn: unknown = this.generator.generate();
    if (!isWellFormedIdOrToken(drawn)) {
      throw failure('returned something other than a string of 22 to 128 letters, digits, "-" and "_"');
    }
    if (drawn === this.#last)
      throw failure('returned the same token twice: each session needs one that cannot be guessed');
    if (!this.generator.canHaveDrawn(drawn)) throw failure('returned a token that its canHaveDrawn() rejects');
    this.#last = drawn;
    return new SessionToken(drawn);
  }
}

function failure(problem: string): SessionStoreError {
  return new SessionStoreError(`The SessionTokenGenerator ${problem}`);
}

const byDefault = new SessionIds();

/** A fresh token and its id, by the default options. */
export function generateSessionKey(accept?: (id: string) => boolean): SessionKey {
  return byDefault.draw(accept);
}
