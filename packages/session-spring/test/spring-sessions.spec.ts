import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { SessionToken } from '@nest-session/core';
import { springSessions } from '@nest-session/spring';
import { SpringCookieSessionIdResolver } from '../src/spring-sessions.js';

const ID = '5b6bb683-b3dd-4225-9dd9-624191cc2b40';
const IN_BASE64 = 'NWI2YmI2ODMtYjNkZC00MjI1LTlkZDktNjI0MTkxY2MyYjQw';

const tokensIn = (cookie: string, resolver = new SpringCookieSessionIdResolver()) =>
  resolver.resolve({ headers: { cookie } } as never).map((token) => token.reveal());

it.each([
  ['in Base64', IN_BASE64, ID],
  ['plain', ID, ID],
  ['whose Base64 Java pads', `${'YWJjZGVm'.repeat(4)}YQ==`, `${'abcdef'.repeat(4)}a`],
  // Its length is that of Base64, but what it would be is no token.
  ['of a generator of its own', 'A'.repeat(44), 'A'.repeat(44)],
])('reads an id %s', (_form, value, id) => {
  expect(tokensIn(`a=b; SESSION=${value}`)).toEqual([id]);
  expect(tokensIn(`SESSION=${value}; c=`)).toEqual([id]);
});

it('reads an id once that is there in both forms', () => {
  expect(tokensIn(`SESSION=${ID}; SESSION=${IN_BASE64}`)).toEqual([ID]);
});

it.each(['', '%', 'c2hvcnQ', `${IN_BASE64}==`, 'ZXhwaXJlczo1YjZiYjY4My1iM2RkLTQyMjUtOWRkOS02MjQxOTFjYzJiNDA'])(
  'takes nothing that is no id for one: %j',
  (value) => {
    expect(tokensIn(`SESSION=${value}`)).not.toContain(ID);
    expect(tokensIn(`SESSION=${value}`).filter((token) => !/^[\w-]{22,128}$/.test(token))).toEqual([]);
  },
);

it('reads the cookie that its options name', () => {
  const { sessionIdResolver } = springSessions({ name: 'JSESSIONID' });
  const cookie = `SESSION=${ID}; JSESSIONID=${IN_BASE64.replace('NWI2', 'NWI3')}`;
  expect(tokensIn(cookie, sessionIdResolver as SpringCookieSessionIdResolver)).toEqual([ID.replace('5b6', '5b7')]);
});

it('sends Base64, as Spring Boot reads it', async () => {
  const resolver = new SpringCookieSessionIdResolver();
  const server = createServer((request, response) => {
    resolver.send(request, response, new SessionToken(ID), { isRemembered: false });
    response.end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  try {
    const response = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    expect(response.headers.get('set-cookie')).toContain(`SESSION=${IN_BASE64}; `);
  } finally {
    server.closeAllConnections();
    server.close();
  }
});
