import { randomBytes } from 'node:crypto';

/**
 * Generates the tokens of new and of rotated sessions. A token has 22 to 128 letters, digits, `-` and `_`; anything
 * else, or the same token twice in a row, is refused.
 */
export abstract class SessionTokenGenerator {
  /** A token that cannot be guessed: at least 128 bits from a cryptographic source. */
  abstract generate(): string;

  /** Whether `generate()` can have returned a token that a client presents. The store is not asked about others. */
  canHaveDrawn(_token: string): boolean {
    return true;
  }
}

// OWASP ASVS 5.0, 7.2.3 asks for 128 bits.
const BYTES = 32;
const DRAWN = /^[A-Za-z0-9_-]{43}$/;

/** Generates tokens of 256 random bits, base64url; the default. */
export class RandomSessionTokenGenerator extends SessionTokenGenerator {
  generate(): string {
    return randomBytes(BYTES).toString('base64url');
  }

  override canHaveDrawn(token: string): boolean {
    return DRAWN.test(token);
  }
}
