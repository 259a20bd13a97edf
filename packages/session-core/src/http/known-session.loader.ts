import type { IncomingMessage } from 'node:http';
import type { ResolvedSessionOptions } from '../configuration/session.options.js';
import { type SessionRepository, signOutById, storeCallsOf } from '../repository/session.repository.js';
import { TrackedSession } from '../session/tracked-session.js';
import type { FoundSession } from './request-session.js';
import type { RequestSessionLoader } from './request-session.loader.js';
import type { SessionExtension } from './session-extension.js';
import { isTouchDue, SessionTouch } from './session-touch.js';

type Options = Pick<ResolvedSessionOptions, 'timeout' | 'touchInterval' | 'ids'>;

/** Finds the session in which a connection was opened again, without the others that its request presented. */
export class KnownSessionLoader {
  constructor(
    private readonly repository: SessionRepository,
    private readonly presented: Pick<RequestSessionLoader, 'presentedIds'>,
    private readonly options: Options,
    private readonly extension: Pick<SessionExtension, 'takeover'> = {},
  ) {}

  /**
   * Asks the store once, for several messages. Each gets a session of its own, and at most one of them touches it.
   * Never rejects: a failed load matters only when the session is used.
   */
  async load(request: IncomingMessage, id: string, messages: number): Promise<FoundSession[]> {
    const presentedIds = [id];
    const askedAt = performance.now();
    try {
      const found = await this.repository.findByIds(Array.from({ length: messages }, () => id));
      const companions = [() => this.#endOthers(request, id)];
      const touch = this.#touchOf(found[0]);
      return found.map((loaded) => ({
        presentedIds,
        askedAt,
        loaded,
        companions,
        // A message that does not renew the session cancels its own only.
        touch: touch && new SessionTouch(async () => (await touch.send()) ?? 'failed'),
      }));
    } catch (loadError) {
      return Array.from({ length: messages }, () => ({ presentedIds, loadError }));
    }
  }

  #touchOf(loaded: Awaited<ReturnType<SessionRepository['findById']>> | undefined): SessionTouch | undefined {
    const session = loaded ? TrackedSession.of(loaded) : undefined;
    return session && isTouchDue(session, this.options) ? SessionTouch.of(this.repository, session, false) : undefined;
  }

  /** Ends the other sessions that the request presented: a sign-out means them as well. */
  async #endOthers(request: IncomingMessage, id: string): Promise<void> {
    const foreign = this.extension.takeover?.find(request);
    const foreignId = foreign && this.options.ids.find(foreign.token);
    const others = this.presented.presentedIds(request).filter((other) => other !== id);
    await Promise.all(
      others.map(async (other) => {
        // Otherwise the other library would still have it, and the next request would open it.
        if (foreign && other === foreignId)
          await storeCallsOf(this.repository).takeOver(other, () => foreign.move(other));
        await signOutById(this.repository, other);
      }),
    );
  }
}
