import type { IncomingMessage } from 'node:http';
import type { RequestFacts } from '../security-events/security-events.js';

const PLATFORM = Symbol('request of the platform');

/** Express adds these to a Node.js request, and Fastify has them on its own request. They respect trusted proxies. */
interface Origin {
  readonly protocol?: string;
  readonly hostname?: string;
  readonly ip?: string;
  /** The Fastify request. Reading its `ip` takes time. */
  readonly [PLATFORM]?: { readonly ip: string };
}

type PlatformRequest = IncomingMessage & Origin;

export function setOrigin(
  request: IncomingMessage & { -readonly [K in keyof Origin]: Origin[K] },
  origin: Required<Pick<Origin, 'protocol' | 'hostname' | 'ip'>>,
): void {
  request.protocol = origin.protocol;
  request.hostname = origin.hostname;
  request[PLATFORM] = origin;
}

export function fastifyRequestOf(request: IncomingMessage): object | undefined {
  return (request as PlatformRequest)[PLATFORM];
}

/** The address of the client; undefined once it has disconnected. */
export function addressOf(request: IncomingMessage): string | undefined {
  const { ip, [PLATFORM]: platform, socket } = request as PlatformRequest;
  return ip ?? platform?.ip ?? socket.remoteAddress;
}

export function isSecure(request: IncomingMessage): boolean {
  const { protocol } = request as PlatformRequest;
  if (protocol !== undefined) return protocol === 'https';
  return 'encrypted' in request.socket && request.socket.encrypted === true;
}

/** The host that the client asked for, in lower case and without the port. */
export function hostOf(request: IncomingMessage): string | undefined {
  const { hostname, headers } = request as PlatformRequest;
  // HTTP/2 has the pseudo header `:authority` instead of Host.
  const host = hostname ?? headers.host ?? headers[':authority'];
  return typeof host === 'string' ? host.replace(/:\d*$/, '').toLowerCase() : undefined;
}

/** `hosts` as in Host headers. False for `null`, the origin of sandboxed frames of other pages. */
export function isOriginOf(origin: unknown, request: IncomingMessage, hosts: readonly unknown[]): boolean {
  if (typeof origin !== 'string') return false;
  const page = URL.canParse(origin) ? new URL(origin) : undefined;
  if (!page || !['http:', 'https:'].includes(page.protocol)) return false;
  // An attacker in the network can change a page that came over http.
  if (isSecure(request) && page.protocol !== 'https:') return false;
  // Behind a proxy that ends TLS, only the Origin has the scheme, and with it the port that a Host header leaves out.
  const named = (host: unknown) => (typeof host === 'string' ? `${page.protocol}//${host}` : '');
  return hosts.map(named).some((url) => URL.canParse(url) && new URL(url).host === page.host);
}

/** Whether a page came over http from another machine, so that anybody may have changed it on its way. */
export function mayHaveBeenChanged(origin: string, request: IncomingMessage): boolean {
  return origin.startsWith('http:') && !isLocal(hostOf(request) ?? '');
}

export function isWithin(host: string, domain: string): boolean {
  return host === domain.toLowerCase() || host.endsWith(`.${domain.toLowerCase()}`);
}

/** Whether a host is the browser's own machine, where browsers accept Secure cookies without https. */
export function isLocal(host: string): boolean {
  return isWithin(host, 'localhost') || host === '[::1]' || /^127(?:\.\d{1,3}){3}$/.test(host);
}

export function isForwardedFromHttps(request: IncomingMessage): boolean {
  const protocol = request.headers['x-forwarded-proto'];
  return typeof protocol === 'string' && /^\s*https\b/i.test(protocol);
}

// A request line may be as long as all headers together, and a proxy may pass any text on as an address.
const LONGEST_PATH = 256;
const LONGEST_ADDRESS = 64;

/** The facts about a request that a security event may contain. They include no query and no header. */
export function requestFactsOf(request: IncomingMessage): RequestFacts {
  // Routers change `url`, so prefer the original one.
  const { originalUrl = request.url ?? '' } = request as { readonly originalUrl?: string };
  return {
    method: request.method,
    path: pathOf(originalUrl).slice(0, LONGEST_PATH),
    remoteAddress: addressOf(request)?.slice(0, LONGEST_ADDRESS),
  };
}

/** The path of a URL. Removes the host, which may follow a user name and a password. */
function pathOf(url: string): string {
  const [withoutQuery = ''] = url.split(/[?#]/, 1);
  return withoutQuery.replace(/^[a-z][a-z\d+.-]*:\/\/[^/]*/i, '');
}
