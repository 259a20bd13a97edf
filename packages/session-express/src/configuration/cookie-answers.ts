import type { CookieOptions } from 'express-session';
import { LONGEST_COOKIE, type OptionReader, type ResolvedCookieOptions } from '@nest-session/core/internal';

/** The attributes with which browsers remove the old cookie. All but its path and domain are those of the new one. */
export interface OldCookie extends Pick<ResolvedCookieOptions, 'httpOnly' | 'secure' | 'sameSite' | 'partitioned'> {
  readonly path: string;
  readonly domain?: string | undefined;
}

const WHERE = 'in SessionModule.forRoot()';

/**
 * Reads the section `cookie`. Refuses attributes that differ from the cookie of `SessionModule`, because the
 * application would rely on attributes that the cookie does not have.
 */
export function readCookie(
  reader: OptionReader,
  given: CookieOptions | undefined,
  cookie: ResolvedCookieOptions,
): OldCookie {
  const { httpOnly, secure, sameSite, partitioned } = cookie;
  const attributes = { httpOnly, secure, sameSite, partitioned };
  if (typeof given === 'function') {
    reader.value(
      'cookie',
      isNever,
      'an object: for other attributes by request, extend CookieSessionIdResolver and override cookieFor()',
    );
    return { ...attributes, path: '/' };
  }
  const section = reader.section('cookie');
  const path = section.text('path', '/', () => undefined);
  const domain = readDomain(section, cookie);
  const { maxAge } = given ?? {};
  const same: [name: keyof CookieOptions, expected: unknown][] = [
    ['httpOnly', httpOnly],
    ['secure', secure],
    ['sameSite', sameSite],
    ['partitioned', partitioned],
    ['maxAge', cookie.maxAge],
  ];
  for (const [name, expected] of same) {
    const value = section.value(name, isAny, 'anything');
    const meant = name === 'sameSite' && value === true ? 'strict' : name === 'maxAge' ? inSeconds(maxAge) : value;
    if (value === undefined || value === null || meant === expected) continue;
    if (value === 'auto' && name === 'sameSite') {
      section.problem(
        `Option \`cookie.sameSite\` cannot be 'auto': extend CookieSessionIdResolver and override cookieFor().`,
      );
      continue;
    }
    section.problem(
      `Option \`cookie.${name}\` differs from the session cookie: set \`${written(name, meant)}\` ${WHERE}.`,
    );
  }
  for (const name of ['expires', 'priority', 'signed', 'encode'] as const) {
    if (section.value(name, isAny, 'anything') == null) continue;
    section.problem(`Option \`cookie.${name}\` ${UNSUPPORTED[name]}.`);
  }
  section.finish();
  return { ...attributes, path, domain };
}

/** The new cookie needs one as well, or the hosts of the domain do not share it any more. */
function readDomain(section: OptionReader, cookie: ResolvedCookieOptions): string | undefined {
  const domain = section.text('domain', undefined, () => undefined);
  if (domain !== undefined && cookie.domain === undefined) {
    const remedy = written('domain', domain.replace(/^\./, ''));
    section.problem(
      `Option \`cookie.domain\` differs from the session cookie: set \`${remedy}\` ${WHERE}, or remove it here, so that ` +
        'only the host that sets the cookie gets it.',
    );
  }
  return domain;
}

const UNSUPPORTED = {
  expires: `would end all cookies at the same time: set \`cookie: { maxAge: '1d' }\` ${WHERE}`,
  priority: 'has no counterpart. It only tells some browsers which cookies to drop first: remove it',
  signed: 'does nothing in express-session: remove it',
  encode: 'has no counterpart, because the value of the session cookie needs no encoding: remove it',
} as const;

function written(name: string, value: unknown): string {
  if (name !== 'maxAge') return `cookie: { ${name}: ${JSON.stringify(value)} }`;
  const lifetime = value === LONGEST ? `${LONGEST / 86_400}d` : `${String(value)}s`;
  return `timeout: '${lifetime}', cookie: { maxAge: '${lifetime}' }`;
}

/** Seconds. Browsers keep no cookie longer, so SessionModule takes no more. */
const LONGEST = LONGEST_COOKIE / 1000;

function inSeconds(maxAge: number | null | undefined): number | undefined {
  return typeof maxAge === 'number' ? Math.min(maxAge / 1000, LONGEST) : undefined;
}

function isAny(_value: unknown): _value is unknown {
  return true;
}

function isNever(_value: unknown): _value is never {
  return false;
}
