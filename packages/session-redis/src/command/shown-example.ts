// Of a session id, where the option `sessionIds` is 'plain': a token.
const ID = /[\w-]{22,}/g;
const SHOWN = 10;

/** A key, member or id, with no more of each id than tells it from others: an id may be a token. */
export function shownExample(text: string): string {
  return text.replace(ID, (id) => `${id.slice(0, SHOWN)}...`);
}
