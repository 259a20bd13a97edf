import { assertPrincipalName } from '@nest-session/core/internal';
import { type JsonValue, membersOf } from './json-values.js';
import { NO_OWN_CLASSES, type OwnClasses } from './own-classes.js';
import { classOf, readClassedValue, withoutClasses } from './stored-value.js';

/** Who is signed in, and what they may do. */
export interface SpringAuthentication {
  /** The name of the user, as `Authentication.getName()` has it. */
  readonly name: string;
  /** Such as `ROLE_ADMIN`. */
  readonly authorities: readonly string[];
}

type Members = Readonly<Record<string, JsonValue>>;

const SECURITY = 'org.springframework.security.';

export const CONTEXT = `${SECURITY}core.context.SecurityContextImpl`;
const ANONYMOUS = `${SECURITY}authentication.AnonymousAuthenticationToken`;
/** Its constructor says that the user is authenticated, so the Jackson modules of Spring Security do not. */
const OF_OAUTH = `${SECURITY}oauth2.client.authentication.OAuth2AuthenticationToken`;

/** Where a subclass may compute what its fields do not say, so each counts under its own name alone. */
function classes(...names: readonly string[]): ReadonlySet<string> {
  return new Set(names.map((name) => SECURITY + name));
}

const AUTHENTICATIONS = new Set([
  OF_OAUTH,
  ...classes(
    'authentication.UsernamePasswordAuthenticationToken',
    'authentication.RememberMeAuthenticationToken',
    'authentication.jaas.JaasAuthenticationToken',
    'authentication.ott.OneTimeTokenAuthentication',
    'authentication.ott.OneTimeTokenAuthenticationToken',
    'cas.authentication.CasAuthenticationToken',
    'oauth2.client.authentication.OAuth2LoginAuthenticationToken',
    'oauth2.server.resource.authentication.BearerTokenAuthentication',
    'oauth2.server.resource.authentication.JwtAuthenticationToken',
    'saml2.provider.service.authentication.Saml2AssertionAuthentication',
    'saml2.provider.service.authentication.Saml2Authentication',
    'web.authentication.preauth.PreAuthenticatedAuthenticationToken',
    'web.webauthn.authentication.WebAuthnAuthentication',
  ),
]);

const WITH_USERNAME = classes(
  'core.userdetails.User',
  'ldap.userdetails.InetOrgPerson',
  'ldap.userdetails.LdapUserDetailsImpl',
  'ldap.userdetails.Person',
);
const WITH_NAME = classes(
  'oauth2.core.DefaultOAuth2AuthenticatedPrincipal',
  'oauth2.server.resource.introspection.OAuth2IntrospectionAuthenticatedPrincipal',
  'saml2.provider.service.authentication.DefaultSaml2AuthenticatedPrincipal',
  'web.webauthn.api.ImmutablePublicKeyCredentialUserEntity',
);
const WITH_NAME_IN_ATTRIBUTES = classes('oauth2.core.oidc.user.DefaultOidcUser', 'oauth2.core.user.DefaultOAuth2User');

const AUTHORITIES = classes(
  'authentication.jaas.JaasGrantedAuthority',
  'core.authority.FactorGrantedAuthority',
  'core.authority.SimpleGrantedAuthority',
  'ldap.userdetails.LdapAuthority',
  'oauth2.core.oidc.user.OidcUserAuthority',
  'oauth2.core.user.OAuth2UserAuthority',
  'web.authentication.switchuser.SwitchUserGrantedAuthority',
);
const ROLE_ANONYMOUS = 'ROLE_ANONYMOUS';

export interface SecurityContext {
  /** As data, without classes. `authentication.name` is that of the user who is signed in, and missing without one. */
  readonly value: JsonValue;
  readonly user: SpringAuthentication | undefined;
}

/**
 * Reads what is stored where Spring Security keeps its context. Undefined if that is none. Nobody is signed in by data
 * of a class whose meaning is not known: a class of the application may compute each answer.
 */
export function readSecurityContext(
  stored: Buffer | string,
  own: OwnClasses = NO_OWN_CLASSES,
): SecurityContext | undefined {
  const context = readClassedValue(Buffer.from(stored as string));
  if (classOf(context) !== CONTEXT) return undefined;
  const authentication = membersOf(membersOf(context)!['authentication']);
  const user = authentication && userOf(authentication, own);
  return { value: withoutClasses(shown(membersOf(context)!, authentication, user)), user };
}

function shown(context: Members, authentication: Members | undefined, user: SpringAuthentication | undefined): Members {
  if (!authentication) return context;
  const { name: _, ...members } = authentication;
  const authorities = user?.authorities.map((authority) => ({ authority }));
  return { ...context, authentication: { ...members, ...(user && { name: user.name, authorities: authorities! }) } };
}

export function userOfContext(value: JsonValue | undefined): SpringAuthentication | undefined {
  const authentication = membersOf(membersOf(value)?.['authentication']);
  const { name, authorities } = authentication ?? {};
  if (!isPrincipalName(name) || !Array.isArray(authorities)) return undefined;
  const names = authorities.map((each) => membersOf(each)?.['authority']);
  return { name, authorities: names.filter((each) => typeof each === 'string') };
}

function userOf(authentication: Members, own: OwnClasses): SpringAuthentication | undefined {
  const type = classOf(authentication) ?? '';
  if (type === ANONYMOUS) return undefined;
  const field = own.fieldOf(type);
  if (!AUTHENTICATIONS.has(type) && field === undefined) {
    own.tellOf(type, 'An authentication');
    return undefined;
  }
  const { authenticated } = authentication;
  if (authenticated !== true && !(authenticated === undefined && type === OF_OAUTH)) return undefined;
  const granted = authentication['authorities'];
  const all = Array.isArray(granted) ? granted.map((each) => authorityOf(each, own)) : [];
  const authorities = all.filter((name) => name !== undefined);
  if (authorities.includes(ROLE_ANONYMOUS)) return undefined;
  const name = field === undefined ? nameOf(authentication, own) : textOf(authentication[field]);
  return isPrincipalName(name) ? { name, authorities } : undefined;
}

/** As AbstractAuthenticationToken.getName() finds it, and as JSON has it, but for that of SecurityJacksonModules. */
function nameOf({ name, principal }: Members, own: OwnClasses): string | undefined {
  const type = classOf(principal);
  // What Object.toString() makes of an object that has no name.
  if (typeof name === 'string') return type !== undefined && name.startsWith(`${type}@`) ? undefined : name;
  return typeof principal === 'string' ? principal : nameOfPrincipal(type ?? '', membersOf(principal), own);
}

function nameOfPrincipal(type: string, user: Members | undefined, own: OwnClasses): string | undefined {
  if (!user) return undefined;
  if (WITH_USERNAME.has(type)) return textOf(user['username']);
  if (WITH_NAME.has(type)) return textOf(user['name']);
  if (WITH_NAME_IN_ATTRIBUTES.has(type)) return textOf(nameInAttributes(user));
  const field = own.fieldOf(type);
  if (field === undefined) own.tellOf(type, 'A user');
  return field === undefined ? undefined : textOf(user[field]);
}

/** A user of OAuth 2 says which attribute is the name. One of OpenID Connect has claims instead. */
function nameInAttributes(user: Members): JsonValue | undefined {
  const { nameAttributeKey: attribute, attributes, idToken, userInfo } = user;
  if (typeof attribute !== 'string') return undefined;
  const all = [attributes, membersOf(userInfo)?.['claims'], membersOf(idToken)?.['claims']];
  return all.map((each) => membersOf(each)?.[attribute]).find((name) => name !== undefined);
}

/** An id that is a number is its digits. */
function textOf(value: JsonValue | undefined): string | undefined {
  return typeof value === 'number' ? String(value) : typeof value === 'string' ? value : undefined;
}

function authorityOf(value: JsonValue, own: OwnClasses): string | undefined {
  // An enum is its name.
  if (typeof value === 'string') return value;
  const [type, members] = [classOf(value) ?? '', membersOf(value)];
  if (!members) return undefined;
  const field = own.fieldOf(type);
  if (!AUTHORITIES.has(type) && field === undefined) {
    own.tellOf(type, 'An authority');
    return undefined;
  }
  // Java's serialization has the field, JSON what the getter returns.
  const authority = field === undefined ? (members['authority'] ?? members['role']) : members[field];
  return typeof authority === 'string' ? authority : undefined;
}

/** Whether `signIn()` would take it. */
export function isPrincipalName(name: unknown): name is string {
  try {
    assertPrincipalName(name);
    return true;
  } catch {
    return false;
  }
}
