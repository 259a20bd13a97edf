export interface HandlerMark {
  /** Whether it is called on every instance instead of on one instance of each group. */
  readonly broadcast: boolean;
}

interface Marked {
  readonly by: HandlerMarks<HandlerMark>;
  readonly mark: HandlerMark;
}

const MARKS = Symbol('@nest-session/core:marks');

export class HandlerMarks<Mark extends HandlerMark> {
  /** `uncalled`: what to do where the application lacks the module that calls the methods, of a package of its own. */
  constructor(
    readonly decorator: string,
    readonly uncalled?: string,
  ) {}

  /** What the decorator returns. `problem`: of its first argument. @throws TypeError for that, and for other options */
  add<Event>(
    problem: string | undefined,
    { broadcast = false, ...others }: Partial<HandlerMark>,
    markOf: (broadcast: boolean) => Mark,
  ) {
    const wrong = problem ?? problemOfOptions(broadcast, others);
    if (wrong !== undefined) throw new TypeError(`${this.decorator}() ${wrong}`);
    const marked: Marked = { by: this, mark: markOf(broadcast) };
    return markMethod<Event>(`${this.decorator}()`, MARKS, (method) => [marked, ...markedOf(method)]);
  }

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

/** What a decorator returns that leaves a value on methods which take this argument, or none. */
export function markMethod<Argument>(decorator: string, key: symbol, valueOf: (method: object) => unknown) {
  return <Method extends (argument: Argument) => unknown>(
    prototype: object,
    name: string | symbol,
    descriptor: TypedPropertyDescriptor<Method>,
  ): void => {
    assertOnInstance(decorator, prototype, name);
    Reflect.defineMetadata(key, valueOf(descriptor.value!), descriptor.value!);
  };
}

/** @throws TypeError for a static method: handlers are methods of providers, and nothing would call it */
function assertOnInstance(decorator: string, target: object, method: string | symbol): void {
  if (typeof target !== 'function') return;
  throw new TypeError(
    `${decorator} has no effect on the static method ${target.name}.${String(method)}: remove \`static\``,
  );
}
