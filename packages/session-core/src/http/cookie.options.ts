import type { OptionReader } from '../options/option.reader.js';

/** How the session cookie is set. */
export interface CookieOptions {
  /** @default 'SESSION' */
  name?: string;
  /** @default '/' */
  path?: string;
  /** Unset: the cookie goes back to the host that set it and to no other. */
  domain?: string;
  /** Keeps the cookie from scripts. @default true */
  httpOnly?: boolean;
  /** `'auto'`: when the request came over https, as Express' `trust proxy` has it. @default 'auto' */
  secure?: boolean | 'auto';
  /** @default 'lax' */
  sameSite?: 'lax' | 'strict' | 'none';
}

export type ResolvedCookieOptions = Readonly<Required<Omit<CookieOptions, 'domain'>>> & {
  readonly domain: string | undefined;
};

// RFC 6265bis 4.1.1: a cookie's name is a token of RFC 9110, its path and domain hold no control character and no ";".
const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const PATH = /^\/[\x20-\x3a\x3c-\x7e]*$/;
const DOMAIN = /^[0-9A-Za-z]([0-9A-Za-z.-]*[0-9A-Za-z])?$/;

/** Reads the `cookie` section. Refuses what browsers would refuse later, without a word. */
export function readCookieOptions(reader: OptionReader): ResolvedCookieOptions {
  const cookie: ResolvedCookieOptions = {
    name: reader.text('name', 'SESSION', (name) =>
      TOKEN.test(name) ? undefined : 'is not a cookie name (a token of RFC 9110)',
    ),
    path: reader.text('path', '/', (path) => (PATH.test(path) ? undefined : 'must begin with "/" and hold no ";"')),
    domain: reader.text('domain', undefined, (domain) => (DOMAIN.test(domain) ? undefined : 'is not a host name')),
    httpOnly: reader.boolean('httpOnly', true),
    secure: reader.oneOf('secure', [true, false, 'auto'], 'auto'),
    sameSite: reader.oneOf('sameSite', ['lax', 'strict', 'none'], 'lax'),
  };
  for (const problem of refusedByBrowsers(cookie)) reader.problem(problem);
  reader.finish();
  return Object.freeze(cookie);
}

// RFC 6265bis 4.1.2.7 (SameSite) and 4.1.3 (name prefixes, which browsers compare without regard to case).
function* refusedByBrowsers(cookie: ResolvedCookieOptions): Iterable<string> {
  const name = cookie.name.toLowerCase();
  const prefix = ['__host-', '__secure-'].find((each) => name.startsWith(each));
  if (prefix && cookie.secure !== true) yield `A cookie named ${cookie.name} needs \`cookie.secure\` true.`;
  if (prefix === '__host-' && cookie.domain !== undefined)
    yield `A cookie named ${cookie.name} takes no \`cookie.domain\`.`;
  if (prefix === '__host-' && cookie.path !== '/') yield `A cookie named ${cookie.name} needs \`cookie.path\` "/".`;
  if (cookie.sameSite === 'none' && cookie.secure !== true)
    yield "`cookie.sameSite` 'none' needs `cookie.secure` true.";
}
