import { ID_PATTERN } from '@nest-session/redis/internal';

const ID = new RegExp(ID_PATTERN, 'g');

/** A key, member or id, with each session id as logs show it. */
export function shownExample(text: string, shownId: (id: string) => string): string {
  return text.replace(ID, shownId);
}
