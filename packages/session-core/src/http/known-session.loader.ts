import type { IncomingMessage } from 'node:http';
import type { ResolvedSessionOptions } from '../configuration/session.options.js';
import type { SessionRepository } from '../repository/session.repository.js';
import { TrackedSession } from '../session/tracked-session.js';
import type { FoundSession } from './request-session.js';
import type { RequestSessionLoader } from './request-session.loader.js';
import { isTouchDue, SessionTouch } from './session-touch.js';

type Options = Pick<ResolvedSessionOptions, 'timeout' | 'touchInterval'>;

/** Finds the session in which a connection was opened again, without the others that its request presented. */
export class KnownSessionLoader {
  constructor(
    private readonly repository: SessionRepository,
    private readonly presented: Pick<RequestSessionLoader, 'endsBut'>,
    private readonly options: Options,
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
      // A sign-out means them as well.
      const companions = [() => Promise.all(this.presented.endsBut(id, request).map((end) => end()))];
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
}
