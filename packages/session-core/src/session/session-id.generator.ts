import { randomBytes } from 'node:crypto';

/**
 * Draws the tokens of new sessions and of sessions that change their id. What it draws is looked at before it is used:
 * 22 to 128 letters, digits, `-` and `_`, and never the same twice.
 */
export abstract class SessionIdGenerator {
  /** A token that nobody can guess: at least 128 bits from a cryptographic source. */
  abstract generate(): string;

  /** Whether it can have drawn a token that a client presents. The store is not asked about others. */
  canHaveDrawn(_token: string): boolean {
    return true;
  }
}

// OWASP ASVS 5.0, 7.2.3 asks for 128 bits.
const BYTES = 32;
const DRAWN = /^[A-Za-z0-9_-]{43}$/;

/** 256 random bits as base64url. */
export class RandomSessionIdGenerator extends SessionIdGenerator {
  generate(): string {
    return randomBytes(BYTES).toString('base64url');
  }

  override canHaveDrawn(token: string): boolean {
    return DRAWN.test(token);
  }
}
