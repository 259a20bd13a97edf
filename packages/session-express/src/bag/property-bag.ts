import { SessionCookie } from './session-cookie.js';
import { type BagContent, CONTENT, SessionBag } from './session-bag.js';

/** A session whose properties are its attributes, beside the methods of `SessionBag`. */
export function propertyBag(content: BagContent): SessionBag {
  return new Proxy(new SessionBag(content), HANDLER);
}

/** Shared by all bags, because V8 cannot optimize proxies that each have their own. */
const HANDLER: ProxyHandler<SessionBag> = {
  get(bag, name) {
    if (isAttribute(bag, name)) return valuesOf(bag).get(name);
    return SHARED.includes(name) ? undefined : Reflect.get(bag, name);
  },

  has: (bag, name) => (isAttribute(bag, name) ? valuesOf(bag).has(name) : Reflect.has(bag, name)),

  set(bag, name, value) {
    if (isAttribute(bag, name)) valuesOf(bag).set(name, value);
    else setMember(bag, name, value);
    return true;
  },

  deleteProperty(bag, name) {
    if (isAttribute(bag, name)) valuesOf(bag).remove(name);
    // A replaced method is itself again.
    else Reflect.deleteProperty(bag, name);
    return true;
  },

  defineProperty(bag, name, descriptor) {
    // A store has no place for accessors.
    if (!('value' in descriptor)) return false;
    return HANDLER.set!(bag, name, descriptor.value, bag);
  },

  ownKeys: (bag) => [...COOKIE, ...valuesOf(bag).names.filter((name) => isAttribute(bag, name)), CONTENT],

  getOwnPropertyDescriptor(bag, name) {
    if (name === 'cookie') return own(bag.cookie);
    if (!isAttribute(bag, name)) return Reflect.getOwnPropertyDescriptor(bag, name);
    const value = valuesOf(bag).get(name);
    return value === undefined ? undefined : own(value);
  },
};

const COOKIE = ['cookie'];

// What all bags have in common: copying the members of a body into the session must not lead there.
const SHARED: readonly (string | symbol)[] = ['constructor', '__proto__'];

/** For members that are plain properties in express-session, or look like one: what to write instead. */
const INSTEAD: ReadonlyMap<string | symbol, string> = new Map([
  ['principalName', 'call req.session.signIn(name) or signOut()'],
  ['maxInactiveInterval', 'set req.session.cookie.maxAge, or the timeout of the session in SessionContext'],
  ['absoluteTimeout', 'set that of the session in SessionContext'],
]);

function valuesOf(bag: SessionBag) {
  return bag[CONTENT].values;
}

/** Whether a property is an attribute of the session, and none of its members. */
function isAttribute(bag: SessionBag, name: string | symbol): name is string {
  return typeof name === 'string' && !(name in bag);
}

function own(value: unknown): PropertyDescriptor {
  return { value, writable: true, enumerable: true, configurable: true };
}

function setMember(bag: SessionBag, name: string | symbol, value: unknown): void {
  const instead = INSTEAD.get(name);
  // Not as an attribute either: `Object.assign(req.session, body)` lets the client choose the names.
  if (instead !== undefined) throw new TypeError(`req.session.${String(name)} cannot be assigned: ${instead}`);
  if (name === 'cookie') {
    setCookie(bag, value);
  } else if (typeof name === 'symbol' || typeof value === 'function') {
    // Not enumerable: a method is no data.
    Object.defineProperty(bag, name, { value, writable: true, configurable: true });
  } else {
    throw new TypeError(
      `req.session.${name} is a member of the session: keep the value under another name, or use ` +
        `setAttribute(${JSON.stringify(name)}, value)`,
    );
  }
}

/** Passport copies the properties of the session before a login to the one after it, its cookie among them. */
function setCookie({ cookie }: SessionBag, other: unknown): void {
  if (!(other instanceof SessionCookie)) throw new TypeError(NO_COOKIE);
  if (other.originalMaxAge !== cookie.originalMaxAge) cookie.maxAge = other.originalMaxAge;
}

const NO_COOKIE =
  'req.session.cookie takes the cookie of another session: to change its lifetime, set cookie.maxAge; to end the ' +
  'session, call destroy()';
