import { createHmac, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { stringifySetCookie } from 'cookie';
import {
  appendHeader,
  cookieValues,
  type ForeignSession,
  type ForeignSessionData,
  type ForeignSessions,
  type NamedForeignSession,
  type SessionTakeover,
} from '@nest-session/core/internal';
import { JsonAttributeSerializer, SessionToken } from '@nest-session/core';
import type { ResolvedExpressSessionOptions, Secret } from './express-session.options.js';
import { isOwn, type PrincipalRule, type SessionProperties, userIn } from './principal/principal-rule.js';
import { logger, warnOnce } from './express-session.logger.js';

// The prefix of a signed value.
const SIGNED = 's:';
// The length of 32 bytes in base64 without padding.
const SIGNATURE_LENGTH = 43;

/** Returns the session ids in cookies of express-session that one of the secrets signed. Never throws. */
function presentedSids(header: unknown, name: string, secrets: readonly Secret[]): string[] {
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

/** The JSON of the properties, including the cookie. @throws TypeError when the user of the session has no name */
function decodeOldSession(text: string, principal: PrincipalRule | undefined): ForeignSessionData | undefined {
  const stored = parsed(text);
  if (typeof stored !== 'object' || stored === null || !('cookie' in stored)) return undefined;
  const { cookie, ...properties } = stored as SessionProperties;
  const kept = Object.entries(properties).filter(([name, value]) => isName(name) && value !== null);
  const attributes = new Map<string, unknown>(kept);
  const { originalMaxAge } = (cookie ?? {}) as { readonly originalMaxAge?: unknown };
  const longestLife =
    typeof originalMaxAge === 'number' && originalMaxAge > 0 ? Math.ceil(originalMaxAge) : DEFAULT_LIFE;
  return { attributes, principalName: principal?.nameIn(properties), longestLife: Math.min(longestLife, LONGEST_LIFE) };
}

/** The `ttl` of connect-redis, for a cookie without a lifetime: a day, in milliseconds. */
const DEFAULT_LIFE = 86_400_000;
/** Browsers keep no cookie for longer than 400 days. */
const LONGEST_LIFE = 400 * DEFAULT_LIFE;

/** Whether stores can keep an attribute of this name and the application may set it. */
function isName(name: string): boolean {
  return name !== '' && isOwn(name) && !/\p{Surrogate}/u.test(name);
}

const json = new JsonAttributeSerializer();

function parsed(text: string): unknown {
  try {
    return json.deserialize(text);
  } catch {
    return undefined;
  }
}

type Options = Pick<ResolvedExpressSessionOptions, 'secrets' | 'name' | 'prefix' | 'oldCookie' | 'principal'>;

export class ConnectRedisTakeover implements SessionTakeover {
  #hasWarned = false;

  constructor(
    private readonly options: Options,
    private readonly sessions: ForeignSessions,
  ) {}

  find(request: IncomingMessage): ForeignSession[] {
    const { secrets, name, prefix } = this.options;
    const decode = (text: string) => this.#decode(text);
    return presentedSids(request.headers.cookie, name, secrets).map((sid) => ({
      token: tokenOf(sid, secrets),
      move: (id, device) => this.sessions.move(`${prefix}${sid}`, id, decode, device),
      end: (id) => this.sessions.end(`${prefix}${sid}`, id, decodeToEnd),
      expire: (response) => this.#expire(response),
    }));
  }

  named(sid: string, of?: string): NamedForeignSession {
    const { secrets, prefix, principal } = this.options;
    const decode = (text: string) => {
      if (of === undefined) return decodeToEnd(text);
      try {
        const data = decodeOldSession(text, principal);
        return data?.principalName === of ? data : undefined;
      } catch {
        return undefined;
      }
    };
    return {
      token: tokenOf(sid, secrets),
      end: (id) => this.sessions.end(`${prefix}${sid}`, id, decode),
      reportUnknown: () => warnOnce(NOT_FOUND),
    };
  }

  /** Without a name, nothing could end the session with the others of its user: the user signs in again. */
  #decode(text: string): ForeignSessionData | undefined {
    const { principal } = this.options;
    try {
      const data = decodeOldSession(text, principal);
      if (principal?.isAssumed && hasUserOfPassport(data, principal)) throw new TypeError(NOT_STATED);
      return data;
    } catch (error) {
      if (!this.#hasWarned) logger.warn(`${NOT_TAKEN_OVER}${(error as Error).message}`);
      this.#hasWarned = true;
      return undefined;
    }
  }

  #expire(response: ServerResponse): void {
    const { name, oldCookie } = this.options;
    const { domain, ...attributes } = oldCookie;
    // Browsers ignore what sets or removes a cookie with such a name unless it is Secure.
    const secure = oldCookie.secure === true || PREFIXED.test(name);
    const cookie = { name, value: '', maxAge: 0, ...attributes, secure, ...(domain !== undefined && { domain }) };
    appendHeader(response, 'Set-Cookie', stringifySetCookie(cookie));
  }
}

/** express-session keeps whatever an application assigns, which a client may have chosen. */
function hasUserOfPassport(data: ForeignSessionData | undefined, { passportKeys }: PrincipalRule): boolean {
  return [...(passportKeys ?? [])].some((key) => userIn(data?.attributes.get(key)) !== undefined);
}

const NOT_STATED =
  'It holds a user of Passport, and nothing says that the application uses Passport: set ' +
  "`principal: 'passport'` of ExpressSessionModule.forRoot(), or a function or false where it does not";

const NOT_TAKEN_OVER =
  'A session of express-session was not taken over, so its user has to sign in again. This is logged once. ';

const PREFIXED = /^__(?:host|http|secure)-/i;

const NOT_FOUND =
  'Sessions.end() got an id of express-session and found no session: it has ended, or it was taken over and has another ' +
  'id since a login, and then it goes on. To sign a user out, call Sessions.endAll(name). This is logged once';

// All requests with the old session get the same new token, whichever secret has signed their cookies: it is derived by
// the oldest secret, which stands last.
export function tokenOf(sid: string, secrets: readonly Secret[]): SessionToken {
  return new SessionToken(createHmac('sha256', secrets.at(-1)!).update(`takeover:${sid}`).digest('base64url'));
}

/** Whoever the user is, the session may end. */
function decodeToEnd(text: string): ForeignSessionData | undefined {
  return decodeOldSession(text, undefined);
}
