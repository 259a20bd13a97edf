import { AsyncLocalStorage } from 'node:async_hooks';
import { Injectable } from '@nestjs/common';
import { SessionStateError } from '../session.errors.js';
import type { Session } from '../session/session.js';
import type { SessionRequest } from './session-request.js';

/** The session of the request on whose behalf the code runs, for services that no request is handed to. */
@Injectable()
export class SessionContext {
  readonly #storage = new AsyncLocalStorage<SessionRequest>();

  /** @throws SessionStateError where `isActive` is false; SessionStoreError when the session could not be loaded */
  get session(): Session {
    return this.request.session;
  }

  /** What the library knows of the request and its session. @throws SessionStateError where `isActive` is false */
  get request(): SessionRequest {
    const request = this.#storage.getStore();
    if (request) return request;
    throw new SessionStateError(
      'There is no session here: this code does not run on behalf of an HTTP request, or its request is excluded',
    );
  }

  /** Whether there is a request to have a session. Does not count as using it. */
  get isActive(): boolean {
    return this.#storage.getStore() !== undefined;
  }

  /**
   * Whether the session is the one that the client has: false when the store failed to load it, and where `isActive` is
   * false. For routes with `@SessionOptional()`.
   */
  get isAvailable(): boolean {
    return this.#storage.getStore()?.isUnavailable === false;
  }

  /** Runs `callback`, and whatever it starts, on behalf of a request. The module does this for every request. */
  run<T>(request: SessionRequest, callback: () => T): T {
    return this.#storage.run(request, callback);
  }
}
