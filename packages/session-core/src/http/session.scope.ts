import { AsyncLocalStorage } from 'node:async_hooks';
import { Inject, Injectable, type OnApplicationShutdown } from '@nestjs/common';
import { SessionStateError } from '../errors/session.errors.js';
import type { Session } from '../session/session.js';
import type { RequestSession } from './request-session.js';
import { ResponseCommit } from './response-commit.js';

/** Knows the session of the request or message on whose behalf the code runs. */
@Injectable()
export class SessionScope implements OnApplicationShutdown {
  readonly #storage = new AsyncLocalStorage<RequestSession>();
  isLeftOut = false;
  #hasShutDown = false;

  /** Undefined outside of requests and messages, and in excluded ones. @throws SessionStateError when left out */
  get current(): RequestSession | undefined {
    if (this.isLeftOut) throw new SessionStateError(LEFT_OUT);
    return this.#storage.getStore();
  }

  get known(): RequestSession | undefined {
    return this.isLeftOut ? undefined : this.current;
  }

  /** The session of the current request or message. @throws SessionStateError where `current` is undefined */
  get required(): RequestSession {
    const { current } = this;
    if (current) return current;
    throw new SessionStateError(
      'There is no session here: this code does not run on behalf of an HTTP request or of a message to a gateway, or ' +
        'its request is excluded. In operators of an Observable and callbacks, use a session that you took before',
    );
  }

  /** The commit of the current HTTP request. @throws SessionStateError where there is none */
  get commit(): ResponseCommit {
    const { response } = this.required;
    if (response instanceof ResponseCommit) return response;
    throw new SessionStateError(
      'There is no response here: this code runs on behalf of a message, not of an HTTP request',
    );
  }

  run<T>(session: RequestSession, callback: () => T): T {
    return this.isLeftOut || this.#hasShutDown ? callback() : this.#storage.run(session, callback);
  }

  serve(session: RequestSession, next: () => void): void {
    this.#bindEvents(session);
    this.run(session, next);
  }

  leaveOut(): void {
    this.isLeftOut = true;
  }

  /**
   * Node.js emits the events of a body on behalf of its connection. Middleware that reads the body itself would pass
   * the request on from there, where no session is known. Not enumerable, like everything that requests are given.
   */
  #bindEvents(session: RequestSession): void {
    const { request } = session;
    const { emit } = request;
    const value = (...args: unknown[]) => this.run(session, () => Reflect.apply(emit, request, args) as unknown);
    Object.defineProperty(request, 'emit', { value, writable: true, configurable: true });
  }

  /**
   * Before Node.js 24, every promise of the process pays for each storage, also for that of a closed application.
   * Events of requests may follow, and must not enable it again.
   */
  onApplicationShutdown(): void {
    this.#hasShutDown = true;
    this.#storage.disable();
  }
}

const LEFT_OUT =
  'The current request is not known, because no provider of this application injects SessionContext or ' +
  'BrowserSessions. Inject it into a provider of the application, also if you get it from ModuleRef';

/** Gives services the session of the current request. Inject it where no request is at hand. */
@Injectable()
export class SessionContext {
  /** @internal Inject it. */
  constructor(@Inject(SessionScope) private readonly scope: SessionScope) {}

  /**
   * The session of the request that is being served. In an operator of an Observable, that is the request which emits
   * the value, perhaps of another user: take the session before.
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
