/** The URL parameter that selects one of the browser's sessions. */
const PARAMETER = '_s';

/** The alias of a URL without the parameter. */
export const DEFAULT_ALIAS = '0';

// Each session has a cookie, and every request carries all of these cookies.
const MOST_SESSIONS = 20;

/** All aliases, `'0'` to `'19'`. */
export const ALIASES: readonly string[] = Array.from({ length: MOST_SESSIONS }, (_, number) => String(number));

/** The alias in a URL. If the URL has none, or an unknown one, it is the default alias. */
export function aliasIn(url = ''): string {
  const [, query = ''] = /^[^?#]*\?([^#]*)/.exec(url) ?? [];
  const alias = query
    .split('&')
    .find(isAliasParameter)
    ?.slice(PARAMETER.length + 1);
  return alias !== undefined && ALIASES.includes(alias) ? alias : DEFAULT_ALIAS;
}

/** Returns the URL with another alias. It leaves the default alias out of the URL. */
export function withAlias(url: string, alias: string): string {
  const [, path = '', query, fragment = ''] = /^([^?#]*)(?:\?([^#]*))?(#.*)?$/s.exec(url) ?? [];
  const others = (query ?? '').split('&').filter((parameter) => parameter !== '' && !isAliasParameter(parameter));
  const parameters = alias === DEFAULT_ALIAS ? others : [...others, `${PARAMETER}=${alias}`];
  return path + (parameters.length > 0 ? `?${parameters.join('&')}` : '') + fragment;
}

function isAliasParameter(parameter: string): boolean {
  return parameter === PARAMETER || parameter.startsWith(`${PARAMETER}=`);
}
