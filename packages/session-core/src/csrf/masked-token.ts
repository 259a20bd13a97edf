import { randomBytes } from 'node:crypto';

/** Bytes of a CSRF token. */
export const TOKEN_BYTES = 32;

/**
 * A token as a page carries it: a random mask, and the token under it. It differs each time, so that the size of a
 * compressed page says nothing about the token (BREACH).
 */
export function mask(token: Buffer): string {
  const pad = randomBytes(token.length);
  return Buffer.concat([pad, xor(token, pad)]).toString('base64url');
}

/** The token under the mask; undefined for a text that `mask()` does not make. */
export function unmask(text: string): Buffer | undefined {
  const masked = Buffer.from(text, 'base64url');
  // Buffer.from() skips what is not base64.
  if (masked.length !== 2 * TOKEN_BYTES || masked.toString('base64url') !== text) return undefined;
  return xor(masked.subarray(TOKEN_BYTES), masked.subarray(0, TOKEN_BYTES));
}

function xor(bytes: Buffer, pad: Buffer): Buffer {
  return Buffer.from(bytes.map((byte, index) => byte ^ pad[index]!));
}
