import type { IncomingMessage } from 'node:http';
import type { ResolvedSessionOptions } from '../configuration/session.options.js';
import { SessionStoreError } from '../errors/session.errors.js';
import { logger } from '../logging/session.logger.js';
import type { SessionRepository } from '../repository/session.repository.js';
import type { SessionIdResolver } from '../resolvers/session-id.resolver.js';
import type { TouchOutcome } from '../session/session-change.js';
import type { SessionToken } from '../session/session-token.js';
import type { Session } from '../session/session.js';
import { TrackedSession } from '../session/tracked-session.js';
import { REMEMBER_ME_ATTRIBUTE } from './remember-me.js';
import type { FoundSession } from './request-session.js';
import { isTouchDue, SessionTouch } from './session-touch.js';
import type { StoreFailureLog } from './store-failure.log.js';

interface PresentedToken {
  readonly token: SessionToken;
  readonly id: string;
}

type Options = Pick<ResolvedSessionOptions, 'timeout' | 'touchInterval' | 'ids'>;

/** Finds the session whose token a request presents. Decides whether the request must touch it. */
export class RequestSessionLoader {
  constructor(
    private readonly repository: SessionRepository,
    private readonly resolver: SessionIdResolver,
    private readonly options: Options,
    private readonly failures: StoreFailureLog,
  ) {}

  /**
   * Asks the store once; undefined, and the store is not asked, when the request has no well-formed token. Never
   * rejects: a failed load matters only when the session is used.
   */
  load(request: IncomingMessage): Promise<FoundSession> | undefined {
    const presented: PresentedToken[] = [];
    for (const token of this.resolver.resolve(request)) {
      const id = this.options.ids.find(token);
      if (id !== undefined) presented.push({ token, id });
    }
    const [first] = presented;
    return first && this.#find(presented, first);
  }

  async #find(all: readonly PresentedToken[], first: PresentedToken): Promise<FoundSession> {
    const presentedIds = all.map(({ id }) => id);
    try {
      const sessions = await this.repository.findByIds(presentedIds);
      this.failures.succeeded();
      const found = sessions.findIndex((session) => session !== null);
      const loaded = sessions[found] ?? null;
      const { token: presented } = all[found] ?? first;
      const touch = loaded ? this.#touchOf(TrackedSession.of(loaded), presented) : SessionTouch.none;
      return { presented, presentedIds, loaded, touch };
    } catch (loadError) {
      this.failures.failed(loadError);
      return { presented: first.token, presentedIds, loadError };
    }
  }

  #touchOf(session: TrackedSession, presented: SessionToken): SessionTouch {
    if (!isTouchDue(session, this.options)) return SessionTouch.none;
    const isRemembered = session.peekAttribute(REMEMBER_ME_ATTRIBUTE) === true;
    const isRolling = this.resolver.maxAge({ presented, isRemembered }) !== undefined;
    return new SessionTouch(() => this.#touch(session), isRolling);
  }

  /** A request must not fail because its touch failed. */
  async #touch(session: Session): Promise<TouchOutcome | 'failed'> {
    try {
      return await this.repository.touch(session);
    } catch (error) {
      const reason = error instanceof SessionStoreError ? error.reason : String(error);
      logger.warn(`The idle timeout of session ${this.options.ids.shown(session.id)} was not renewed: ${reason}`);
      return 'failed';
    }
  }
}
