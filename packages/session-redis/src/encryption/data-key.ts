import { createCipheriv, createDecipheriv, createSecretKey, type KeyObject, randomBytes } from 'node:crypto';

const ALGORITHM = 'aes-256-gcm';
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
// Without this option, Node.js accepts shorter tags, which can be forged.
const OPTIONS = { authTagLength: TAG_BYTES };

/** Encrypts data. Decrypting it takes the same key and the same associated text. */
export function encrypt(key: KeyObject, associated: string, data: string | Buffer): string {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv(ALGORITHM, key, nonce, OPTIONS);
  cipher.setAAD(Buffer.from(associated));
  const encrypted = typeof data === 'string' ? cipher.update(data, 'utf8') : cipher.update(data);
  return Buffer.concat([nonce, encrypted, cipher.final(), cipher.getAuthTag()]).toString('base64url');
}

/** Decrypts data. Returns undefined if the key, the associated text or the text differ from those of the encryption. */
export function decrypt(key: KeyObject, associated: string, text: string): Buffer | undefined {
  const bytes = Buffer.from(text, 'base64url');
  if (bytes.length < NONCE_BYTES + TAG_BYTES) return undefined;
  const decipher = createDecipheriv(ALGORITHM, key, bytes.subarray(0, NONCE_BYTES), OPTIONS);
  decipher.setAAD(Buffer.from(associated));
  decipher.setAuthTag(bytes.subarray(-TAG_BYTES));
  const data = decipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES));
  try {
    decipher.final();
    return data;
  } catch {
    return undefined;
  }
}

// No text of JSON or devalue begins with it.
const PREFIX = 'enc1:';

export function isEncrypted(stored: string): boolean {
  return stored.startsWith(PREFIX);
}

/** The size of the plain text of a stored text, in bytes. */
export function bytesIn(stored: string): number {
  if (!isEncrypted(stored)) return Buffer.byteLength(stored);
  return Math.max(0, Math.floor(((stored.length - PREFIX.length) * 3) / 4) - NONCE_BYTES - TAG_BYTES);
}

/**
 * Encrypts the attributes of one session, through all rotations, and is stored only wrapped under a key of the ring.
 * No key encrypts nearly as many texts as random nonces allow (2^32).
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

  /** Encrypts the text of an attribute. Only an attribute of this name can decrypt it. */
  encrypt(name: string, text: string): string {
    return PREFIX + encrypt(this.key, `${this.id}:${name}`, text);
  }

  /** Returns undefined if a text was not encrypted with this key for an attribute of this name. */
  decrypt(name: string, stored: string): string | undefined {
    return decrypt(this.key, `${this.id}:${name}`, stored.slice(PREFIX.length))?.toString('utf8');
  }
}
