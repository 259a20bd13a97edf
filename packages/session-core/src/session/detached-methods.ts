type Method = (this: unknown, ...args: unknown[]) => unknown;

/**
 * Makes the methods of a class say what to write when they are called without their object, as after
 * `const { setAttribute } = session`: JavaScript's own error names neither.
 */
export function explainDetachedCalls(type: Function & { readonly prototype: object }): void {
  for (const [name, { value }] of Object.entries(Object.getOwnPropertyDescriptors(type.prototype))) {
    if (typeof value === 'function' && name !== 'constructor') {
      Object.defineProperty(type.prototype, name, { value: explaining(name, value as Method, type) });
    }
  }
}

function explaining(name: string, method: Method, type: Function): Method {
  return function (...args) {
    if (this instanceof type) return method.apply(this, args);
    throw new TypeError(
      `${name}() was called without its session: take the session as one object, as in \`@Session() session: Session\`, ` +
        `and call session.${name}()`,
    );
  };
}
