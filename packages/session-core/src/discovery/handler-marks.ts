import { assertOnInstance } from './assert-on-instance.js';
import { markCaller, type MethodCaller } from './uncalled-methods.check.js';

/** Something that a method is marked to handle. */
export interface HandlerMark {
  /** Whether it is called on every instance instead of on one instance of each group. */
  readonly broadcast: boolean;
}

/** The marks that a decorator leaves on methods. */
export class HandlerMarks<Mark extends HandlerMark> {
  readonly #key: symbol;

  /** `decorator`: its name, such as '@OnDeadline'. `caller`: who calls the methods, where that may be missing. */
  constructor(
    readonly decorator: string,
    private readonly caller?: MethodCaller,
  ) {
    this.#key = Symbol(`@nest-session/core:${decorator}`);
  }

  /**
   * What the decorator returns: it adds a mark to a method that takes an event. `problem`: of its first argument, as
   * the end of a sentence.
   * @throws TypeError for that problem, and for other options than `broadcast`
   */
  add<Event>(
    problem: string | undefined,
    { broadcast = false, ...others }: Partial<HandlerMark>,
    markOf: (broadcast: boolean) => Mark,
  ): <Method extends (event: Event) => unknown>(
    prototype: object,
    name: string | symbol,
    descriptor: TypedPropertyDescriptor<Method>,
  ) => void {
    const wrong = problem ?? problemOfOptions(broadcast, others);
    if (wrong !== undefined) throw new TypeError(`${this.decorator}() ${wrong}`);
    return (prototype, name, descriptor) => {
      assertOnInstance(`${this.decorator}()`, prototype, name);
      const method = descriptor.value!;
      if (this.caller) markCaller(method, this.decorator, this.caller);
      Reflect.defineMetadata(this.#key, [markOf(broadcast), ...this.of(method)], method);
    };
  }

  /** The marks of a method; none for any other value. */
  readonly of = (method: unknown): readonly Mark[] => {
    if (typeof method !== 'function') return [];
    return (Reflect.getOwnMetadata(this.#key, method) as Mark[] | undefined) ?? [];
  };
}

function problemOfOptions(broadcast: unknown, others: object): string | undefined {
  const [unknown] = Object.keys(others);
  if (unknown !== undefined) return `has no option ${JSON.stringify(unknown)}: there is only \`broadcast\``;
  return typeof broadcast === 'boolean' ? undefined : 'takes true or false as its option `broadcast`';
}
