import { createHmac, timingSafeEqual } from 'node:crypto';
import { cookieValues } from '@nest-session/core/internal';
import type { Secret } from '../configuration/express-session.options.js';

// The prefix of a signed value.
const SIGNED = 's:';
// The length of 32 bytes in base64 without padding.
const SIGNATURE_LENGTH = 43;

/** Returns the session ids in cookies of express-session that one of the secrets signed. Never throws. */
export function presentedSids(header: unknown, name: string, secrets: readonly Secret[]): string[] {
  const sids = new Set<string>();
  for (const value of cookieValues(header, name)) {
    const sid = verified(decoded(value), secrets);
    if (sid !== undefined) sids.add(sid);
  }
  return [...sids];
}

function verified(value: string, secrets: readonly Secret[]): string | undefined {
  const end = value.lastIndexOf('.');
  if (!value.startsWith(SIGNED) || end <= SIGNED.length) return undefined;
  const sid = value.slice(SIGNED.length, end);
  const presented = Buffer.from(value.slice(end + 1));
  // Check the length first: a request with many cookies would otherwise cost many HMACs.
  if (presented.length !== SIGNATURE_LENGTH) return undefined;
  const isSigned = secrets.some((each) => {
    const expected = Buffer.from(createHmac('sha256', each).update(sid).digest('base64').replace(/=+$/, ''));
    return timingSafeEqual(presented, expected);
  });
  return isSigned ? sid : undefined;
}

function decoded(value: string): string {
  try {
    return decodeURIComponent(value);
  } catch {
    return '';
  }
}
