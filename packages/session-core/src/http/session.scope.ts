import { AsyncLocalStorage } from 'node:async_hooks';
import { Injectable } from '@nestjs/common';
import { SessionStateError } from '../errors/session.errors.js';
import type { SessionExchange } from './session-exchange.js';

/** Knows on behalf of which request the code runs. */
@Injectable()
export class SessionScope {
  readonly #storage = new AsyncLocalStorage<SessionExchange>();
  #isLeftOut = false;

  /**
   * The exchange of the current request; undefined outside a request, and in an excluded one.
   * @throws SessionStateError when it is left out
   */
  get current(): SessionExchange | undefined {
    if (this.#isLeftOut) throw new SessionStateError(LEFT_OUT);
    return this.#storage.getStore();
  }

  /** The exchange of the request that is being served. @throws SessionStateError where `current` is undefined */
  get required(): SessionExchange {
    const { current } = this;
    if (current) return current;
    throw new SessionStateError(
      'There is no session here: this code does not run on behalf of an HTTP request, or its request is excluded',
    );
  }

  /** Runs `callback`, and everything that it starts, on behalf of a request. */
  run<T>(exchange: SessionExchange, callback: () => T): T {
    return this.#isLeftOut ? callback() : this.#storage.run(exchange, callback);
  }

  /** From now on, nothing is known, and requests do not pay for it. */
  leaveOut(): void {
    this.#isLeftOut = true;
  }
}

const LEFT_OUT =
  'The current request is not known, because no provider of this application injects SessionContext or ' +
  'BrowserSessions. Inject it where you use it, or, to get it from ModuleRef, set `context: true` in SessionModule.forRoot()';
