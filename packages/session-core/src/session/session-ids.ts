import { SessionStoreError } from '../errors/session.errors.js';
import { RandomSessionIdGenerator, type SessionIdGenerator } from './session-id.generator.js';
import { hashOf, isWellFormedSessionId, type SessionKey, SessionToken } from './session-token.js';

/** What the store knows a session by: the SHA-256 of its token, or the token itself. */
export type SessionIdForm = 'hashed' | 'plain';

const FINGERPRINT_LENGTH = 16;

/** Makes the keys of sessions, and finds the id that belongs to a token which a client presents. */
export class SessionIds {
  #last: string | undefined;

  constructor(
    private readonly generator: SessionIdGenerator = new RandomSessionIdGenerator(),
    private readonly form: SessionIdForm = 'hashed',
  ) {}

  /**
   * A key that nobody has. With `accept`, keys are drawn until one has an acceptable id.
   * @throws SessionStoreError when the generator draws what others could guess, or what cannot travel
   */
  draw(accept: (id: string) => boolean = () => true): SessionKey {
    for (;;) {
      const token = this.#generate();
      const id = this.#idOf(token);
      if (accept(id)) return { token, id };
    }
  }

  /** The id of what a token opens, if it opens anything; undefined for one that was never drawn. */
  find(token: SessionToken): string | undefined {
    return this.generator.canHaveDrawn(token.reveal()) ? this.#idOf(token) : undefined;
  }

  /** How an id is written into a log: one that is a token is not. */
  shown(id: string): string {
    return this.form === 'plain' ? `sha256:${hashOf(id).slice(0, FINGERPRINT_LENGTH)}` : id;
  }

  #idOf(token: SessionToken): string {
    return this.form === 'plain' ? token.reveal() : hashOf(token.reveal());
  }

  #generate(): SessionToken {
    const drawn: unknown = this.generator.generate();
    if (!isWellFormedSessionId(drawn)) {
      throw failure('has drawn something else than 22 to 128 letters, digits, "-" and "_" in a string');
    }
    if (drawn === this.#last)
      throw failure('has drawn the same token twice: each session needs one that nobody can guess');
    if (!this.generator.canHaveDrawn(drawn)) throw failure('denies in canHaveDrawn() what it has drawn');
    this.#last = drawn;
    return new SessionToken(drawn);
  }
}

function failure(problem: string): SessionStoreError {
  return new SessionStoreError(`The SessionIdGenerator ${problem}`);
}

const byDefault = new SessionIds();

/** A key that nobody has, as it is drawn where nothing else is configured. */
export function generateSessionKey(accept?: (id: string) => boolean): SessionKey {
  return byDefault.draw(accept);
}
