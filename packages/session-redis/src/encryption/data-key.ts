import { createSecretKey, type KeyObject, randomBytes } from 'node:crypto';
import { decrypt, encrypt, sizeOfData } from './aes-gcm.js';

// No text of JSON or devalue begins with it: the only letters that they begin with are those of `true`, `false`,
// `null`.
const PREFIX = 'enc1:';

/**
 * The key that encrypts the attributes of one session. It stays with the session when the session is rotated, and is
 * stored only in encrypted form, under a key of the key ring. Each session has its own key, so no key encrypts nearly
 * as many texts as random nonces allow (2^32).
 */
export class DataKey {
  readonly #key: KeyObject;

  /** @param id identifies the data key. It is not secret */
  constructor(
    readonly id: string,
    readonly bytes: Buffer,
  ) {
    this.#key = createSecretKey(bytes);
  }

  static draw(): DataKey {
    return new DataKey(randomBytes(9).toString('base64url'), randomBytes(32));
  }

  /** Whether the stored text of an attribute is encrypted. */
  static hasEncrypted(stored: string): boolean {
    return stored.startsWith(PREFIX);
  }

  /** The size of the plain text of a stored text, in bytes. */
  static bytesIn(stored: string): number {
    return DataKey.hasEncrypted(stored) ? sizeOfData(stored.length - PREFIX.length) : Buffer.byteLength(stored);
  }

  /** Encrypts a text. Only an attribute of this name can decrypt it. */
  encrypt(name: string, text: string): string {
    return PREFIX + encrypt(this.#key, `${this.id}:${name}`, text);
  }

  /** Decrypts a text. Returns undefined if it was not encrypted with this key for an attribute of this name. */
  decrypt(name: string, stored: string): string | undefined {
    return decrypt(this.#key, `${this.id}:${name}`, stored.slice(PREFIX.length))?.toString('utf8');
  }
}
