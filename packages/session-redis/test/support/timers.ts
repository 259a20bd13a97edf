import { type AsyncHook, createHook } from 'node:async_hooks';

/** The timers that are started, unreferenced ones too, with their origin. */
export class Timers {
  readonly #made = new Map<object, string>();
  readonly #hook: AsyncHook = createHook({
    init: (_, type, __, resource) => {
      if (type === 'Timeout') this.#made.set(resource, new Error().stack ?? '');
    },
  });

  start(): void {
    this.#hook.enable();
  }

  stop(): void {
    this.#hook.disable();
  }

  /** The origins of the library's timers that have neither run nor been cleared. */
  left(): string[] {
    const waiting = [...this.#made].filter(([timer]) => (timer as { _destroyed?: boolean })._destroyed !== true);
    return waiting.map(([, stack]) => stack).filter((stack) => /packages\/session-\w+\/src\//.test(stack));
  }
}
