import type { IncomingMessage } from 'node:http';
import { type CookiePolicy, isHostName } from './cookie.validation.js';
import { hostOf, isSecure, isWithin } from './proxied-request.js';

/** The attributes of a cookie as the response to one request sets them. */
export interface SetCookieAttributes extends Pick<CookiePolicy, 'path' | 'httpOnly' | 'sameSite' | 'partitioned'> {
  /** Whether the browser sends the cookie over https only. */
  readonly secure: boolean;
  /** The domain whose hosts get the cookie. If unset, only the host of the request gets it. */
  readonly domain?: string;
}

/** The attributes as the options have them. */
type ConfiguredAttributes = Omit<CookiePolicy, 'name' | 'security'>;

/** Decides Secure and Domain for one request; the other attributes are set as configured. */
export function attributesForRequest(request: IncomingMessage, configured: ConfiguredAttributes): SetCookieAttributes {
  const { path, httpOnly, sameSite, partitioned } = configured;
  const secure = configured.secure === 'auto' ? isSecure(request) : configured.secure;
  const domain = domainFor(request, configured);
  return { path, httpOnly, secure, sameSite, partitioned, ...(domain !== undefined && { domain }) };
}

function domainFor(request: IncomingMessage, { domain }: ConfiguredAttributes): string | undefined {
  if (typeof domain !== 'object') return domain;
  const host = hostOf(request);
  return host !== undefined && isHostName(host) ? domain.find((each) => isWithin(host, each)) : undefined;
}
