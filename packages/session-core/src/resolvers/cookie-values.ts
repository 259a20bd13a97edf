/** How many cookie values of one name a request may have checked. A check may cost one HMAC per signing key. */
export const MOST_VALUES = 64;

/**
 * Returns the values of the cookies with a name, in their order and `most` at most. It does not decode them, because a
 * token has no character that needs encoding. It takes time linear in the length of the header.
 */
export function cookieValues(header: string | undefined, name: string, most = MOST_VALUES): string[] {
  const values: string[] = [];
  if (header === undefined) return values;
  for (let at = header.indexOf(name); at >= 0 && values.length < most;) {
    let next = at + name.length;
    const separator = afterBlanks(header, next);
    if (header[separator] === '=' && beginsPair(header, at)) {
      const end = header.indexOf(';', separator);
      next = end < 0 ? header.length : end;
      values.push(withoutBlanks(header.slice(separator + 1, next)));
    }
    at = header.indexOf(name, next);
  }
  return values;
}

function beginsPair(header: string, at: number): boolean {
  let before = at - 1;
  while (isBlank(header[before])) before--;
  return before < 0 || header[before] === ';';
}

function afterBlanks(text: string, at: number): number {
  let after = at;
  while (isBlank(text[after])) after++;
  return after;
}

/**
 * Removes only spaces and tabs (RFC 6265bis, 5.6). `trim()` would also remove a no-break space. For a browser, a name
 * with a leading no-break space does not begin with `__Host-`, so other hosts of the domain could set such a cookie.
 */
function withoutBlanks(text: string): string {
  const start = afterBlanks(text, 0);
  let end = text.length;
  while (end > start && isBlank(text[end - 1])) end--;
  return text.slice(start, end);
}

function isBlank(character: string | undefined): boolean {
  return character === ' ' || character === '\t';
}
