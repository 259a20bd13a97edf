import { ServerResponse } from 'node:http';
import { Logger } from '@nestjs/common';
import { LeakGuard, LogRecorder } from '@nest-session/test-infrastructure';
import { HeaderSessionIdResolver, InvalidSessionOptionsError } from '../../src/index.js';
import { generateSessionKey } from '../../src/internal.js';
import { AccountController } from '../support/account.routes.js';
import { requestWith } from '../support/node.request.js';
import { closeApps, startApp } from '../support/session.app.js';

LeakGuard.install();

describe('HeaderSessionIdResolver', () => {
  const token = 'Ab-_'.padEnd(43, '0');

  it('reads and writes only the header of its name, in any case', () => {
    for (const [resolver, name] of [
      [HeaderSessionIdResolver.xAuthToken(), 'x-auth-token'],
      [HeaderSessionIdResolver.authenticationInfo(), 'authentication-info'],
      [new HeaderSessionIdResolver('X-My-Token'), 'x-my-token'],
    ] as const) {
      const request = requestWith({ [name]: token, 'x-other': 'B'.repeat(43), cookie: `SESSION=${'C'.repeat(43)}` });
      expect(resolver.resolve(request).map((each) => each.reveal())).toEqual([token]);
      const response = new ServerResponse(request);
      resolver.send(request, response, generateSessionKey().token);
      resolver.send(request, response, generateSessionKey().token);
      expect(response.getHeaderNames()).toEqual([name]);
      expect(response.getHeader(name)).toMatch(/^[\w-]{43}$/);
      resolver.expire(request, response);
      resolver.expire(request, response);
      expect(response.getHeader(name)).toBe('');
    }
  });

  it.each([
    undefined,
    null,
    '',
    'X Token',
    'X-Token:',
    'X-Token\r\n',
    'Cookie',
    'set-cookie',
    'Host',
    'Content-Length',
    'constructor',
    '__proto__',
  ])('refuses the name %j', (name) => {
    expect(() => new HeaderSessionIdResolver(name as string)).toThrow(InvalidSessionOptionsError);
    expect(() => new HeaderSessionIdResolver(name as string)).toThrow(/such as 'X-Auth-Token'/);
  });

  it('logs once that a header holds no token, without its value', () => {
    const log = new LogRecorder();
    Logger.overrideLogger(log);
    const resolver = HeaderSessionIdResolver.xAuthToken();
    for (const value of ['', 'nonsense', `${token}, ${token}`])
      resolver.resolve(requestWith({ 'x-auth-token': value }));
    expect(log.lines).toEqual([expect.stringMatching(/header X-Auth-Token does not hold a session token/)]);
    expect(log.lines[0]).not.toMatch(/nonsense|Ab-_/);
  });

  describe.each(['express', 'fastify'] as const)('on %s', (platform) => {
    afterEach(closeApps);

    it('carries a session from creation to deletion without a cookie', async () => {
      const session = { sessionIdResolver: HeaderSessionIdResolver.xAuthToken() };
      const agent = (await startApp({ platform, controllers: [AccountController], session })).agent();
      const get = (path: string, sent?: string) =>
        agent.get(path, { headers: sent === undefined ? {} : { 'x-auth-token': sent } });

      const started = await get('/start');
      const first = started.headers['x-auth-token'] as string;
      expect(first).toMatch(/^[\w-]{43}$/);
      expect([started.setCookies, started.headers.vary, started.headers['cache-control']]).toEqual([
        [],
        'X-Auth-Token',
        'no-store',
      ]);
      const read = await get('/name', first);
      expect([read.json(), read.headers]).toEqual([
        { name: 'ann' },
        expect.not.objectContaining({ 'x-auth-token': expect.anything() }),
      ]);
      const second = (await get('/login', first)).headers['x-auth-token'] as string;
      expect(second).not.toBe(first);
      expect((await get('/name', first)).json()).toEqual({});
      expect((await get('/name', second)).json()).toEqual({ name: 'ann' });
      expect((await get('/logout', second)).headers['x-auth-token']).toBe('');
      expect((await get('/name', second)).json()).toEqual({});
    });
  });
});
