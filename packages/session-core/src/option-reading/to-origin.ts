/**
 * An origin as browsers write it into the `Origin` header: a scheme and a host, with nothing behind them that would be
 * ignored. Undefined for anything else. Pages of apps and extensions have schemes of their own, such as `capacitor:`.
 */
export function toOrigin(value: unknown): string | undefined {
  if (typeof value !== 'string' || !ORIGIN.test(value) || !URL.canParse(value)) return undefined;
  const { origin, protocol, host } = new URL(value);
  // The URL standard knows no origin of other schemes than that of http and https.
  return origin === 'null' ? `${protocol}//${host}`.toLowerCase() : origin;
}

// No page has an origin of these schemes. That of all files has no host.
const ORIGIN = /^(?!(?:wss?|ftp):)[a-z][a-z\d+.-]*:\/\/[^/?#@\\*\s]+$/i;
