import type { HttpRequestLike } from '../option-reading/http-request-like.js';
import { OptionReader } from '../option-reading/option.reader.js';

/** How much of the client's address is recorded. */
type DeviceAddress = (typeof DEVICE_ADDRESSES)[number];

const DEVICE_ADDRESSES = ['network', 'full', 'none'] as const;

/** What a session records of the client that creates it or signs in to it. */
export interface DeviceOptions {
  /**
   * `'network'`: the beginning of the address, 24 bits of IPv4 and 48 bits of IPv6, the rest 0. `'full'`: all of it.
   * @default 'network'
   */
  address?: DeviceAddress;
  /**
   * Gives the address of the client, for instance out of a header of your proxy. When it throws, the session is stored
   * without an address, and one line in the log says so.
   * @default the `ip` of the platform, which follows its option for trusted proxies, else the address of the connection
   */
  addressOf?: (request: HttpRequestLike) => string | undefined;
  /** Whether a shortened User-Agent header is recorded. @default true */
  userAgent?: boolean;
}

/** `DeviceOptions` with all defaults. */
export interface ResolvedDeviceOptions {
  /** How much of the address is recorded. */
  readonly address: DeviceAddress;
  /** The application's own way to find the address. */
  readonly addressOf: ((request: HttpRequestLike) => string | undefined) | undefined;
  /** Whether the User-Agent header is recorded. */
  readonly userAgent: boolean;
}

/** Reads the option `devices`. Undefined when no devices are recorded. */
export function readDeviceOptions(parent: OptionReader): ResolvedDeviceOptions | undefined {
  const given = parent.value('devices', isBooleanOrObject, 'true or false, or an object');
  if (given === undefined || given === false) return undefined;
  const reader = given === true ? new OptionReader('SessionModule', {}) : parent.section('devices');
  const options = {
    address: reader.oneOf('address', DEVICE_ADDRESSES, 'network'),
    addressOf: reader.value('addressOf', isFunction, 'a function that takes the request'),
    userAgent: reader.boolean('userAgent', true),
  };
  if (options.address === 'none' && options.addressOf) reader.problem(NO_ADDRESS);
  reader.finish();
  return options;
}

const NO_ADDRESS = "Option `devices.addressOf` has no effect with `devices.address` 'none': remove one of them.";

function isBooleanOrObject(value: unknown): value is boolean | object {
  return typeof value === 'boolean' || (typeof value === 'object' && value !== null && !Array.isArray(value));
}

function isFunction(value: unknown): value is (request: HttpRequestLike) => string | undefined {
  return typeof value === 'function';
}
