const PROTOCOL = /^rediss?:\/\//i;
/** What an unencoded `/`, `?` or `#` in a password leaves: an `@` after the host, or a fragment. */
const CUT_PASSWORD = /#|^[^/]*\/\/[^/?]*[/?].*@/s;
const SOCKET = /^(?:\/|(?:redis\+)?(?:unix|socket|file):|rediss?:\/\/\/.*\D)/i;
const OF_SOCKET = 'give a client of ioredis with that `path` in place of the url';
const ENCODED =
  'percent-encode the user and the password, as `encodeURIComponent()` does, and check the host and the port';

/**
 * The problem of the url of a Redis, as the end of a sentence. It quotes nothing of the url: any part may be of the
 * password.
 */
export function urlProblem(url: string): string | undefined {
  if (SOCKET.test(url)) return `is the path of a Unix socket: ${OF_SOCKET}`;
  if (!PROTOCOL.test(url)) return 'must be a redis:// or rediss:// url';
  if (!URL.canParse(url) || CUT_PASSWORD.test(url)) return `cannot be read: ${ENCODED}`;
  const { username, password, pathname, searchParams } = new URL(url);
  if (![username, password].every(isEncoded)) return `cannot be read: ${ENCODED}`;
  if (searchParams.has('keyPrefix'))
    return 'has a `keyPrefix`, which scripts do not see: remove it and use option `namespace`';
  const databases = [pathname.slice(1), searchParams.get('db') ?? ''];
  return databases.every((each) => /^\d*$/.test(each))
    ? undefined
    : 'must end with the number of a database, such as /0, or have no path';
}

function isEncoded(text: string): boolean {
  try {
    decodeURIComponent(text);
    return true;
  } catch {
    return false;
  }
}
