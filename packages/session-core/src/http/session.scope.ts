import { AsyncLocalStorage } from 'node:async_hooks';
import { Injectable } from '@nestjs/common';
import { SessionStateError } from '../errors/session.errors.js';
import { SessionExchange } from './session-exchange.js';
import type { SessionHolder } from './session-holder.js';

/** Knows on behalf of which request or message the code runs. */
@Injectable()
export class SessionScope {
  readonly #storage = new AsyncLocalStorage<SessionHolder>();
  #isLeftOut = false;

  /**
   * What the code runs on behalf of; undefined outside of requests and messages, and in an excluded one.
   * @throws SessionStateError when it is left out
   */
  get current(): SessionHolder | undefined {
    if (this.#isLeftOut) throw new SessionStateError(LEFT_OUT);
    return this.#storage.getStore();
  }

  /** What the code runs on behalf of. @throws SessionStateError where `current` is undefined */
  get required(): SessionHolder {
    const { current } = this;
    if (current) return current;
    throw new SessionStateError(
      'There is no session here: this code does not run on behalf of an HTTP request or of a message to a gateway, or ' +
        'its request is excluded',
    );
  }

  /** The exchange of the current HTTP request. @throws SessionStateError where there is none */
  get exchange(): SessionExchange {
    const { required } = this;
    if (required instanceof SessionExchange) return required;
    throw new SessionStateError(
      'There is no response here: this code runs on behalf of a message, not of an HTTP request',
    );
  }

  /** Runs `callback`, and everything that it starts, on behalf of a request or message. */
  run<T>(holder: SessionHolder, callback: () => T): T {
    return this.#isLeftOut ? callback() : this.#storage.run(holder, callback);
  }

  /** From now on, nothing is known, and requests do not pay for it. */
  leaveOut(): void {
    this.#isLeftOut = true;
  }
}

const LEFT_OUT =
  'The current request is not known, because no provider of this application injects SessionContext or ' +
  'BrowserSessions. Inject it into a provider of the application, also if you get it from ModuleRef';
