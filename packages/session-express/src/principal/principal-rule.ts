import type { SessionData } from 'express-session';
import { assertPrincipalName, isIdentityAttribute } from '@nest-session/core/internal';
import { PassportKeys } from './passport-logins.js';

/** The properties of a session, as the next request reads them. They are passed to functions of the options. */
export type SessionProperties = Readonly<Partial<SessionData>> & Readonly<Record<string, unknown>>;

/**
 * Returns the signed-in user of a session, or undefined or null if there is none. The name is made of: a text, a number
 * or a bigint; an object whose `toJSON()` gives one, such as an ObjectId; a Buffer, as hexadecimal digits; or an object
 * with such an `id`, `_id` or `sub`. Anything else fails the save.
 */
export type PrincipalOfSession = (session: SessionProperties) => string | number | bigint | object | undefined | null;

// Attributes whose names begin with it belong to the library, and are no properties.
const RESERVED = 'nest-session.';

/** Whether the application may use a name for a property: a client may have chosen it. */
export function isOwn(name: string): boolean {
  return !name.startsWith(RESERVED) && !isIdentityAttribute(name);
}

export interface PrincipalRule {
  /** The properties in which Passport keeps its users, if they are the principals. */
  readonly passportKeys?: PassportKeys;
  /** Whether nothing says that the application uses Passport. */
  readonly isAssumed?: boolean;
  /** Whether it may depend on an attribute. */
  mayRead(name: string): boolean;
  /** Returns the name of the principal, or undefined if no user is signed in. @throws TypeError when it has no name */
  nameIn(session: SessionProperties): string | undefined;
}

export function principalRule(option: PrincipalOfSession | 'passport' | false | undefined): PrincipalRule | undefined {
  if (option === false) return undefined;
  if (typeof option === 'function')
    return {
      mayRead: () => true,
      nameIn: (session) => principalNameOf(option(session), 'Option `principal` returned'),
    };
  const passportKeys = new PassportKeys(['passport']);
  return {
    passportKeys,
    isAssumed: option === undefined,
    mayRead: (name) => passportKeys.has(name),
    nameIn: (session) => {
      const names = [...passportKeys].map((key) => principalNameOf(userIn(session[key]), PASSPORT_USER));
      return names.find((name) => name !== undefined);
    },
  };
}

/** What is wrong with a function of the option, as the end of a sentence; undefined when it is valid. */
export function principalProblem(option: PrincipalOfSession): string | undefined {
  let found: unknown;
  try {
    found = option({});
  } catch {
    return 'throws for a session without properties: return undefined there, as (session) => session.user?.id does';
  }
  try {
    if (principalNameOf(found, 'it returned') === undefined) return undefined;
  } catch (error) {
    return `must return undefined for a session without properties: ${(error as Error).message}`;
  }
  return 'must return undefined for a session without properties, or every visitor is a signed-in user';
}

export const PASSPORT_USER = 'The user that Passport keeps in the session is';

/** The user in the property of Passport; @fastify/passport keeps the user itself there. */
export function userIn(property: unknown): unknown {
  if (!isObject(property)) return property ?? undefined;
  if ('user' in property) return property['user'] ?? undefined;
  // Passport leaves an empty object where it has signed a user out.
  return Object.keys(property).length === 0 ? undefined : property;
}

export function nameIfAny(user: unknown): string | undefined {
  try {
    return principalNameOf(user, PASSPORT_USER);
  } catch {
    return undefined;
  }
}

const IDS = ['id', '_id', 'sub'] as const;

/** Undefined also for Passport's users that are objects without an id, which the caller reports. */
export function principalNameOf(value: unknown, subject: string): string | undefined {
  const user = plainOf(value);
  if (user === undefined || user === null) return undefined;
  const text = textOf(user);
  if (text !== undefined) return checked(text, subject);
  if (isObject(user) && typeof user['then'] !== 'function') {
    const key = IDS.find((name) => plainOf(user[name]) !== undefined && user[name] !== null);
    const id = key && textOf(plainOf(user[key]));
    if (id !== undefined) return checked(id, subject);
    if (key === undefined && subject === PASSPORT_USER) return undefined;
  }
  throw new TypeError(`${subject} ${shownType(user)}: ${WANTED}`);
}

const WANTED =
  'the principal is a text, a number or a bigint, an id whose toJSON() gives a text, a Buffer, or an object with such an ' +
  '`id`, `_id` or `sub`. Let the option `principal` of ExpressSessionModule.forRoot() return one of them';

/** What JSON.stringify() makes of a value, so that its name is the same before and after it was stored. */
function plainOf(value: unknown): unknown {
  return isObject(value) && typeof value['toJSON'] === 'function' ? (value['toJSON'] as () => unknown)() : value;
}

function textOf(id: unknown): string | undefined {
  if (typeof id === 'string') return id;
  if (typeof id === 'number' || typeof id === 'bigint') return String(id);
  if (!isObject(id)) return undefined;
  const bytes = id['type'] === 'Buffer' ? id['data'] : Object.values(id);
  const isBytes = Array.isArray(bytes) && bytes.length > 0 && bytes.every(isByte);
  if (!isBytes || (bytes !== id['data'] && Object.keys(id).some((key, index) => key !== String(index))))
    return undefined;
  return Buffer.from(bytes as number[]).toString('hex');
}

function isByte(value: unknown): boolean {
  return Number.isInteger(value) && (value as number) >= 0 && (value as number) < 256;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function checked(text: string, subject: string): string {
  try {
    assertPrincipalName(text);
  } catch (error) {
    throw new TypeError(`${subject} no name. ${(error as Error).message}`, { cause: error });
  }
  return text;
}

function shownType(value: unknown): string {
  if (Array.isArray(value)) return 'a list';
  if (!isObject(value)) return `a ${typeof value}`;
  return typeof value['then'] === 'function' ? 'a promise' : 'an object without an id';
}
