import { SessionStoreError } from '@nest-session/core';

/**
 * Thrown when the attributes of a session cannot be decrypted: a key is missing from the option `encryption.keys` or has
 * other bytes than before, or the data was changed in Redis. Nothing is written and nothing is removed: the session is
 * readable again with the right keys. `reason`, which is also the message, has no id, no key and no value. Nest answers
 * with a 503 response, as for every SessionStoreError.
 */
export class SessionEncryptionError extends SessionStoreError {
  /** The id of the key under which the session is encrypted, if the error is about a key. */
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

/** A save was not made, because the session in Redis has another data key than the save, or has one only since then. */
export class DataKeyConflictError extends SessionEncryptionError {
  constructor(
    /** The id that the session has now. */
    readonly sessionId: string,
    /** The data key that Redis has, as it is stored; undefined when it has none. */
    readonly wrapped: string | undefined,
  ) {
    super(
      'Another instance encrypts the attributes of a session that this instance changes: set the same option ' +
        '`encryption` in all of them',
    );
  }
}
