import { SessionCookie } from './session-cookie.js';
import { warnOnce } from './warn-once.js';
import { type BagContent, CONTENT, SessionBag } from './session-bag.js';

/** Creates a session with the methods of `SessionBag`, whose other properties are its attributes. */
export function propertyBag(content: BagContent): SessionBag {
  return new Proxy(new SessionBag(content), HANDLER);
}

/** Shared by all bags, because V8 cannot optimize proxies that each have their own. */
const HANDLER: ProxyHandler<SessionBag> = {
  get(bag, name) {
    if (isAttribute(bag, name)) return valuesOf(bag).get(name);
    return Reflect.get(bag, name);
  },

  has: (bag, name) => (isAttribute(bag, name) ? valuesOf(bag).has(name) : Reflect.has(bag, name)),

  set(bag, name, value) {
    if (isAttribute(bag, name)) valuesOf(bag).set(name, value);
    else setMember(bag, name, value);
    return true;
  },

  deleteProperty(bag, name) {
    if (isAttribute(bag, name)) valuesOf(bag).remove(name);
    // This restores a method that the application had replaced.
    else Reflect.deleteProperty(bag, name);
    return true;
  },

  defineProperty(bag, name, descriptor) {
    // A store cannot keep accessors.
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

/** What to write instead of an assignment to a member that is, or looks like, a plain property in express-session. */
const INSTEAD: ReadonlyMap<string | symbol, string> = new Map([
  ['principalName', 'call req.session.signIn(name) or signOut()'],
  ['maxInactiveInterval', 'set req.session.cookie.maxAge, or the timeout of the session in SessionContext'],
  ['absoluteTimeout', 'set absoluteTimeout of the session in SessionContext'],
]);

function valuesOf(bag: SessionBag) {
  return bag[CONTENT].values;
}

/** Whether a property is an attribute of the session and not a member of the bag. */
function isAttribute(bag: SessionBag, name: string | symbol): name is string {
  return typeof name === 'string' && !(name in bag);
}

function own(value: unknown): PropertyDescriptor {
  return { value, writable: true, enumerable: true, configurable: true };
}

function setMember(bag: SessionBag, name: string | symbol, value: unknown): void {
  const instead = INSTEAD.get(name);
  // These names cannot be attributes either, because `Object.assign(req.session, body)` lets the client choose names.
  if (instead !== undefined) throw new TypeError(`req.session.${String(name)} cannot be assigned: ${instead}`);
  if (name === 'cookie') {
    setCookie(bag, value);
  } else if (typeof name === 'symbol' || typeof value === 'function') {
    // Not enumerable, because a method is not data.
    Object.defineProperty(bag, name, { value, writable: true, configurable: true });
  } else {
    throw new TypeError(
      `req.session.${name} is a member of the session: store the value under another name, or use ` +
        `setAttribute(${JSON.stringify(name)}, value)`,
    );
  }
}

/** At a login, Passport copies the properties of the old session to the new one, including its cookie. */
function setCookie({ cookie }: SessionBag, other: unknown): void {
  if (other instanceof SessionCookie) {
    if (other.originalMaxAge !== cookie.originalMaxAge) cookie.maxAge = other.originalMaxAge;
  } else if (typeof other === 'object' && other !== null) {
    // Without its lifetime: it may be the body of a request, and a client must not choose that.
    warnOnce(NO_COOKIE);
  } else {
    throw new TypeError(`${NO_COOKIE}. To end the session, call destroy()`);
  }
}

const NO_COOKIE =
  'Only the cookie of another session can be assigned to req.session.cookie. An object changes nothing: set ' +
  'req.session.cookie.maxAge to change the lifetime';
