import { createHmac, timingSafeEqual } from 'node:crypto';
import { cookieValues } from '@nest-session/core/internal';
import type { Secret } from '../configuration/express-session.options.js';

/** A session id of express-session, and the secret that signed its cookie. */
export interface PresentedSid {
  readonly sid: string;
  readonly secret: Secret;
}

// The prefix of a signed value.
const SIGNED = 's:';
// The length of 32 bytes in base64 without padding.
const SIGNATURE_LENGTH = 43;

/** Returns the session id in a cookie of express-session, or undefined if no secret signed it. Never throws. */
export function presentedSid(header: unknown, name: string, secrets: readonly Secret[]): PresentedSid | undefined {
  for (const value of cookieValues(header, name)) {
    const found = verified(decoded(value), secrets);
    if (found) return found;
  }
  return undefined;
}

function verified(value: string, secrets: readonly Secret[]): PresentedSid | undefined {
  const end = value.lastIndexOf('.');
  if (!value.startsWith(SIGNED) || end <= SIGNED.length) return undefined;
  const sid = value.slice(SIGNED.length, end);
  const presented = Buffer.from(value.slice(end + 1));
  // Check the length first: a request with many cookies would otherwise cost many HMACs.
  if (presented.length !== SIGNATURE_LENGTH) return undefined;
  const secret = secrets.find((each) => {
    const expected = Buffer.from(createHmac('sha256', each).update(sid).digest('base64').replace(/=+$/, ''));
    return timingSafeEqual(presented, expected);
  });
  return secret === undefined ? undefined : { sid, secret };
}

function decoded(value: string): string {
  try {
    return decodeURIComponent(value);
  } catch {
    return '';
  }
}
