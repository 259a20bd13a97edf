/** Something that a method is marked to handle. */
export interface HandlerMark {
  /** Whether it is called on every instance instead of on one instance of each group. */
  readonly broadcast: boolean;
}

interface Marked {
  readonly by: HandlerMarks<HandlerMark>;
  readonly mark: HandlerMark;
}

const MARKS = Symbol('@nest-session/core:marks');

/** The marks that a decorator leaves on methods. */
export class HandlerMarks<Mark extends HandlerMark> {
  /**
   * `decorator`: its name, such as '@OnDeadline'. `uncalled`: what to do where the application does not have the module
   * that calls the methods, of a package of which nothing runs then.
   */
  constructor(
    readonly decorator: string,
    readonly uncalled?: string,
  ) {}

  /** What the decorator returns. `problem`: of its first argument. @throws TypeError for that, and for other options */
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
      const marked: Marked = { by: this, mark: markOf(broadcast) };
      Reflect.defineMetadata(MARKS, [marked, ...markedOf(method)], method);
    };
  }

  /** The marks of a method; none for any other value. */
  readonly of = (method: unknown): readonly Mark[] =>
    markedOf(method).flatMap(({ by, mark }) => (by === this ? [mark as Mark] : []));
}

export function decoratorsOf(method: unknown): ReadonlySet<HandlerMarks<HandlerMark>> {
  return new Set(markedOf(method).map(({ by }) => by));
}

function markedOf(method: unknown): readonly Marked[] {
  if (typeof method !== 'function') return [];
  return (Reflect.getOwnMetadata(MARKS, method) as Marked[] | undefined) ?? [];
}

function problemOfOptions(broadcast: unknown, others: object): string | undefined {
  const [unknown] = Object.keys(others);
  if (unknown !== undefined) return `has no option ${JSON.stringify(unknown)}: there is only \`broadcast\``;
  return typeof broadcast === 'boolean' ? undefined : 'takes true or false as its option `broadcast`';
}

/** @throws TypeError for a static method: handlers are methods of providers, and nothing would call it */
export function assertOnInstance(decorator: string, target: object, method: string | symbol): void {
  if (typeof target !== 'function') return;
  throw new TypeError(
    `${decorator} has no effect on the static method ${target.name}.${String(method)}: remove \`static\``,
  );
}
