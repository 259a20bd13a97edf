import { createSecretKey, type KeyObject, randomBytes } from 'node:crypto';

/**
 * The key that encrypts the attributes of one session. It stays with the session when the session is rotated, and is
 * stored only in encrypted form, under a key of the key ring. Each session has its own key, so no key encrypts nearly
 * as many texts as random nonces allow (2^32).
 */
export class DataKey {
  readonly key: KeyObject;

  /** @param id identifies the data key. It is not secret */
  constructor(
    readonly id: string,
    readonly bytes: Buffer,
  ) {
    this.key = createSecretKey(bytes);
  }

  static draw(): DataKey {
    return new DataKey(randomBytes(9).toString('base64url'), randomBytes(32));
  }
}
