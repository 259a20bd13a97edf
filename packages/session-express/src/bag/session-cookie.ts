import { stringifySetCookie } from 'cookie';
import type { SetCookieAttributes } from '@nest-session/core/internal';
import { warnOnce } from '../express-session.logger.js';

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

/** Called when the lifetime of the cookie changes. Milliseconds, or null for a lifetime until the browser is closed. */
type LifetimeChange = (maxAge: number | null) => void;

export type CookieDescription = SetCookieAttributes;

/** Its lifetime, also the idle timeout, can be changed. Its other attributes are options of `SessionModule`. */
export class SessionCookie {
  /** Assigning it changes the cookie of the response, and `maxAge` from the next `touch()` or request on. */
  declare originalMaxAge: number | null;
  #originalMaxAge: number | null;
  #expires: Date | null;
  #change: LifetimeChange | undefined;
  readonly #description: CookieDescription;

  /** `maxAge`: milliseconds since `begin`, or null for until the browser is closed. */
  constructor(maxAge: number | null, description: CookieDescription, change?: LifetimeChange, begin = Date.now()) {
    this.#originalMaxAge = maxAge;
    this.#expires = endOf(maxAge, begin);
    this.#description = description;
    this.#change = change;
    this.#define('originalMaxAge', {
      get: () => this.#originalMaxAge,
      set: (next: unknown) => this.#setOriginalMaxAge(next),
    });
    for (const name of FIXED) this.#fix(name);
  }

  get maxAge(): number | null {
    return this.#expires && this.#expires.getTime() - Date.now();
  }

  set maxAge(maxAge: number | Date | null | undefined | false) {
    if (this.#setOriginalMaxAge(maxAge)) this.reset();
  }

  get expires(): Date | null {
    return this.#expires;
  }

  set expires(expires: Date | null | undefined | false) {
    if (expires && !(expires instanceof Date)) throw new TypeError('cookie.expires takes a Date, or null');
    this.maxAge = expires;
  }

  get data(): object {
    const { originalMaxAge, expires } = this;
    return { originalMaxAge, expires, ...this.#description };
  }

  toJSON(): object {
    return this.data;
  }

  serialize(name: string, value: string): string {
    const { maxAge } = this;
    const lifetime = maxAge === null ? {} : { maxAge: Math.max(0, Math.floor(maxAge / 1000)) };
    return stringifySetCookie({ name, value, ...this.#description, ...lifetime });
  }

  reset(): void {
    this.#expires = endOf(this.#originalMaxAge, Date.now());
  }

  /** Makes later changes ineffective, because the session has another cookie. */
  detach(): void {
    this.#change = undefined;
  }

  #setOriginalMaxAge(maxAge: unknown): boolean {
    const left = maxAge instanceof Date ? maxAge.getTime() - Date.now() : maxAge;
    if (typeof left === 'number' && !Number.isFinite(left)) {
      warnOnce(NO_LIFETIME);
      return false;
    }
    if (left) assertLifetime(left);
    const next = typeof left === 'number' ? left : null;
    // Throws when the session cannot be changed any more.
    this.#change?.(next);
    this.#originalMaxAge = next;
    return true;
  }

  #fix(name: (typeof FIXED)[number]): void {
    const get = () => this.#description[name as keyof CookieDescription];
    const set = (value: unknown) => {
      if (value === get()) return;
      if (value !== false || !STRICTER.includes(name)) throw new TypeError(fixedAttribute(name));
      warnOnce(`${fixedAttribute(name)}. The cookie keeps the attribute`);
    };
    this.#define(name, { get, set });
  }

  #define(name: string, accessors: PropertyDescriptor): void {
    Object.defineProperty(this, name, { ...accessors, enumerable: true, configurable: true });
  }
}

// A property that a request sets on the prototype, or on a method, would appear in every cookie.
freezeShared(SessionCookie.prototype);

const FIXED = ['path', 'domain', 'httpOnly', 'secure', 'sameSite', 'partitioned', 'priority'] as const;

/** A cookie that keeps them works wherever one without them would, only safer. */
const STRICTER: readonly string[] = ['httpOnly', 'secure'];

const NO_LIFETIME =
  'req.session.cookie.maxAge was set to NaN, Infinity or an invalid Date, which changes nothing: set milliseconds, or null';

function fixedAttribute(name: string): string {
  return (
    `req.session.cookie.${name} cannot be changed for one session: set the option \`cookie.${name}\` in ` +
    'SessionModule.forRoot()'
  );
}

/** The longest idle timeout of a session, in milliseconds. */
const LONGEST = (2 ** 31 - 1) * 1000;

function assertLifetime(maxAge: unknown): void {
  if (typeof maxAge !== 'number') throw new TypeError('cookie.maxAge takes milliseconds, or null');
  if (maxAge > LONGEST) throw new RangeError(`cookie.maxAge takes at most ${LONGEST} milliseconds, or null`);
}

function endOf(maxAge: number | null, begin: number): Date | null {
  return maxAge === null ? null : new Date(begin + maxAge);
}
