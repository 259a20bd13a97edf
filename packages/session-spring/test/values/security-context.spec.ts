import { readSecurityContext } from '../../src/values/spring-principal.js';
import type { JsonValue } from '../../src/values/json-values.js';
import { readStoredValue } from '../../src/values/stored-value.js';
import { RECORDED_CONTEXTS, stored } from '../support/spring.records.js';

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
