import type { IncomingMessage } from 'node:http';
import { isIPv4, isIPv6 } from 'node:net';
import type { ResolvedDeviceOptions } from '../configuration/session.options.js';
import { addressOf } from '../resolvers/proxied-request.js';
import { networkOfIPv6, plainAddress } from '../security-events/network-of.js';
import { type SessionDevice, writeDevice } from '../session/session-info.js';

// With the longest address, which has 45 characters, a device takes less than 200 bytes in every store.
const LONGEST_USER_AGENT = 110;

/** The text of the client of a request. Everything in it can be a lie of the client. */
export function deviceOf(request: IncomingMessage, options: ResolvedDeviceOptions): string {
  const address = options.address === 'none' ? undefined : shownAddressOf(request, options);
  const userAgent = options.userAgent ? shortUserAgent(request.headers['user-agent']) : undefined;
  const device: SessionDevice = { ...(address ? { address } : {}), ...(userAgent ? { userAgent } : {}) };
  return writeDevice(device);
}

function shownAddressOf(request: IncomingMessage, options: ResolvedDeviceOptions): string | undefined {
  const found: unknown = options.addressOf ? options.addressOf(request) : addressOf(request);
  if (typeof found !== 'string') return undefined;
  const address = plainAddress(found);
  if (!isIPv4(address) && !isIPv6(address)) return undefined;
  return options.address === 'full' ? address : networkOf(address);
}

/** The first 24 bits of an IPv4 address, and the first 48 of an IPv6 address; the rest is 0. */
function networkOf(address: string): string {
  if (isIPv4(address)) return address.replace(/\d+$/, '0');
  return networkOfIPv6(address, 3);
}

/** What tells browsers and systems apart, without what all of them say. */
function shortUserAgent(userAgent: unknown): string | undefined {
  if (typeof userAgent !== 'string') return undefined;
  return userAgent
    .slice(0, 1000)
    .replace(/^Mozilla\/\d\.\d /, '')
    .replace(/AppleWebKit\/[\d.]+ \(KHTML, like Gecko\) ?/, '')
    .replace(/Gecko\/\d+ /, '')
    .replaceAll(/[^ !#-[\]-~]+/g, '')
    .slice(0, LONGEST_USER_AGENT)
    .trim();
}
