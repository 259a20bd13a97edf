import { jest } from '@jest/globals';
import { logger } from '@nest-session/redis-events/internal';
import type { JsonValue } from '../../src/values/json-values.js';
import { attributesHere, SPRING_PRINCIPAL_NAME } from '../../src/values/spring-principal.js';
import { CONTEXT as CONTEXT_CLASS, readSecurityContext, userOfContext } from '../../src/values/security-context.js';
import { OwnClasses } from '../../src/values/own-classes.js';
import { readSpringSession } from '../../src/read/spring-session.js';
import { described, object, stream, text } from '../support/java-stream.js';
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
  ownUser: undefined,
  ownAuthentication: undefined,
  // Its class has no name, and JSON has what Object.toString() makes of it.
  ownPrincipalWithoutName: undefined,
};

const FORMS = ['jdk', 'secmods', 'typed'] as const;

function usersIn(form: (typeof FORMS)[number], own?: OwnClasses): Record<string, unknown> {
  const found = RECORDED_CONTEXTS.map((context) => [
    context.name,
    readSecurityContext(stored(context[form]), own)!.user,
  ]);
  return Object.fromEntries(found) as Record<string, unknown>;
}

it.each(FORMS)('reads who is signed in, in the form %s', (form) => {
  // In this JSON, Java has called Authentication.getName().
  const ofGetter = form === 'typed' && { ownUser: { name: 'zoe', authorities: ['ROLE_APP'] } };
  expect(usersIn(form)).toEqual({ ...SIGNED_IN, ...ofGetter });
});

it.each(FORMS)('reads the fields of a class that the application has named, in the form %s', (form) => {
  const [user, authentication] = ['lab.fixtures.Main$AppUser', 'lab.fixtures.Main$AppAuthentication'];
  expect(usersIn(form, new OwnClasses({ [user]: 'username', [authentication]: 'who' }))).toEqual({
    ...SIGNED_IN,
    ownUser: { name: 'zoe', authorities: ['ROLE_APP'] },
    ownAuthentication: { name: 'dora', authorities: ['A', 'B'] },
  });
});

it('finds in the data of a context, without its classes, whom the context has', () => {
  for (const form of FORMS) {
    for (const context of RECORDED_CONTEXTS) {
      const { user, value } = readSecurityContext(stored(context[form]))!;
      expect([context.name, userOfContext(JSON.parse(JSON.stringify(value)) as JsonValue)]).toEqual([
        context.name,
        user,
      ]);
      expect(JSON.stringify(value)).not.toContain('@class');
    }
  }
});

it('finds nobody in another value', () => {
  const values: JsonValue[] = [null, 1, 'ann', [], {}, { authentication: null }, { authentication: [] }];
  for (const value of [undefined, ...values]) expect(userOfContext(value)).toBeUndefined();
});

it('takes every context that Spring Security has stored for one, and none without its classes', () => {
  for (const context of RECORDED_CONTEXTS) {
    const forms = ([...FORMS, 'plain'] as const).filter((form) => readSecurityContext(stored(context[form])));
    expect([context.name, forms]).toEqual([context.name, [...FORMS]]);
  }
});

const SECURITY = 'org.springframework.security';
const TOKEN = `${SECURITY}.authentication.UsernamePasswordAuthenticationToken`;
const USER = `${SECURITY}.core.userdetails.User`;
const AUTHORITY = `${SECURITY}.core.authority.SimpleGrantedAuthority`;

function contextOf(members: Readonly<Record<string, unknown>>, type = TOKEN): string {
  const authentication = { '@class': type, authenticated: true, authorities: [], ...members };
  return JSON.stringify({ '@class': CONTEXT_CLASS, authentication });
}

const nameIn = (context: string | Buffer, own?: OwnClasses) => readSecurityContext(context, own)?.user?.name;

it.each([
  ['a user of the application', { principal: { '@class': 'com.example.Account', username: 'admin', name: 'admin' } }],
  ['a subclass of User', { principal: { '@class': 'com.example.Member', username: 'admin' } }],
  [
    'a subclass of DefaultOAuth2User',
    { principal: { '@class': 'com.example.Social', username: 'admin', attributes: { id: 1 }, nameAttributeKey: 'id' } },
  ],
  ['a map', { principal: { '@class': 'java.util.LinkedHashMap', username: 'admin' } }],
  ['an object without a class', { principal: { username: 'admin' } }],
  ['a text of a class of the application', { principal: ['com.example.UserId', 'admin'] }],
  ['a number', { principal: 7 }],
  ['no principal', {}],
])('finds nobody by %s', (_, members) => {
  expect(nameIn(contextOf(members))).toBeUndefined();
  expect(nameIn(contextOf(members), new OwnClasses({ 'com.example.Other': 'username' }))).toBeUndefined();
});

it('finds nobody by a map whose later key names the class of a user', () => {
  const map = `{"@class":"java.util.LinkedHashMap","username":"admin","@class":"${USER}"}`;
  const context = contextOf({ principal: null }).replace('"principal":null', `"principal":${map}`);
  expect(context).toContain('admin');
  expect(nameIn(context)).toBeUndefined();
});

it('takes the name that Java returned before each field of the user', () => {
  const principal = { '@class': 'com.example.Social', username: 'admin', name: 'admin' };
  expect(nameIn(contextOf({ name: '4711', principal }))).toBe('4711');
  expect(nameIn(contextOf({ name: 'com.example.Social@1f', principal }))).toBeUndefined();
  expect(nameIn(contextOf({ name: 'bob@cafe', principal: 'bob@cafe' }))).toBe('bob@cafe');
});

it.each([false, null, 0, 'false', 'true', 1, undefined])(
  'finds nobody where `authenticated` is %j',
  (authenticated) => {
    expect(nameIn(contextOf({ principal: 'ann' }))).toBe('ann');
    expect(nameIn(contextOf({ principal: 'ann', authenticated }))).toBeUndefined();
  },
);

it.each([
  'com.example.HalfWay',
  `${SECURITY}.X`,
  `${SECURITY}.authentication.AnonymousAuthenticationToken`,
  'java.util.LinkedHashMap',
])('finds nobody by an authentication of the class %s', (type) => {
  expect(nameIn(contextOf({ principal: 'victim', name: 'victim' }, type))).toBeUndefined();
});

it.each(['', 'undefined', 'null', '\ud800'])('finds nobody by the name %j, as signIn() does', (name) => {
  expect(nameIn(contextOf({ principal: name }))).toBeUndefined();
  expect(nameIn(contextOf({ principal: { '@class': USER, username: name } }))).toBeUndefined();
  const named = `sessionAttr:${SPRING_PRINCIPAL_NAME}`;
  const fields = [
    [named, JSON.stringify(name)],
    ['sessionAttr:SPRING_SECURITY_CONTEXT', contextOf({ principal: 'ann' })],
  ] as const;
  expect(attributesHere(fields).attributes.get('nest-session.principal')).toBeUndefined();
});

it('reads authorities of known classes and enums, and leaves out what is none', () => {
  const authorities = [
    'ADMIN',
    { '@class': AUTHORITY, authority: 'USER' },
    { '@class': AUTHORITY, role: 'OLD' },
    { '@class': 'com.example.Role', authority: 'ROOT', code: 'STAFF' },
    { authority: 'ROOT' },
    ['com.example.Rank', 'ROOT'],
    null,
    7,
  ];
  const context = contextOf({ principal: 'ann', authorities });
  const read = (own?: OwnClasses) => readSecurityContext(context, own)!.user;
  expect(read()).toEqual({ name: 'ann', authorities: ['ADMIN', 'USER', 'OLD'] });
  const own = new OwnClasses({ 'com.example.Role': 'code' });
  expect(read(own)).toEqual({ name: 'ann', authorities: ['ADMIN', 'USER', 'OLD', 'STAFF'] });
});

/** A context of Java with a user of a class, whose fields are texts. */
function javaContext(type: string, fields: Readonly<Record<string, string>>, superclass?: Buffer): Buffer {
  const names = Object.keys(fields);
  const user = object(
    described(type, { fields: names, ...(superclass && { superclass }) }),
    ...Object.values(fields).map(text),
  );
  const authentication = object(
    described(TOKEN, {
      fields: ['principal'],
      superclass: described(`${SECURITY}.authentication.AbstractAuthenticationToken`, {
        fields: ['authenticated'],
        type: 'Z',
      }),
    }),
    Buffer.of(1),
    user,
  );
  return stream(object(described(CONTEXT_CLASS, { fields: ['authentication'] }), authentication));
}

it('finds the user of Spring Security in a stream of Java, and nobody of another class', () => {
  expect(nameIn(javaContext(USER, { username: 'ann' }))).toBe('ann');
  const account = javaContext('com.example.Account', { email: 'mallory@evil.test', name: 'admin', username: 'admin' });
  expect(nameIn(account)).toBeUndefined();
  expect(nameIn(account, new OwnClasses({ 'com.example.Account': 'email' }))).toBe('mallory@evil.test');
  expect(nameIn(javaContext('com.example.Member', { username: 'admin' }, described(USER)))).toBe(undefined);
});

it('says once which class was ignored, and what to do', () => {
  const warn = jest.spyOn(logger, 'warn').mockImplementation(() => undefined);
  try {
    const own = new OwnClasses({}, true);
    for (let i = 0; i < 2; i++) nameIn(javaContext('com.example.Account', { name: 'admin' }), own);
    nameIn(contextOf({ principal: 'ann' }, 'com.example.HalfWay'), own);
    expect(warn.mock.calls).toEqual([
      [expect.stringMatching(/^A user of the class "com\.example\.Account" was ignored .*option `ownClasses: /)],
      [expect.stringMatching(/^An authentication of the class "com\.example\.HalfWay" was ignored /)],
    ]);
  } finally {
    warn.mockRestore();
  }
});

const AUTHENTICATION = '"authentication":{"principal":"admin","authorities":["ROLE_ADMIN"]}';
const MAP = '"@class":"java.util.LinkedHashMap"';
const OF_CONTEXT = '"@class":"org.springframework.security.core.context.SecurityContextImpl"';
const mapOfJava = RECORDED_VALUES.find(({ jdk }) => stored(jdk).includes('java.util.HashMap'))!.jdk;

it.each([
  ['an object of plain JSON', `{${AUTHENTICATION}}`],
  ['a map', `{${MAP},${AUTHENTICATION}}`],
  ['a map with a key that names the class of a context', `{${MAP},${OF_CONTEXT},${AUTHENTICATION}}`],
  ['a map that holds a context', `{${MAP},"a":{${OF_CONTEXT},${AUTHENTICATION}},${AUTHENTICATION}}`],
  [
    'an object of Spring Security that is no context',
    `{"@class":"${SECURITY}.web.savedrequest.DefaultSavedRequest",${AUTHENTICATION}}`,
  ],
  ['a list', `["java.util.ArrayList",[{${OF_CONTEXT},${AUTHENTICATION}}]]`],
  ['a text', JSON.stringify(`{${OF_CONTEXT},${AUTHENTICATION}}`)],
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
