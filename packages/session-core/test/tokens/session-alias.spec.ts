import { AliasedSessionIdResolver, aliasIn, withAlias } from '../../src/resolvers/aliased-session-id.resolver.js';
import { requestWith } from '../support/node.request.js';

describe('the alias in a URL', () => {
  it.each([
    ['/url', '0'],
    ['/url?_s=2', '2'],
    ['/url?a=b&_s=1&y=z', '1'],
    ['/url?_s=19#_s=3', '19'],
    ['/url?_s=1&_s=2', '1'],
    ['/url?x_s=1', '0'],
    ['/url?a=?_s=1', '0'],
    ['/url#?_s=1', '0'],
    ['/_s=1', '0'],
    ['/url?_s', '0'],
    ['/url?_s=', '0'],
    ['/url?_s=20', '0'],
    ['/url?_s=01', '0'],
    ['/url?_s=-1', '0'],
    ['/url?_s=%31', '0'],
    ['/url?_s=__proto__', '0'],
    [`/url?_s=${'1'.repeat(60)}`, '0'],
    ['/url?_s=1;SESSION=x', '0'],
    ['*', '0'],
    ['', '0'],
    [undefined, '0'],
  ])('is read from %s as %s', (url, alias) => expect(aliasIn(url)).toBe(alias));

  it.each([
    ['/url', '2', '/url?_s=2'],
    ['/url', '0', '/url'],
    ['/url?a=b', '2', '/url?a=b&_s=2'],
    ['/url?a=b&_s=1&y=z', '0', '/url?a=b&y=z'],
    ['/url?a=b&_s=1&y=z', '2', '/url?a=b&y=z&_s=2'],
    ['/url?_s=1', '2', '/url?_s=2'],
    ['/url?_s=1', '0', '/url'],
    ['/url?_s', '0', '/url'],
    ['/url?x_s=1', '2', '/url?x_s=1&_s=2'],
    ['/url?x_s=1', '0', '/url?x_s=1'],
    ['/url?a=b#part?_s=1', '2', '/url?a=b&_s=2#part?_s=1'],
    ['https://a.example/url?q=%26_s=1', '2', 'https://a.example/url?q=%26_s=1&_s=2'],
    ['', '1', '?_s=1'],
  ])('is set: %s with the alias %s becomes %s', (url, alias, expected) => {
    expect(withAlias(url, alias)).toBe(expected);
    expect(aliasIn(expected)).toBe(alias);
  });
});

it('the alias of a request stays when a router changes its URL', () => {
  const resolver = new AliasedSessionIdResolver();
  const token = 'A'.repeat(43);
  const request = requestWith({ cookie: `SESSION.7=${token}; SESSION=${'B'.repeat(43)}` });
  request.url = '/shop/cart?_s=7';
  const tokens = () => resolver.resolve(request).map((each) => each.reveal());
  expect([resolver.aliasOf(request), tokens()]).toEqual(['7', [token]]);
  for (const url of ['/cart', '/cart?_s=3', '']) {
    request.url = url;
    expect([resolver.aliasOf(request), tokens()]).toEqual(['7', [token]]);
  }
});
