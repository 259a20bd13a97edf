import type { IncomingMessage } from 'node:http';
import type { SessionClient } from '@nest-session/core';
import type { CookieDescription } from '../bag/session-cookie.js';
import type { PrincipalRule } from '../configuration/principal-rule.js';
import type { NoPrincipalReport } from './principal.recorder.js';

/** The settings of all property bags of an application. */
export interface BagSettings {
  /** Whether the session ends when `req.session` is set to null. */
  readonly unset: 'keep' | 'destroy';
  /** Whether a new session is stored even if the application set no property. */
  readonly saveUninitialized: boolean;
  /** Determines the principal of a session. Undefined: the application does. */
  readonly principal: PrincipalRule | undefined;
  readonly reportNoPrincipal: NoPrincipalReport;
  /** Called when the application has read the id of a session: before the response, where there is one. */
  tellOfId(): void;
  /** The idle timeout in seconds of a session whose cookie has no lifetime of its own. -1 means none. */
  timeoutOf(principalName: string | undefined): number;
  /** The lifetime of the cookie of a client in seconds. 0 means until the browser is closed. */
  lifetimeOf(client: SessionClient): number;
  /** The attributes of the cookie in the response to a request or, without one, those that all requests share. */
  describeCookie(request?: IncomingMessage): CookieDescription;
}
