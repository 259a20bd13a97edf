import type { ServerResponse } from 'node:http';
import type { TrackedSession } from '@nest-session/core/internal';
import { warnOnce } from '../bag/warn-once.js';

/** Looks for responses that remove the old cookie and leave the session: they used to sign the user out. */
export class ClearedCookieCheck {
  readonly #cleared: string;
  readonly #name: string;
  #hasWarned = false;

  constructor(name: string) {
    this.#name = name;
    this.#cleared = `${name}=;`;
  }

  /** Call it when the headers of the application are set, and none of the library. Logs it once. */
  check(session: TrackedSession | undefined, response: ServerResponse): void {
    if (this.#hasWarned || !session || !livesOn(session)) return;
    const cookies = response.getHeader('set-cookie');
    if (cookies === undefined || ![cookies].flat().some((each) => String(each).startsWith(this.#cleared))) return;
    this.#hasWarned = true;
    warnOnce(
      `A response removed the cookie ${JSON.stringify(this.#name)} of express-session, and the session goes on, because ` +
        'its cookie is another one now. If this is to sign the user out, call req.session.destroy() instead. This is ' +
        'logged once',
    );
  }
}

/** Whether the response leaves a stored session as it is: neither ended, nor with another id, as a logout gives it. */
function livesOn(session: TrackedSession): boolean {
  const isStored = session.storedId !== undefined && !session.isOver && !session.isGone;
  return isStored && session.tokenToSend === undefined && session.attributeNames.length > 0;
}
