import { ServerResponse } from 'node:http';
import { Inject, Injectable } from '@nestjs/common';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { HttpAgent } from '@nest-session/testing';
import {
  CompositeSessionIdResolver,
  CookieSessionIdResolver,
  HeaderSessionIdResolver,
  InvalidSessionOptionsError,
  SessionContext,
  type SessionIdResolver,
} from '../../src/index.js';
import { generateSessionKey } from '../../src/internal.js';
import { AccountController } from '../support/account.routes.js';
import { requestWith } from '../support/node.request.js';
import { closeApps, startApp } from '../support/session.app.js';

LeakGuard.install();

type Place = 'header' | 'cookie';

const [token, other] = ['Ab-_'.padEnd(43, '0'), 'B'.repeat(43)];

function headerThenCookie(): SessionIdResolver {
  return new CompositeSessionIdResolver(HeaderSessionIdResolver.xAuthToken(), new CookieSessionIdResolver());
}

describe('CompositeSessionIdResolver', () => {
  it.each([
    [{}, []],
    [{ 'x-auth-token': token }, [token]],
    [{ cookie: `SESSION=${token}` }, [token]],
    [{ cookie: `SESSION=${other}`, 'x-auth-token': token }, [token, other]],
    [{ cookie: `SESSION=${token}`, 'x-auth-token': token }, [token]],
    [{ cookie: `SESSION=${token}`, 'x-auth-token': 'nonsense' }, [token]],
  ])('finds in %j %j', (headers, tokens) => {
    const found = headerThenCookie().resolve(requestWith(headers as Record<string, string>));
    expect(found.map((each) => each.reveal())).toEqual(tokens);
  });

  it('finds what the last resolver reads, however many tokens the others find', () => {
    const planted = (name: string) =>
      Array.from({ length: 64 }, () => `${name}=${generateSessionKey().token.reveal()}`).join('; ');
    const [first, second] = ['first', 'second'].map((name) => new CookieSessionIdResolver({ name }));
    const resolver = new CompositeSessionIdResolver(first!, second!, HeaderSessionIdResolver.xAuthToken());
    const cookie = `${planted('first')}; ${planted('second')}`;
    const found = resolver.resolve(requestWith({ cookie, 'x-auth-token': token }));
    expect(found.at(-1)!.reveal()).toBe(token);
    expect(found.length).toBeLessThanOrEqual(64);
    expect(found.length).toBeGreaterThan(54);
  });

  it('reads the headers of all its resolvers', () => {
    const twice = new CompositeSessionIdResolver(headerThenCookie(), new CookieSessionIdResolver({ name: 'old' }));
    expect(twice.headers).toEqual(['X-Auth-Token', 'Cookie']);
    const found = twice.resolve(requestWith({ cookie: `old=${token}; SESSION=${other}` }));
    expect(found.map((each) => each.reveal())).toEqual([other, token]);
  });

  it('sends a token with the resolver that has read it, even inside another composite', () => {
    const resolver = new CompositeSessionIdResolver(new CookieSessionIdResolver({ name: 'first' }), headerThenCookie());
    const request = requestWith({ 'x-auth-token': token, cookie: `SESSION=${other}` });
    const [ofHeader, ofCookie] = resolver.resolve(request);
    for (const [presented, header] of [
      [ofHeader, 'x-auth-token'],
      [ofCookie, 'set-cookie'],
      [undefined, 'set-cookie'],
    ] as const) {
      const client = { presented, isRemembered: false };
      for (const method of ['send', 'expire'] as const) {
        const response = new ServerResponse(request);
        if (method === 'send') resolver.send(request, response, generateSessionKey().token, client);
        else resolver.expire(request, response, client);
        expect(response.getHeaderNames()).toEqual([header]);
      }
    }
  });

  it.each([[], ['X-Auth-Token'], [undefined]])('refuses the resolvers %j', (...resolvers: unknown[]) => {
    expect(() => new CompositeSessionIdResolver(...(resolvers as SessionIdResolver[]))).toThrow(
      InvalidSessionOptionsError,
    );
  });

  describe.each(['express', 'fastify'] as const)('on %s', (platform) => {
    let agent: HttpAgent;
    let live: string;
    let dead: string;
    beforeEach(async () => {
      const app = await startApp({
        platform,
        controllers: [AccountController],
        session: { sessionIdResolver: headerThenCookie() },
      });
      agent = new HttpAgent(app.origin);
      live = (await agent.get('/start')).headers['x-auth-token'] as string;
      dead = generateSessionKey().token.reveal();
    });
    afterEach(closeApps);

    async function get(path: string, { header, cookie }: { header?: string; cookie?: string }) {
      const response = await agent.get(path, {
        headers: {
          ...(header !== undefined && { 'x-auth-token': header }),
          ...(cookie !== undefined && { cookie: `SESSION=${cookie}` }),
        },
      });
      const places: Place[] = [];
      if (response.headers['x-auth-token'] !== undefined) places.push('header');
      if (response.setCookies.length > 0) places.push('cookie');
      return { response, places };
    }

    it.each<[string, () => { header?: string; cookie?: string }, Place]>([
      ['nothing', () => ({}), 'header'],
      ['a header', () => ({ header: live }), 'header'],
      ['a cookie', () => ({ cookie: live }), 'cookie'],
      ['a dead header and a cookie', () => ({ header: dead, cookie: live }), 'cookie'],
      ['a header and a dead cookie', () => ({ header: live, cookie: dead }), 'header'],
      ['a dead header', () => ({ header: dead }), 'header'],
      ['a dead cookie', () => ({ cookie: dead }), 'cookie'],
      ['both of them dead', () => ({ header: dead, cookie: generateSessionKey().token.reveal() }), 'header'],
      ['both of one session', () => ({ header: live, cookie: live }), 'header'],
    ])('sends the token to a request with %s in one place', async (_, presented, place) => {
      expect((await get('/signup', presented())).places).toEqual([place]);
    });

    it.each<[Place, Place]>([
      ['header', 'cookie'],
      ['cookie', 'header'],
    ])('ends the session of the %s in that place, and leaves that of the %s', async (place, elsewhere) => {
      const another = (await agent.get('/start')).headers['x-auth-token'] as string;
      const presented = place === 'header' ? { header: live, cookie: dead } : { header: dead, cookie: live };
      expect((await get('/logout', presented)).places).toEqual([place]);
      expect((await get('/name', { [elsewhere]: another })).response.json()).toEqual({ name: 'ann' });
      expect((await get('/name', { [place]: live })).response.json()).toEqual({});
    });
  });

  it('sends Vary with all headers that are read', async () => {
    const app = await startApp({
      controllers: [AccountController],
      session: { sessionIdResolver: headerThenCookie() },
    });
    expect((await app.agent().get('/name')).headers.vary).toBe('X-Auth-Token, Cookie');
    await closeApps();
  });
});

describe('the option sessionIdResolver', () => {
  afterEach(closeApps);

  @Injectable()
  class OwnResolver extends HeaderSessionIdResolver {
    constructor(@Inject(SessionContext) readonly context: SessionContext) {
      super('X-Own');
    }
  }

  it.each(['express', 'fastify'] as const)(
    'accepts a class, whose dependencies Nest injects, on %s',
    async (platform) => {
      const { app, agent } = await startApp({
        platform,
        controllers: [AccountController],
        session: { sessionIdResolver: OwnResolver },
      });
      expect((await agent().get('/start')).headers['x-own']).toMatch(/^[\w-]{43}$/);
      expect(app.get(SessionContext)).toBeInstanceOf(SessionContext);
    },
  );
});
