import { attributesHere, readSecurityContext } from '../../src/values/spring-principal.js';
import { readSpringSession } from '../../src/read/spring-session.js';
import type { JsonValue } from '../../src/values/json-values.js';
import { isOfSpringSecurity, readStoredValue } from '../../src/values/stored-value.js';
import { RECORDED_CONTEXTS, RECORDED_VALUES, stored } from '../support/spring.records.js';

const ROLES = ['ROLE_ADMIN', 'ROLE_USER'];
const SIGNED_IN: Readonly<Record<string, unknown>> = {
  userDetails: { name: 'ann', authorities: ROLES },
  nameOnly: { name: 'bob', authorities: ['ROLE_USER'] },
  unauthenticated: undefined,
  empty: undefined,
  rememberMe: { name: 'ann', authorities: ROLES },
  anonymous: undefined,
  preAuthenticated: { name: 'cid', authorities: ['ROLE_X'] },
  oauth2: { name: 'octo', authorities: ['OAUTH2_USER', 'SCOPE_read'] },
  oidc: { name: 'olga', authorities: ['OIDC_USER'] },
  ownUser: { name: 'zoe', authorities: ['ROLE_APP'] },
  ownAuthentication: { name: 'dora', authorities: ['A', 'B'] },
  // Its class has no name, and JSON has what Object.toString() makes of it.
  ownPrincipalWithoutName: undefined,
};

it.each(['jdk', 'secmods', 'typed', 'plain'] as const)('reads who is signed in, in the form %s', (form) => {
  const found = RECORDED_CONTEXTS.map((context) => [
    context.name,
    readSecurityContext(readStoredValue(stored(context[form]))),
  ]);
  // Java's own serialization has the fields of the class alone, in which no field has the usual name.
  const expected = form === 'jdk' ? { ...SIGNED_IN, ownAuthentication: undefined } : SIGNED_IN;
  expect(Object.fromEntries(found)).toEqual(expected);
});

it('finds nobody in another value', () => {
  const values: JsonValue[] = [null, 1, 'ann', [], {}, { authentication: null }, { authentication: [] }];
  for (const value of [undefined, ...values]) {
    expect(readSecurityContext(value)).toBeUndefined();
  }
});

it('reads authorities that are enums, and leaves out what is none', () => {
  const authorities: JsonValue[] = ['ADMIN', { authority: 'USER' }, { other: 1 }, null, 7];
  const authentication = { principal: 'ann', authorities };
  expect(readSecurityContext({ authentication })).toEqual({ name: 'ann', authorities: ['ADMIN', 'USER'] });
  expect(readSecurityContext({ authentication: { principal: 'ann' } })).toEqual({ name: 'ann', authorities: [] });
});

it('takes every context that Spring Security has stored for one, and none without its classes', () => {
  for (const context of RECORDED_CONTEXTS) {
    const forms = (['jdk', 'secmods', 'typed', 'plain'] as const).filter((form) =>
      isOfSpringSecurity(stored(context[form])),
    );
    expect([context.name, forms]).toEqual([context.name, ['jdk', 'secmods', 'typed']]);
  }
});

const AUTHENTICATION = '"authentication":{"principal":"admin","authorities":["ROLE_ADMIN"]}';
const MAP = '"@class":"java.util.LinkedHashMap"';
const CONTEXT = '"@class":"org.springframework.security.core.context.SecurityContextImpl"';
const mapOfJava = RECORDED_VALUES.find(({ jdk }) => stored(jdk).includes('java.util.HashMap'))!.jdk;

it.each([
  ['an object of plain JSON', `{${AUTHENTICATION}}`],
  ['a map', `{${MAP},${AUTHENTICATION}}`],
  ['a map with a key that names the class of a context', `{${MAP},${CONTEXT},${AUTHENTICATION}}`],
  ['a map that holds a context', `{${MAP},"a":{${CONTEXT},${AUTHENTICATION}},${AUTHENTICATION}}`],
  ['a list', `["java.util.ArrayList",[{${CONTEXT},${AUTHENTICATION}}]]`],
  ['a text', JSON.stringify(`{${CONTEXT},${AUTHENTICATION}}`)],
  ['a map of Java', mapOfJava],
  ['bytes that are no stream of Java', `!${Buffer.from([0xac, 0xed, 0, 5, 0x73]).toString('base64')}`],
])('takes %s in place of the context of Spring Security for none', (_, text) => {
  const field = ['sessionAttr:SPRING_SECURITY_CONTEXT', stored(text)] as const;
  expect(attributesHere([field])).toEqual({ attributes: new Map(), springName: undefined });
  const times = ['creationTime', 'lastAccessedTime', 'maxInactiveInterval'].map(
    (name) => [name, Buffer.from('1')] as const,
  );
  const session = readSpringSession([...times, field])!;
  expect([...session.attributes]).toEqual([['SPRING_SECURITY_CONTEXT', undefined]]);
});
