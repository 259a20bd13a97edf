import { SessionStoreError } from '@nest-session/core';

/**
 * Thrown when the attributes of a session cannot be decrypted: a key of the option `encryption.keys` is missing or has
 * other bytes than before, or the data was changed in Redis. Nothing is written or removed, and the right keys open the
 * session again. The message contains no id, no key and no value. A 503 response, as every SessionStoreError.
 */
export class SessionEncryptionError extends SessionStoreError {
  /** The id of the key that encrypts the session, if the error is about a key. */
  readonly keyId: string | undefined;
  /** The name of the attribute, if the error is about one. */
  readonly attributeName: string | undefined;

  constructor(reason: string, { keyId, attributeName }: { keyId?: string; attributeName?: string } = {}) {
    super(reason);
    this.name = 'SessionEncryptionError';
    this.keyId = keyId;
    this.attributeName = attributeName;
  }
}

export function attributeProblem(attributeName: string, sentence: string): SessionEncryptionError {
  return new SessionEncryptionError(`Session attribute ${JSON.stringify(attributeName)} ${sentence}`, {
    attributeName,
  });
}

/** A save was not made: the session in Redis has another data key, or has one only since the load. */
export class DataKeyConflictError extends SessionEncryptionError {
  constructor(
    /** Its current id. */
    readonly sessionId: string,
    /** The data key in its stored form; undefined if Redis has none. */
    readonly wrapped: string | undefined,
  ) {
    super(
      'Another instance encrypts the attributes of a session that this instance changes: set the same option ' +
        '`encryption` in all instances',
    );
  }
}
