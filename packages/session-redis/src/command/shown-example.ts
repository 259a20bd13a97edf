// Of a session, and longer than any word in a key.
const ID = /[\w-]{22,}/g;

/** A key, member or id, with each session id as logs show it. */
export function shownExample(text: string, shownId: (id: string) => string): string {
  return text.replace(ID, shownId);
}
