import { isIPv6 } from 'node:net';

/** Where to listen. Other machines reach the demo only if HOST says so. */
export const LISTEN_ADDRESS = process.env.HOST || '127.0.0.1';

const EVERY_ADDRESS = ['0.0.0.0', '::'];

/** The listening address as the host of a URL. */
export const OWN_NAME = nameOf(LISTEN_ADDRESS);

/** The host names that the demo accepts, on the port that it listens on. */
export const OWN_NAMES: readonly string[] = ['localhost', '127.0.0.1', '[::1]', OWN_NAME.toLowerCase()];

/** Further hosts, separated by commas. Each is the host of a URL, with its port unless it is the default port. */
export const OTHER_HOSTS: readonly string[] = (process.env.HOSTS ?? '').toLowerCase().split(/[\s,]+/);

function nameOf(address: string): string {
  return EVERY_ADDRESS.includes(address) ? 'localhost' : isIPv6(address) ? `[${address}]` : address;
}
