/** The fields of a reply to INFO. */
export function infoOf(reply: string): ReadonlyMap<string, string> {
  return new Map([...reply.matchAll(/^([^#:\r\n]+):([^\r\n]*)/gm)].map(([, name, value]) => [name!, value!]));
}
