/** How many values of one name are looked at in a request. Checking one may cost an HMAC for each signing key. */
export const MOST_VALUES = 64;

/**
 * The values of the cookies with a name, in their order and `most` at most; not decoded, because a token has no character
 * that would be encoded. Takes a time linear in the length of the header.
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
 * RFC 6265bis, 5.6: spaces and tabs only. `trim()` would also remove a no-break space, but to a browser a name with one
 * does not begin with `__Host-`, so that other hosts of the domain could set such a cookie.
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
