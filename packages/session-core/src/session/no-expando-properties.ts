/**
 * A base class whose objects refuse unknown properties: without it, `session.visits = 1` would be lost silently. Such
 * an assignment walks up the prototype chain and meets the proxy here, which throws; so do the members of
 * express-session. Only a proxy of the object itself notices `delete session.visits`. Its objects refuse to be copied as
 * well: `{ ...session }` would silently be an empty object.
 */
export const NoExpandoProperties = function (this: object) {
  // Own and enumerable, because a copy reads only such properties. A symbol, because nothing else reads those.
  Object.defineProperty(this, COPY, refusal);
  return new Proxy(this, REFUSES_DELETION);
} as unknown as new () => object;

const REFUSES_DELETION: ProxyHandler<object> = {
  deleteProperty(_target, property): never {
    const name = String(property);
    throw new TypeError(insteadOf(`delete session.${name}`, `session.removeAttribute('${name}')`));
  },
};

/** The methods of express-session, and what does here what they do. */
const METHODS: Readonly<Record<string, string>> = {
  regenerate: 'session.changeSessionId()',
  destroy: 'session.invalidate()',
  reload: 'SessionRepository.findById()',
  touch: 'nothing, because every request renews its session',
  resetMaxAge: 'nothing, because every request renews its session',
};

NoExpandoProperties.prototype = new Proxy(Object.prototype, {
  set(_target, property): never {
    throw new TypeError(
      `A session keeps attributes, not properties: use session.setAttribute('${String(property)}', value)`,
    );
  },
  get(target, property, receiver): unknown {
    if (property === 'cookie') throw new TypeError(insteadOf('session.cookie', 'session.maxInactiveInterval'));
    if (typeof property !== 'string' || !Object.hasOwn(METHODS, property))
      return Reflect.get(target, property, receiver);
    return () => {
      throw new TypeError(insteadOf(`session.${property}()`, METHODS[property]!));
    };
  },
});

/** The message for code that was written for express-session. */
export function insteadOf(code: string, instead: string): string {
  return (
    `\`${code}\` is of express-session: use ${instead}, or import ExpressSessionModule of @nest-session/express-session ` +
    'for the API of express-session'
  );
}
const COPY = Symbol('copy');

const refusal = {
  enumerable: true,
  configurable: true,
  get(): never {
    throw new TypeError(
      'A session cannot be copied or spread: pass the session itself, or read what you need, as in ' +
        "{ id: session.id, items: session.getAttribute('items') }",
    );
  },
};
