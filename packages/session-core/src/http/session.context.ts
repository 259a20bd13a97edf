import { Inject, Injectable } from '@nestjs/common';
import type { Session } from '../session/session.js';
import { SessionScope } from './session.scope.js';

/** Gives services the session of the current request. Inject it where no request is at hand. */
@Injectable()
export class SessionContext {
  /** @internal Inject it. */
  constructor(@Inject(SessionScope) private readonly scope: SessionScope) {}

  /**
   * The session of the request that is being served.
   * @throws SessionStateError where `isActive` is false; SessionStoreError when the session could not be loaded
   */
  get session(): Session {
    return this.scope.required.session;
  }

  /** Whether there is a current request, and it is not excluded. Does not count as using the session. */
  get isActive(): boolean {
    return this.scope.current !== undefined;
  }

  /**
   * Whether `session` is the client's session: false when the store failed to load it, and where `isActive` is false.
   * Use it on routes with `@SessionOutagePolicy('anonymous')`.
   */
  get isAvailable(): boolean {
    return this.scope.current?.isUnavailable === false;
  }
}
