import { createCipheriv, createDecipheriv, type KeyObject, randomBytes } from 'node:crypto';

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

/** The size of the data in an encrypted text of this length, in bytes. */
export function sizeOfData(length: number): number {
  return Math.max(0, Math.floor((length * 3) / 4) - NONCE_BYTES - TAG_BYTES);
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
