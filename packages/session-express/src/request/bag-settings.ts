import type { IncomingMessage } from 'node:http';
import type { SessionClient } from '@nest-session/core';
import type { CookieDescription } from '../bag/session-cookie.js';
import type { PrincipalRule } from '../configuration/principal-rule.js';

/** What all property bags of an application have in common. */
export interface BagSettings {
  /** What happens to the session when `req.session` is set to null. */
  readonly unset: 'keep' | 'destroy';
  /** Whether a new session is stored although the application set no property. */
  readonly saveUninitialized: boolean;
  /** Tells whose session it is. */
  readonly principal: PrincipalRule;
  /** The idle timeout of a session whose cookie has no lifetime of its own, in seconds; -1: none. */
  timeoutOf(principalName: string | undefined): number;
  /** The lifetime of the cookie of a client in seconds; 0: until the browser is closed. */
  lifetimeOf(client: SessionClient): number;
  /** The attributes of the cookie that a request would be sent; without a request, those that all requests have. */
  describeCookie(request?: IncomingMessage): CookieDescription;
}
