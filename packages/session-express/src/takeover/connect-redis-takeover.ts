import { createHmac } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { SessionToken } from '@nest-session/core';
import {
  appendHeader,
  type ForeignSession,
  type ForeignSessionData,
  type ForeignSessions,
  OneLineLogger,
  type SessionTakeover,
} from '@nest-session/core/internal';
import { stringifySetCookie } from 'cookie';
import type { ResolvedExpressSessionOptions } from '../configuration/express-session.options.js';
import { presentedSid, type PresentedSid } from './connect-sid.js';
import { decodeOldSession } from './decode-old-session.js';

type Options = Pick<ResolvedExpressSessionOptions, 'secrets' | 'name' | 'prefix' | 'oldCookie' | 'principal'>;

/** Takes over sessions that express-session and connect-redis stored. It finds them by their signed cookies. */
export class ConnectRedisTakeover implements SessionTakeover {
  #hasWarned = false;

  constructor(
    private readonly options: Options,
    private readonly sessions: ForeignSessions,
  ) {}

  find(request: IncomingMessage): ForeignSession | undefined {
    const { secrets, name, prefix } = this.options;
    const presented = presentedSid(request.headers.cookie, name, secrets);
    if (!presented) return undefined;
    return {
      token: tokenOf(presented),
      move: (id, device) => this.sessions.move(`${prefix}${presented.sid}`, id, (text) => this.#decode(text), device),
      expire: (response) => this.#expire(response),
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

/**
 * Derives the token, so that parallel requests with the old cookie get the same session. Deriving it takes the secret.
 */
export function tokenOf({ sid, secret }: PresentedSid): SessionToken {
  return new SessionToken(createHmac('sha256', secret).update(`takeover:${sid}`).digest('base64url'));
}
