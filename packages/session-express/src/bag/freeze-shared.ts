/** The names by which a merge of a request body would reach what all objects share. */
const HIDDEN: readonly PropertyKey[] = ['constructor', '__proto__'];

/** What functions inherit instead of `Function.prototype`, which a merge could change. */
const OF_FUNCTIONS: object = Object.freeze(copyOf(Function.prototype));

const OF_OBJECTS = Object.getOwnPropertyDescriptors(copyOf(Object.prototype));

/**
 * Freezes the prototype of a class, its methods, and what it inherits of `Object.prototype`, so that a deep merge of a
 * request body into one session reaches no other one.
 */
export function freezeShared(prototype: object): void {
  for (const name of HIDDEN) Object.defineProperty(prototype, name, { value: undefined });
  for (const name of Reflect.ownKeys(prototype)) {
    const { value } = Object.getOwnPropertyDescriptor(prototype, name)!;
    if (typeof value === 'function') freezeFunction(value as object);
  }
  for (const [name, property] of Object.entries(OF_OBJECTS)) {
    if (!Object.hasOwn(prototype, name)) Object.defineProperty(prototype, name, property);
  }
  Object.freeze(prototype);
}

/** Freezes a function, and what it inherits. */
export function freezeFunction<F extends object>(shared: F): F {
  return Object.freeze(Object.setPrototypeOf(shared, OF_FUNCTIONS) as F);
}

/** An object with the methods of another one, each a function of its own that inherits nothing. */
function copyOf(prototype: object): object {
  const copy = Object.create(null) as object;
  for (const name of Reflect.ownKeys(prototype)) {
    const { value } = Object.getOwnPropertyDescriptor(prototype, name)!;
    if (typeof value !== 'function' || HIDDEN.includes(name)) continue;
    // A method has no `prototype`, which would be another object that all share.
    const { own } = {
      own(...args: unknown[]): unknown {
        return Reflect.apply(value as () => unknown, this, args);
      },
    };
    Object.defineProperty(copy, name, { value: Object.freeze(Object.setPrototypeOf(own, null)), configurable: true });
  }
  return copy;
}
