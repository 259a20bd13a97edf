import type { IncomingMessage } from 'node:http';
import { Logger } from '@nestjs/common';
import type { SessionRepository } from '../repository/session.repository.js';
import { SessionStoreError } from '../session.errors.js';
import type { ResolvedSessionOptions } from '../session.options.js';
import type { SessionToken } from '../session/session-key.js';
import type { Session } from '../session/session.js';
import { TrackedSession } from '../session/tracked-session.js';
import type { SessionIdResolver } from './resolvers/session-id.resolver.js';
import { REMEMBER_ME_ATTRIBUTE } from './remember-me.js';
import { SessionRequest, type SessionRequestInit, type TouchOutcome } from './session-request.js';
import { StoreFailureLog } from './store-failure.log.js';

interface Presented {
  readonly token: SessionToken;
  readonly id: string;
}

/** Finds the session that a request brings. */
export class SessionRequestLoader {
  readonly #logger = new Logger('Session');
  readonly #failures = new StoreFailureLog();

  constructor(
    private readonly repository: SessionRepository,
    private readonly resolver: SessionIdResolver,
    private readonly options: Pick<ResolvedSessionOptions, 'timeout' | 'touchInterval' | 'ids'>,
  ) {}

  /**
   * Asks the store once, and not at all, so that there is nothing to wait for, when the request presents no token that
   * could be one of ours. Never rejects: whether a failed load matters shows when somebody asks for the session.
   */
  load(request: IncomingMessage): SessionRequest | Promise<SessionRequest> {
    const [first, ...others] = this.#presentedBy(request);
    return first ? this.#find(request, [first, ...others]) : this.#sessionRequest({ request });
  }

  #presentedBy(request: IncomingMessage): Presented[] {
    return this.resolver.resolve(request).flatMap((token) => {
      const id = this.options.ids.find(token);
      return id === undefined ? [] : [{ token, id }];
    });
  }

  async #find(request: IncomingMessage, all: readonly [Presented, ...Presented[]]): Promise<SessionRequest> {
    const presentedIds = all.map(({ id }) => id);
    try {
      const sessions = await this.repository.findByIds(presentedIds);
      this.#failures.succeeded();
      const found = sessions.findIndex((session) => session !== null);
      const loaded = sessions[found] ?? null;
      const { token: presented } = all[found] ?? all[0];
      const renewal = loaded && this.#isTouchDue(loaded) ? this.#renewalOf(loaded, presented) : {};
      return this.#sessionRequest({ request, presented, presentedIds, loaded, ...renewal });
    } catch (loadError) {
      this.#failures.failed(loadError);
      return this.#sessionRequest({ request, presented: all[0].token, presentedIds, loadError });
    }
  }

  #sessionRequest(found: Omit<SessionRequestInit, 'repository' | 'ids' | 'failures'>): SessionRequest {
    const { repository, options } = this;
    return new SessionRequest({ repository, ids: options.ids, failures: this.#failures, ...found });
  }

  #isTouchDue(session: Session): boolean {
    const { idleTime } = TrackedSession.of(session);
    return idleTime !== undefined && idleTime >= this.#touchIntervalOf(session.maxInactiveInterval);
  }

  /** A session with a shorter interval than the others would expire in use if it were touched as rarely as they are. */
  #touchIntervalOf(maxInactiveInterval: number): number {
    const { timeout, touchInterval } = this.options;
    const isShorter = maxInactiveInterval > 0 && (timeout < 0 || maxInactiveInterval < timeout);
    return isShorter ? Math.min(touchInterval, (maxInactiveInterval * 1000) / 30) : touchInterval;
  }

  #renewalOf(session: Session, presented: SessionToken): Pick<SessionRequestInit, 'touch' | 'isRolling'> {
    const isRemembered = session.getAttribute(REMEMBER_ME_ATTRIBUTE) === true;
    const isRolling = this.resolver.maxAge({ presented, isRemembered }) !== undefined;
    return { touch: () => this.#touch(session), isRolling };
  }

  /** A request must not fail because its access could not be recorded. */
  async #touch(session: Session): Promise<TouchOutcome> {
    try {
      return await this.repository.touch(session);
    } catch (error) {
      const reason = error instanceof SessionStoreError ? error.reason : String(error);
      this.#logger.warn(`An access to session ${this.options.ids.shown(session.id)} was not recorded: ${reason}`);
      return 'failed';
    }
  }
}
