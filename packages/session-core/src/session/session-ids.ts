import { SessionStoreError } from '../errors/session.errors.js';
import { RandomSessionTokenGenerator, type SessionTokenGenerator } from './session-token.generator.js';
import { hashOf, isWellFormedIdOrToken, type SessionKey, SessionToken } from './session-token.js';

/** The form of session ids: the SHA-256 of the token, or the token itself. */
export type SessionIdForm = 'hashed' | 'plain';

const FINGERPRINT_LENGTH = 16;

/** Makes the tokens and ids of sessions, and finds the id of a token that a client presents. */
export class SessionIds {
  #last: string | undefined;

  constructor(
    private readonly generator: SessionTokenGenerator = new RandomSessionTokenGenerator(),
    private readonly form: SessionIdForm = 'hashed',
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
