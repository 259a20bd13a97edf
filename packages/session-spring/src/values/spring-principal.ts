import { PRINCIPAL_ATTRIBUTE, TrackedSession } from '@nest-session/core/internal';
import { ATTRIBUTE_FIELD } from '@nest-session/redis/internal';
import type { Session } from '@nest-session/core';
import type { JsonValue } from './json-values.js';
import { NO_OWN_CLASSES, type OwnClasses } from './own-classes.js';
import {
  CONTEXT,
  isPrincipalName,
  readSecurityContext,
  type SecurityContext,
  type SpringAuthentication,
  userOfContext,
} from './security-context.js';
import { storedTextOf, valueOfText } from './spring-json.serializer.js';
import { readStoredValue } from './stored-value.js';

/** Spring's name of the index of principals, and of the attribute that an application sets for it. */
export const SPRING_PRINCIPAL_NAME =
  'org.springframework.session.FindByIndexNameSessionRepository.PRINCIPAL_NAME_INDEX_NAME';

export function nameInSpring(attribute: string): string {
  return attribute === PRINCIPAL_ATTRIBUTE ? SPRING_PRINCIPAL_NAME : attribute;
}

/** By their names here. `springName`: of a user whom only a context of Spring Security names; an attribute as well. */
export function attributesHere(
  fields: Iterable<readonly [field: string, stored: Buffer | string]>,
  own: OwnClasses = NO_OWN_CLASSES,
): {
  readonly attributes: ReadonlyMap<string, string>;
  readonly springName: string | undefined;
} {
  const attributes = new Map<string, string>();
  let [named, context]: [named?: JsonValue | undefined, context?: SecurityContext | undefined] = [];
  for (const [field, stored] of fields) {
    // Spring removes an attribute by emptying its field.
    if (!field.startsWith(ATTRIBUTE_FIELD) || stored.length === 0) continue;
    const name = field.slice(ATTRIBUTE_FIELD.length);
    // One of this name would be taken for our principal.
    if (name === PRINCIPAL_ATTRIBUTE) continue;
    if (name === SPRING_PRINCIPAL_NAME) {
      named = readStoredValue(Buffer.from(stored as string)) ?? undefined;
      continue;
    }
    if (name === SECURITY_CONTEXT) {
      context = readSecurityContext(stored, own);
      if (!context) continue;
    }
    attributes.set(name, stored.toString());
  }
  const springName = named === undefined ? context?.user?.name : undefined;
  const principal = named ?? springName;
  // What is no text is no name to a session, but stays what it is.
  const isNobody = principal === undefined || (typeof principal === 'string' && !isPrincipalName(principal));
  if (!isNobody) attributes.set(PRINCIPAL_ATTRIBUTE, JSON.stringify(principal));
  return { attributes, springName };
}

export const SECURITY_CONTEXT = 'SPRING_SECURITY_CONTEXT';

/** The name in the attribute of Spring's index; empty where that names nobody; undefined without the attribute. */
export function nameInIndex(value: JsonValue | undefined): string | undefined {
  if (value === null) return undefined;
  return isPrincipalName(value) ? value : '';
}

/**
 * Returns who is signed in to a session by Spring Security, and their authorities such as `ROLE_ADMIN`. Undefined if
 * nobody is, or if the context is of a form that cannot be read.
 */
export function signedInAs(session: Pick<Session, 'getAttribute'>): SpringAuthentication | undefined {
  const value = session.getAttribute<JsonValue>(SECURITY_CONTEXT);
  const stored = storedTextOf(value);
  return stored ? readSecurityContext(stored.text, stored.own)?.user : userOfContext(value);
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
    '@class': CONTEXT,
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
