import type { IncomingMessage } from 'node:http';
import type { ResolvedCookieAttributes } from './cookie.options.js';
import { isHostName } from './cookie.validation.js';
import { hostOf, isSecure, isWithin } from './request-origin.js';

/** The attributes of a cookie as the response to one request sets them. */
export interface SetCookieAttributes extends Pick<
  ResolvedCookieAttributes,
  'path' | 'httpOnly' | 'sameSite' | 'partitioned'
> {
  /** Whether the browser sends the cookie over https only. */
  readonly secure: boolean;
  /** The domain whose hosts get the cookie; unset: the host of the request alone. */
  readonly domain?: string;
}

/** Decides Secure and Domain for one request; the other attributes are set as configured. */
export function cookieAttributes(request: IncomingMessage, configured: ResolvedCookieAttributes): SetCookieAttributes {
  const { path, httpOnly, sameSite, partitioned } = configured;
  const secure = configured.secure === 'auto' ? isSecure(request) : configured.secure;
  const domain = domainFor(request, configured);
  return { path, httpOnly, secure, sameSite, partitioned, ...(domain !== undefined && { domain }) };
}

function domainFor(request: IncomingMessage, { domain, domainPattern }: ResolvedCookieAttributes): string | undefined {
  const host = domainPattern ? hostOf(request) : undefined;
  // The client chooses the host, and the pattern what to take from it: check both.
  if (!domainPattern || host === undefined || !isHostName(host)) return domain;
  const found = domainPattern.exec(host)?.[1];
  return found !== undefined && isHostName(found) && isWithin(host, found) ? found : undefined;
}
