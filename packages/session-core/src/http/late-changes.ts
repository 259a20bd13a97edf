import { shownStack } from '../logging/shown-error.js';
import { logger } from '../logging/session.logger.js';
import { requestFactsOf } from '../resolvers/proxied-request.js';
import type { TrackedSession } from '../session/tracked-session.js';
import type { RequestSession } from './request-session.js';

/**
 * Changes that were made after the headers were sent, and that the application does not save itself. An end is saved,
 * because it needs no header. All others are lost, and the log says so.
 */
export class LateChanges {
  readonly #session: RequestSession;
  #isOver: boolean;
  #isNoted = false;
  #isReported = false;

  constructor(session: RequestSession, isOver: boolean) {
    this.#session = session;
    this.#isOver = isOver;
  }

  note(): void {
    if (this.#isNoted) return;
    this.#isNoted = true;
    // When the turn ends, so that the application can save it in the same one.
    setImmediate(() => void this.#settle());
  }

  /** The response has ended, or the client has left. */
  async close(isUnsaved: () => boolean): Promise<void> {
    this.#isOver = true;
    if (!isUnsaved()) return;
    const { existing } = this.#session;
    // The client may have left during a save.
    await hasFailed(existing);
    if (!existing || !isUnsaved()) return;
    existing.complete();
    if (existing.endsLogin) return this.#end(existing);
    this.#isReported = true;
    logger.warn(`Changes of session ${existing.shownId} are ${LOST}`);
  }

  async #settle(): Promise<void> {
    const { existing } = this.#session;
    const isRefused = await hasFailed(existing);
    // A property may be all that says who is signed in.
    if (existing?.isSet) existing.complete();
    this.#isNoted = false;
    if (!existing?.isSet) return;
    if (existing.endsLogin) await this.#end(existing);
    // The caller of a `save()` that has failed has the error.
    else if (this.#isOver && !isRefused && !this.#isReported) this.#report(existing);
  }

  async #end(session: TrackedSession): Promise<void> {
    try {
      await session.save();
    } catch (error) {
      const message = `Session ${session.shownId} was ended after the response to ${this.#shownRequest} had begun, and `;
      logger.error(`${message}could not be ended in the store, so it lives on`, shownStack(error));
    }
  }

  #report(session: TrackedSession): void {
    this.#isReported = true;
    logger.warn(
      `Session ${session.shownId} was changed after the response to ${this.#shownRequest} had ended, ` +
        'so the change is lost unless you call `await session.save()`. Is an `await` missing in the handler?',
    );
  }

  get #shownRequest(): string {
    const { method, path } = requestFactsOf(this.#session.request);
    return `${method} ${path}`;
  }
}

async function hasFailed(session: TrackedSession | undefined): Promise<boolean> {
  try {
    await session?.lastSave;
    return false;
  } catch {
    return true;
  }
}

const LOST =
  'lost: they were made after the headers were sent. Make them before the first byte, or call `await session.save()`';
