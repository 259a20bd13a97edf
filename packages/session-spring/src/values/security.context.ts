import { membersOf, type PlainValue } from './plain-value.js';

/** The attribute in which Spring Security keeps who is signed in. */
export const SECURITY_CONTEXT = 'SPRING_SECURITY_CONTEXT';

/** Who is signed in, and what they may do. */
export interface SpringAuthentication {
  /** The name of the user, as `Authentication.getName()` has it. */
  readonly name: string;
  /** Such as `ROLE_ADMIN`. */
  readonly authorities: readonly string[];
}

/** What Object.toString() makes of an object that has no name. */
const IDENTITY = /^[\w.$]+@[0-9a-f]{1,8}$/;
const ANONYMOUS = 'ROLE_ANONYMOUS';

/**
 * Reads the attribute `SPRING_SECURITY_CONTEXT`, of any kind of authentication. Undefined if nobody is signed in, or if
 * the data does not have the name: a class of the application may compute it.
 */
export function readSecurityContext(context: PlainValue | undefined): SpringAuthentication | undefined {
  const authentication = membersOf(membersOf(context)?.['authentication']);
  if (!authentication || authentication['authenticated'] === false) return undefined;
  const authorities = authoritiesIn(authentication['authorities']);
  const name = nameIn(authentication);
  return name === undefined || authorities.includes(ANONYMOUS) ? undefined : { name, authorities };
}

/** As AbstractAuthenticationToken.getName() finds it. */
function nameIn(authentication: Readonly<Record<string, PlainValue>>): string | undefined {
  const { principal } = authentication;
  if (typeof principal === 'string') return principal;
  const user = membersOf(principal);
  const names = [user?.['username'], user && nameInAttributes(user), user?.['name'], authentication['name']];
  const name = names.find((each) => typeof each === 'string' || typeof each === 'number');
  return name === undefined || IDENTITY.test(`${name as string}`) ? undefined : `${name as string}`;
}

/** A user of OAuth 2 says which attribute is the name. One of OpenID Connect has claims instead. */
function nameInAttributes(user: Readonly<Record<string, PlainValue>>): PlainValue | undefined {
  const { nameAttributeKey: attribute, attributes, idToken, userInfo } = user;
  if (typeof attribute !== 'string') return undefined;
  const all = [attributes, membersOf(userInfo)?.['claims'], membersOf(idToken)?.['claims']];
  return all.map((each) => membersOf(each)?.[attribute]).find((name) => name !== undefined);
}

function authoritiesIn(value: PlainValue | undefined): string[] {
  if (!Array.isArray(value)) return [];
  // Java's serialization has the field, JSON what the getter returns. An enum is its name.
  const names = value.map((each) => membersOf(each)?.['authority'] ?? membersOf(each)?.['role'] ?? each);
  return names.filter((name) => typeof name === 'string');
}
