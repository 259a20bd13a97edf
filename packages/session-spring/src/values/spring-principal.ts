import { PRINCIPAL_ATTRIBUTE, TrackedSession } from '@nest-session/core/internal';
import { ATTRIBUTE_FIELD } from '@nest-session/redis/internal';
import type { Session } from '@nest-session/core';
import { isOfSpringSecurity, readStoredValue } from './stored-value.js';
import { membersOf, type JsonValue } from './json-values.js';
import { valueOfText } from './spring-json.serializer.js';

/** Spring's name of the index of principals, and of the attribute that an application sets for it. */
export const SPRING_PRINCIPAL_NAME =
  'org.springframework.session.FindByIndexNameSessionRepository.PRINCIPAL_NAME_INDEX_NAME';

export function nameInSpring(attribute: string): string {
  return attribute === PRINCIPAL_ATTRIBUTE ? SPRING_PRINCIPAL_NAME : attribute;
}

/** By their names here. `springName`: of a user whom only a context of Spring Security names; an attribute as well. */
export function attributesHere(fields: Iterable<readonly [field: string, stored: Buffer | string]>): {
  readonly attributes: ReadonlyMap<string, string>;
  readonly springName: string | undefined;
} {
  const attributes = new Map<string, string>();
  for (const [field, stored] of fields) {
    // Spring removes an attribute by emptying its field.
    if (!field.startsWith(ATTRIBUTE_FIELD) || stored.length === 0) continue;
    const name = field.slice(ATTRIBUTE_FIELD.length);
    // One of this name would be taken for our principal.
    if (name === PRINCIPAL_ATTRIBUTE || isNoContext(name, stored)) continue;
    attributes.set(name === SPRING_PRINCIPAL_NAME ? PRINCIPAL_ATTRIBUTE : name, stored.toString());
  }
  const context = attributes.has(PRINCIPAL_ATTRIBUTE) ? undefined : attributes.get(SECURITY_CONTEXT);
  const springName = context && readSecurityContext(readStoredValue(Buffer.from(context)))?.name;
  if (springName !== undefined) attributes.set(PRINCIPAL_ATTRIBUTE, JSON.stringify(springName));
  return { attributes, springName };
}

export const SECURITY_CONTEXT = 'SPRING_SECURITY_CONTEXT';

/** Whether a value is where Spring Security keeps its context, and is none to it. */
export function isNoContext(attribute: string, stored: Buffer | string): boolean {
  return attribute === SECURITY_CONTEXT && !isOfSpringSecurity(Buffer.from(stored as string));
}

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

/** Undefined if nobody is signed in, or if the data lacks the name: a class of the application may compute it. */
export function readSecurityContext(context: JsonValue | undefined): SpringAuthentication | undefined {
  const authentication = membersOf(membersOf(context)?.['authentication']);
  if (!authentication || authentication['authenticated'] === false) return undefined;
  const authorities = authoritiesIn(authentication['authorities']);
  const name = nameIn(authentication);
  return name === undefined || authorities.includes(ANONYMOUS) ? undefined : { name, authorities };
}

/** As AbstractAuthenticationToken.getName() finds it. */
function nameIn(authentication: Readonly<Record<string, JsonValue>>): string | undefined {
  const { principal } = authentication;
  if (typeof principal === 'string') return principal;
  const user = membersOf(principal);
  const names = [user?.['username'], user && nameInAttributes(user), user?.['name'], authentication['name']];
  const name = names.find((each) => typeof each === 'string' || typeof each === 'number');
  return name === undefined || IDENTITY.test(`${name as string}`) ? undefined : `${name as string}`;
}

/** A user of OAuth 2 says which attribute is the name. One of OpenID Connect has claims instead. */
function nameInAttributes(user: Readonly<Record<string, JsonValue>>): JsonValue | undefined {
  const { nameAttributeKey: attribute, attributes, idToken, userInfo } = user;
  if (typeof attribute !== 'string') return undefined;
  const all = [attributes, membersOf(userInfo)?.['claims'], membersOf(idToken)?.['claims']];
  return all.map((each) => membersOf(each)?.[attribute]).find((name) => name !== undefined);
}

function authoritiesIn(value: JsonValue | undefined): string[] {
  if (!Array.isArray(value)) return [];
  // Java's serialization has the field, JSON what the getter returns. An enum is its name.
  const names = value.map((each) => membersOf(each)?.['authority'] ?? membersOf(each)?.['role'] ?? each);
  return names.filter((name) => typeof name === 'string');
}

/**
 * Returns who is signed in to a session by Spring Security, and their authorities such as `ROLE_ADMIN`. Undefined if
 * nobody is, or if the context is of a form that cannot be read.
 */
export function signedInAs(session: Pick<Session, 'getAttribute'>): SpringAuthentication | undefined {
  return readSecurityContext(session.getAttribute<JsonValue>(SECURITY_CONTEXT));
}

/**
 * Signs a user in to NestJS and to Spring Security, as `session.signIn()` does: `mode: 'shared'` with a Spring
 * application that keeps its sessions by SecurityJacksonModules. Spring finds a `User` without password, with these
 * authorities.
 * @throws SessionAttributeError when Spring is not known to keep its sessions so
 */
export function signInAs(
  session: Session,
  user: SpringAuthentication,
  options?: Parameters<Session['signIn']>[1],
): void {
  session.signIn(user.name, options);
  TrackedSession.of(session).setOwnAttribute(SECURITY_CONTEXT, valueOfText(JSON.stringify(contextOf(user))));
}

function contextOf({ name, authorities }: SpringAuthentication): object {
  const granted = authorities.map((authority) => ({
    '@class': `${SECURITY}.core.authority.SimpleGrantedAuthority`,
    authority,
  }));
  return {
    '@class': `${SECURITY}.core.context.SecurityContextImpl`,
    authentication: {
      '@class': `${SECURITY}.authentication.UsernamePasswordAuthenticationToken`,
      authenticated: true,
      authorities: ['java.util.Collections$UnmodifiableRandomAccessList', granted],
      credentials: null,
      details: null,
      principal: {
        '@class': `${SECURITY}.core.userdetails.User`,
        accountNonExpired: true,
        accountNonLocked: true,
        authorities: ['java.util.Collections$UnmodifiableSet', granted],
        credentialsNonExpired: true,
        enabled: true,
        password: null,
        username: name,
      },
    },
  };
}

const SECURITY = 'org.springframework.security';
