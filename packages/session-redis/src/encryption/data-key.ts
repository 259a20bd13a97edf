import { createSecretKey, type KeyObject, randomBytes } from 'node:crypto';
import { decrypt, encrypt, sizeOfData } from './aes-gcm.js';

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

// No text of JSON or devalue begins with it: the only letters that they begin with are those of `true`, `false`,
// `null`.
const PREFIX = 'enc1:';

/** Whether the stored text of an attribute is encrypted. */
export function isEncrypted(stored: string): boolean {
  return stored.startsWith(PREFIX);
}

/** The size of the plain text of a stored text, in bytes. */
export function bytesIn(stored: string): number {
  return isEncrypted(stored) ? sizeOfData(stored.length - PREFIX.length) : Buffer.byteLength(stored);
}

/** Encrypts the text of an attribute. Only an attribute of this name can decrypt it. */
export function encryptAttribute(dataKey: DataKey, name: string, text: string): string {
  return PREFIX + encrypt(dataKey.key, associatedData(dataKey, name), text);
}

/** Decrypts a text. Returns undefined if it was not encrypted with this key for an attribute of this name. */
export function decryptAttribute(dataKey: DataKey, name: string, stored: string): string | undefined {
  return decrypt(dataKey.key, associatedData(dataKey, name), stored.slice(PREFIX.length))?.toString('utf8');
}

function associatedData({ id }: DataKey, name: string): string {
  return `${id}:${name}`;
}
