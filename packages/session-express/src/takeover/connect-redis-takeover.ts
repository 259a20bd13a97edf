import { createHmac } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { SessionToken } from '@nest-session/core';
import {
  appendHeader,
  type ForeignSession,
  type ForeignSessionData,
  type ForeignSessions,
  type NamedForeignSession,
  OneLineLogger,
  type SessionTakeover,
} from '@nest-session/core/internal';
import { stringifySetCookie } from 'cookie';
import type { ResolvedExpressSessionOptions, Secret } from '../configuration/express-session.options.js';
import { warnOnce } from '../bag/warn-once.js';
import { presentedSids } from './connect-sid.js';
import { decodeOldSession } from './decode-old-session.js';

type Options = Pick<ResolvedExpressSessionOptions, 'secrets' | 'name' | 'prefix' | 'oldCookie' | 'principal'>;

/** Takes over sessions that express-session and connect-redis stored. It finds them by their signed cookies. */
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
      const data = of === undefined ? decodeToEnd(text) : decodeOldSession(text, principal);
      return of === undefined || data?.principalName === of ? data : undefined;
    };
    return {
      token: tokenOf(sid, secrets),
      end: (id) => this.sessions.end(`${prefix}${sid}`, id, (text) => undefinedIfThrown(() => decode(text))),
      reportUnknown: () => warnOnce(NOT_FOUND),
    };
  }

  /** Without a name, nothing could end the session with the others of its user: the user signs in again. */
  #decode(text: string): ForeignSessionData | undefined {
    try {
      return decodeOldSession(text, this.options.principal);
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

const logger = new OneLineLogger('ExpressSession');

const NOT_TAKEN_OVER =
  'A session of express-session was not taken over, so its user has to sign in again. This is logged once. ';

const PREFIXED = /^__(?:host|http|secure)-/i;

const NOT_FOUND =
  'Sessions.end() got an id of express-session and found no session: it has ended, or it was taken over and has another ' +
  'id since a login, and then it goes on. To sign a user out, call Sessions.endAll(name). This is logged once';

/**
 * Derives the token, so that all requests with the old session get the same new one, whichever secret has signed their
 * cookies: by the oldest secret, which stands last, because a newer one is put before it. Deriving it takes that
 * secret.
 */
export function tokenOf(sid: string, secrets: readonly Secret[]): SessionToken {
  return new SessionToken(createHmac('sha256', secrets.at(-1)!).update(`takeover:${sid}`).digest('base64url'));
}

/** Whoever the user is, the session may end. */
function decodeToEnd(text: string): ForeignSessionData | undefined {
  return decodeOldSession(text, undefined);
}

function undefinedIfThrown<T>(decode: () => T): T | undefined {
  try {
    return decode();
  } catch {
    return undefined;
  }
}
