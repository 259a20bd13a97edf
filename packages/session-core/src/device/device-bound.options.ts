import type { ResolvedCookieOptions } from '../resolvers/cookie.options.js';
import type { Duration } from '../option-reading/duration.js';
import { isBooleanOrObject, OptionReader } from '../option-reading/option.reader.js';

/** How the sessions of signed-in users are bound to their browsers. */
export interface DeviceBoundOptions {
  /**
   * For how long a browser's proof counts, `'5m'` to `'1h'`. So long a copied cookie jar opens the session. The browser
   * renews it two minutes before, at the next request, and can sign 6 times in 9 minutes. @default '10m'
   */
  lifetime?: Duration;
  /**
   * The path below which the library itself answers, before guards, pipes and the global prefix. @default
   * '/session/device'
   */
  paths?: string;
  /**
   * Paths for which the browser waits for no proof, with all below them: static files. Requests for them need none.
   * @default none
   */
  exclude?: readonly string[];
  /**
   * Hosts, such as `'login.example.com'` or `'*.example.com'`, whose links make the browser renew its proof before it
   * follows them. From other hosts, the first page loads twice where the proof has expired. Those of
   * `csrf.trustedOrigins` need not be named. @default none
   */
  refreshFrom?: readonly string[];
  /**
   * What becomes of a request that has the cookie of a bound session and no proof:
   * - `'report'`: it is served, and a security event `missing-proof` tells of it;
   * - `'enforce'`: it has no session.
   * @default 'report'
   */
  mode?: 'report' | 'enforce';
}

/** The option `deviceBound`, checked and with all defaults. `lifetime` is milliseconds. */
export type ResolvedDeviceBoundOptions = NonNullable<ReturnType<typeof readDeviceBoundOptions>>;

const MINUTE = 60_000;

export function readDeviceBoundOptions(
  parent: OptionReader,
  cookie: Pick<ResolvedCookieOptions, 'domain' | 'partitioned'>,
  trustedOrigins: ReadonlySet<string>,
) {
  const given = parent.value('deviceBound', isBooleanOrObject, 'true or false, or an object');
  if (given === undefined || given === false) return undefined;
  const reader = given === true ? new OptionReader('SessionModule', {}) : parent.section('deviceBound');
  const options = {
    lifetime: reader.duration('lifetime', '10m', { atLeast: 5 * MINUTE, atMost: 60 * MINUTE, wholeSeconds: true }),
    paths: reader.text('paths', '/session/device', (path) => (isPath(path) ? undefined : A_PATH)),
    exclude: reader.value('exclude', isListOfPaths, 'a list of paths, such as `/assets`') ?? [],
    // Otherwise, no browser would renew its proof for what a front end on another origin asks for.
    refreshFrom: [
      ...(reader.value('refreshFrom', isListOfHosts, HOSTS) ?? []),
      ...[...trustedOrigins].map((origin) => new URL(origin).hostname),
    ],
    mode: reader.oneOf('mode', ['report', 'enforce'], 'report'),
  };
  reader.finish();
  if (cookie.domain !== undefined) parent.problem(OF_ONE_HOST);
  if (cookie.partitioned) parent.problem(PARTITIONED);
  return Object.freeze(options);
}

const OF_ONE_HOST =
  'Option `deviceBound` binds a session to one host, and `cookie.domain` gives it to others, whose users would be ' +
  'refused: remove one of the two.';

const PARTITIONED =
  'Option `deviceBound` needs a cookie that browsers keep in one place, and `cookie.partitioned` has one for each site ' +
  'that frames the application: remove one of the two.';

const A_PATH = 'must be a path such as `/session/device`, without a slash at its end';

function isPath(value: unknown): value is string {
  return typeof value === 'string' && /^(?:\/[\w.~-]+)+$/.test(value);
}

function isListOfPaths(value: unknown): value is string[] {
  return Array.isArray(value) && value.every(isPath);
}

// A browser ignores any other entry, and tells nobody.
const HOSTS = 'a list of hosts in lower case, such as `login.example.com` or `*.example.com`, without scheme and port';

function isListOfHosts(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((each) => typeof each === 'string' && A_HOST.test(each));
}

const A_HOST = /^(?:\*\.)?[\da-z-]+(?:\.[\da-z-]+)+$/;
