import { createHmac, timingSafeEqual } from 'node:crypto';
import type { Secret } from '../configuration/express-session.options.js';

/** A session id of express-session, with the secret that its cookie was signed with. */
export interface PresentedSid {
  readonly sid: string;
  readonly secret: Secret;
}

// The prefix of a signed value.
const SIGNED = 's:';

/** The session id in a cookie of express-session; undefined unless one of the secrets signed it. Never throws. */
export function presentedSid(
  header: string | undefined,
  name: string,
  secrets: readonly Secret[],
): PresentedSid | undefined {
  if (!header?.includes(name)) return undefined;
  for (const pair of header.split(';')) {
    const separator = pair.indexOf('=');
    if (pair.slice(0, separator).trim() !== name) continue;
    const found = verified(decoded(pair.slice(separator + 1).trim()), secrets);
    if (found) return found;
  }
  return undefined;
}

function verified(value: string, secrets: readonly Secret[]): PresentedSid | undefined {
  const end = value.lastIndexOf('.');
  if (!value.startsWith(SIGNED) || end <= SIGNED.length) return undefined;
  const sid = value.slice(SIGNED.length, end);
  const presented = Buffer.from(value.slice(end + 1));
  const secret = secrets.find((each) => {
    const expected = Buffer.from(createHmac('sha256', each).update(sid).digest('base64').replace(/=+$/, ''));
    return presented.length === expected.length && timingSafeEqual(presented, expected);
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
