import type { IncomingMessage } from 'node:http';
import { UpgradeOrigins } from '../../src/http/upgrade-origins.js';

const request = (headers: Record<string, string>) => ({ headers, socket: {} }) as unknown as IncomingMessage;

it.each([
  ['a client that is no browser', {}, true],
  ['a page of this origin', { origin: 'https://shop.test', 'sec-fetch-site': 'same-origin' }, true],
  ['a listed page', { origin: 'https://app.test', 'sec-fetch-site': 'cross-site' }, true],
  ['another page', { origin: 'https://evil.test', 'sec-fetch-site': 'cross-site' }, false],
  ['a script of this origin, which has no Origin', { 'sec-fetch-site': 'same-origin' }, true],
  ['the user', { 'sec-fetch-site': 'none' }, true],
  ['a script that another site loads, which has no Origin', { 'sec-fetch-site': 'cross-site' }, false],
  ['a script that another host of the site loads', { 'sec-fetch-site': 'same-site' }, false],
])('a connection may be opened by %s, or not', (_, headers, expected) => {
  const origins = new UpgradeOrigins();
  origins.allow(['https://app.test']);
  expect(origins.allows(request({ host: 'shop.test', ...headers }))).toBe(expected);
});
