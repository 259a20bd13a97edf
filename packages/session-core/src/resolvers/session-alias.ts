/** The parameter of a URL that says which of its sessions a browser means. */
const PARAMETER = '_s';

/** The alias of a URL that names none. */
export const DEFAULT_ALIAS = '0';

// Each has a cookie, and every request brings all of them.
const MOST_SESSIONS = 20;

/** The aliases that there are, `'0'` to `'19'`. */
export const ALIASES: readonly string[] = Array.from({ length: MOST_SESSIONS }, (_, number) => String(number));

/** The alias that a URL names; the default one when it names none that there is. */
export function aliasIn(url = ''): string {
  const [, query = ''] = /^[^?#]*\?([^#]*)/.exec(url) ?? [];
  const alias = query
    .split('&')
    .find(isAliasParameter)
    ?.slice(PARAMETER.length + 1);
  return alias !== undefined && ALIASES.includes(alias) ? alias : DEFAULT_ALIAS;
}

/** The URL with another alias, the same in everything else; with the default one it names none. */
export function withAlias(url: string, alias: string): string {
  const [, path = '', query, fragment = ''] = /^([^?#]*)(?:\?([^#]*))?(#.*)?$/s.exec(url) ?? [];
  const others = (query ?? '').split('&').filter((parameter) => parameter !== '' && !isAliasParameter(parameter));
  const parameters = alias === DEFAULT_ALIAS ? others : [...others, `${PARAMETER}=${alias}`];
  return path + (parameters.length > 0 ? `?${parameters.join('&')}` : '') + fragment;
}

function isAliasParameter(parameter: string): boolean {
  return parameter === PARAMETER || parameter.startsWith(`${PARAMETER}=`);
}
