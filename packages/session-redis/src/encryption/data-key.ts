import { createSecretKey, type KeyObject, randomBytes } from 'node:crypto';
import { decrypt, encrypt, sizeOfData } from './aes-gcm.js';

// Neither JSON nor devalue begins a text with a letter other than those of `true`, `false` and `null`.
const PREFIX = 'enc1:';

/**
 * The key of the attributes of one session. It stays with the session when its id changes, and is stored only under a key
 * of the key ring. Each session has its own, so no key comes near the 2^32 texts that random nonces allow.
 */
export class DataKey {
  readonly #key: KeyObject;

  /** @param id tells data keys apart: it is no secret */
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

  /** The number of bytes of the text in a stored one. */
  static bytesIn(stored: string): number {
    return DataKey.hasEncrypted(stored) ? sizeOfData(stored.length - PREFIX.length) : Buffer.byteLength(stored);
  }

  /** Only the attribute of this name can be decrypted from the text. */
  encrypt(name: string, text: string): string {
    return PREFIX + encrypt(this.#key, `${this.id}:${name}`, text);
  }

  /** Undefined when the text is none of this key and of the attribute of this name. */
  decrypt(name: string, stored: string): string | undefined {
    return decrypt(this.#key, `${this.id}:${name}`, stored.slice(PREFIX.length))?.toString('utf8');
  }
}
