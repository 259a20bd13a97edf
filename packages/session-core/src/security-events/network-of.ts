import { isIPv6 } from 'node:net';

/** An address without a zone, and an IPv4 address as such, also when the socket speaks IPv6. */
export function plainAddress(address: string): string {
  const [plain = ''] = address.split('%');
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(plain);
  return mapped?.[1] ?? plain;
}

/** An IPv6 address whose first groups of 16 bits stay; the rest is 0. */
export function networkOfIPv6(address: string, groups: number): string {
  // URL knows the one form of an IPv6 address.
  const canonical = new URL(`http://[${address}]`).hostname.slice(1, -1);
  const [head = '', tail] = canonical.split('::');
  const first = head === '' ? [] : head.split(':');
  const rest = tail === undefined || tail === '' ? [] : tail.split(':');
  const all = [...first, ...Array<string>(8 - first.length - rest.length).fill('0'), ...rest];
  return new URL(`http://[${all.slice(0, groups).join(':')}::]`).hostname.slice(1, -1);
}

/** Whose an address is: whoever has one of IPv6 has all with the same first 64 bits. Any other text stays. */
export function holderOf(address: string | undefined): string | undefined {
  const plain = address === undefined ? '' : plainAddress(address);
  return isIPv6(plain) ? networkOfIPv6(plain, 4) : address;
}
