import type { IncomingMessage } from 'node:http';
import type { ResolvedCookieAttributes } from './cookie.options.js';
import { isHostName } from './cookie.validation.js';
import { hostOf, isSecure, isWithin } from './request-origin.js';

/** The attributes of a cookie in the response to one request. */
export interface SetCookieAttributes extends Pick<
  ResolvedCookieAttributes,
  'path' | 'httpOnly' | 'sameSite' | 'partitioned'
> {
  /** Whether the browser sends the cookie over https only. */
  readonly secure: boolean;
  /** The domain whose hosts get the cookie. If unset, only the host of the request gets it. */
  readonly domain?: string;
}

/** Decides Secure and Domain for one request. The other attributes are as configured. */
export function cookieAttributes(request: IncomingMessage, configured: ResolvedCookieAttributes): SetCookieAttributes {
  const { path, httpOnly, sameSite, partitioned } = configured;
  const secure = configured.secure === 'auto' ? isSecure(request) : configured.secure;
  const domain = domainFor(request, configured);
  return { path, httpOnly, secure, sameSite, partitioned, ...(domain !== undefined && { domain }) };
}

function domainFor(request: IncomingMessage, { domain, domains }: ResolvedCookieAttributes): string | undefined {
  if (!domains) return domain;
  const host = hostOf(request);
  return host !== undefined && isHostName(host) ? domains.find((each) => isWithin(host, each)) : undefined;
}
