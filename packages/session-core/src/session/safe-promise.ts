import { HttpException } from '@nestjs/common';
import { ClientDisconnectedError } from '../errors/session.errors.js';
import { shownError } from '../logging/shown-error.js';
import { WarnOnce } from '../logging/warn-once.js';

const log = new WarnOnce();

/**
 * The promise of an update. Where nobody awaits it, a failure that a client or the store can cause is logged, and is no
 * `unhandledRejection`: otherwise a client could end the process by disconnecting, or by sending too much.
 */
export class SafePromise<T> extends Promise<T> {
  #isAwaited = false;

  /** `untold`: gets each failure that nobody awaits. @default logs those that a client or the store can cause */
  static of<T>(promise: Promise<T>, untold?: (error: unknown) => void): SafePromise<T> {
    const safe: SafePromise<T> = new SafePromise((resolve, reject) => {
      promise.then(resolve, (error: unknown) => {
        reject(error);
        if (safe.#isAwaited) return;
        if (untold) safe.#tell(() => untold(error));
        else if (error instanceof HttpException) safe.#tell(() => warn(error));
      });
    });
    return safe;
  }

  get isAwaited(): boolean {
    return this.#isAwaited;
  }

  /** What is derived from it is a promise like any other. */
  static override get [Symbol.species](): PromiseConstructor {
    return Promise;
  }

  override then<A = T, B = never>(
    onFulfilled?: ((value: T) => A | PromiseLike<A>) | null,
    onRejected?: ((reason: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    this.#isAwaited = true;
    return super.then(onFulfilled, onRejected);
  }

  #tell(tell: () => void): void {
    super.then(undefined, () => undefined);
    tell();
  }
}

function warn(error: HttpException): void {
  if (error instanceof ClientDisconnectedError) return;
  log.warn(
    error.name,
    `updateAttribute() failed, and nothing awaits it, so the request did not fail: ${shownError(error)}`,
  );
}
