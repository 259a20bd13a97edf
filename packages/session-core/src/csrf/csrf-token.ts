import { randomBytes, timingSafeEqual } from 'node:crypto';
import { ResponseCommit } from '../http/response-commit.js';
import type { VisitorToken } from '../http/visitor-token.js';
import { CSRF_ATTRIBUTE } from '../session/attribute-names.js';
import type { Session } from '../session/session.js';
import { TrackedSession } from '../session/tracked-session.js';

const TOKEN_BYTES = 32;

/**
 * Returns the CSRF token of a session, for a form field or a request header. Each call returns a different text, and
 * all are valid until the session ends or its id changes, as after a sign-in. Without a session, nothing is stored: the
 * browser gets the token in a cookie, which stays valid when a session begins without a sign-in.
 * @throws SessionStateError when a new cookie is needed and the response headers were already sent
 */
export async function csrfTokenOf(session: Session): Promise<string> {
  const { id } = session;
  const known = storedToken(session);
  if (known) return mask(known);
  const tracked = TrackedSession.of(session);
  const visitor = visitorOf(tracked);
  const unstored = tracked.isSet ? visitor?.known : visitor?.take();
  if (unstored && !tracked.isSet) return mask(unstored);
  const token = unstored ?? randomBytes(TOKEN_BYTES);
  const drawn = `${id}:${token.toString('base64url')}`;
  if (tracked.storedId !== id) {
    // No other request knows this id yet.
    tracked.setOwnAttribute(CSRF_ATTRIBUTE, drawn);
    return mask(token);
  }
  // When several pages load at once, the first one decides. Otherwise only the last would have a valid token.
  const kept = await tracked.updateOwnAttribute<unknown>(CSRF_ATTRIBUTE, (current) =>
    tokenFor(id, current) ? current : drawn,
  );
  return mask(tokenFor(id, kept) ?? token);
}

/** Whether `csrfTokenOf()` returned this text for this session and its current id, or for this browser without one. */
export function isCsrfTokenOf(session: Session, text: string): boolean {
  const expected = storedToken(session);
  const given = unmask(text);
  if (!given) return false;
  return expected ? timingSafeEqual(given, expected) : visitorOf(TrackedSession.of(session))?.accepts(given) === true;
}

/** Only of a browser without a session: what others may have planted there must not count in a session. */
function visitorOf(session: TrackedSession): VisitorToken | undefined {
  const { response, isNew, principalName } = session;
  const isVisitor = isNew && principalName === undefined && response instanceof ResponseCommit;
  return isVisitor && !response.session.isUnavailable ? response.visitor : undefined;
}

function storedToken(session: Session): Buffer | undefined {
  return tokenFor(session.id, TrackedSession.of(session).peekAttribute(CSRF_ATTRIBUTE));
}

function tokenFor(id: string, value: unknown): Buffer | undefined {
  if (typeof value !== 'string' || !value.startsWith(`${id}:`)) return undefined;
  const token = Buffer.from(value.slice(id.length + 1), 'base64url');
  return token.length === TOKEN_BYTES ? token : undefined;
}

/**
 * Encodes a token for a page as a random mask and the masked token. The text differs each time, so the size of a
 * compressed page reveals nothing about the token (BREACH).
 */
function mask(token: Buffer): string {
  const pad = randomBytes(token.length);
  return Buffer.concat([pad, xor(token, pad)]).toString('base64url');
}

function unmask(text: string): Buffer | undefined {
  const masked = Buffer.from(text, 'base64url');
  // Buffer.from() skips what is not base64.
  if (masked.length !== 2 * TOKEN_BYTES || masked.toString('base64url') !== text) return undefined;
  return xor(masked.subarray(TOKEN_BYTES), masked.subarray(0, TOKEN_BYTES));
}

function xor(bytes: Buffer, pad: Buffer): Buffer {
  return Buffer.from(bytes.map((byte, index) => byte ^ pad[index]!));
}
