import { randomBytes } from 'node:crypto';

/** Bytes of a CSRF token. */
export const TOKEN_BYTES = 32;

/**
 * Encodes a token for a page as a random mask and the masked token. The text differs each time, so the size of a
 * compressed page reveals nothing about the token (BREACH).
 */
export function mask(token: Buffer): string {
  const pad = randomBytes(token.length);
  return Buffer.concat([pad, xor(token, pad)]).toString('base64url');
}

/** The token under the mask; undefined for a text that `mask()` cannot have returned. */
export function unmask(text: string): Buffer | undefined {
  const masked = Buffer.from(text, 'base64url');
  // Buffer.from() skips what is not base64.
  if (masked.length !== 2 * TOKEN_BYTES || masked.toString('base64url') !== text) return undefined;
  return xor(masked.subarray(TOKEN_BYTES), masked.subarray(0, TOKEN_BYTES));
}

function xor(bytes: Buffer, pad: Buffer): Buffer {
  return Buffer.from(bytes.map((byte, index) => byte ^ pad[index]!));
}
