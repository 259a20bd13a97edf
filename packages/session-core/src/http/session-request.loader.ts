import type { IncomingMessage } from 'node:http';
import { Logger } from '@nestjs/common';
import type { SessionRepository } from '../repository/session.repository.js';
import { SessionStoreError } from '../session.errors.js';
import type { ResolvedSessionOptions } from '../session.options.js';
import type { Session } from '../session/session.js';
import { TrackedSession } from '../session/tracked-session.js';
import type { SessionIdResolver } from './session-id.resolver.js';
import { SessionRequest } from './session-request.js';
import { StoreFailureLog } from './store-failure.log.js';

/** Finds the session that a request brings. */
export class SessionRequestLoader {
  readonly #logger = new Logger('Session');
  readonly #failures = new StoreFailureLog();

  constructor(
    private readonly repository: SessionRepository,
    private readonly resolver: SessionIdResolver,
    private readonly options: Pick<ResolvedSessionOptions, 'timeout' | 'touchInterval'>,
  ) {}

  /**
   * Asks the store once, and not at all, so that there is nothing to wait for, when the request presents no token that
   * could be one of ours. Never rejects: whether a failed load matters shows when somebody asks for the session.
   */
  load(request: IncomingMessage): SessionRequest | Promise<SessionRequest> {
    const key = this.resolver.resolve(request);
    return key ? this.#find(key.id) : this.#sessionRequest();
  }

  async #find(presentedId: string): Promise<SessionRequest> {
    try {
      const loaded = await this.repository.findById(presentedId);
      this.#failures.succeeded();
      if (loaded && this.#isTouchDue(loaded)) void this.#touch(loaded);
      return this.#sessionRequest({ presentedId, loaded });
    } catch (loadError) {
      this.#failures.failed(loadError);
      return this.#sessionRequest({ presentedId, loadError });
    }
  }

  #sessionRequest(found: { presentedId?: string; loaded?: Session | null; loadError?: unknown } = {}): SessionRequest {
    return new SessionRequest({ repository: this.repository, failures: this.#failures, ...found });
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

  /** Not waited for: a request must not be slower, or fail, because its access could not be recorded. */
  async #touch(session: Session): Promise<void> {
    try {
      await this.repository.touch(session);
    } catch (error) {
      const reason = error instanceof SessionStoreError ? error.reason : String(error);
      this.#logger.warn(`An access to session ${session.id} was not recorded: ${reason}`);
    }
  }
}
