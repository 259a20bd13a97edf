import { randomBytes, timingSafeEqual } from 'node:crypto';
import { CSRF_ATTRIBUTE } from '../session/attribute-names.js';
import type { Session } from '../session/session.js';
import { TrackedSession } from '../session/tracked-session.js';
import { mask, TOKEN_BYTES, unmask } from './masked-token.js';

/**
 * Returns the CSRF token of a session, for a form field or a request header. Each call returns a different text, and
 * all of them are valid until the session ends or its id changes. The call starts a session if there is none. After a
 * sign-in, call it again for a page that stays open, because the earlier token is no longer valid.
 * @throws SessionStateError for a new session when the response headers were already sent
 */
export async function csrfTokenOf(session: Session): Promise<string> {
  const { id } = session;
  const known = storedToken(session);
  if (known) return mask(known);
  const token = randomBytes(TOKEN_BYTES);
  const drawn = `${id}:${token.toString('base64url')}`;
  const tracked = TrackedSession.of(session);
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

/** Whether `csrfTokenOf()` returned this text for this session and its current id. */
export function isCsrfTokenOf(session: Session, text: string): boolean {
  const expected = storedToken(session);
  const given = unmask(text);
  return expected !== undefined && given !== undefined && timingSafeEqual(given, expected);
}

function storedToken(session: Session): Buffer | undefined {
  return tokenFor(session.id, TrackedSession.of(session).peekAttribute(CSRF_ATTRIBUTE));
}

/** The token in a value of the attribute, if it was drawn for this id. A rotation invalidates the earlier token. */
function tokenFor(id: string, value: unknown): Buffer | undefined {
  if (typeof value !== 'string' || !value.startsWith(`${id}:`)) return undefined;
  const token = Buffer.from(value.slice(id.length + 1), 'base64url');
  return token.length === TOKEN_BYTES ? token : undefined;
}
