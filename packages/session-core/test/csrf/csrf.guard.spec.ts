import { Body, Controller, Get, Param, Post, Put, Req, UploadedFile, UseGuards, UseInterceptors } from '@nestjs/common';
import { APP_GUARD } from '@nestjs/core';
import { ExecutionContextHost } from '@nestjs/core/helpers/execution-context-host.js';
import { FileInterceptor } from '@nestjs/platform-express';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { HttpAgent, type HttpResponse } from '@nest-session/testing';
import {
  CsrfError,
  CsrfGuard,
  CsrfToken,
  HeaderSessionIdResolver,
  csrfTokenOf,
  type RequestWithSession,
  Session,
  type SessionModuleOptions,
  SessionOutagePolicy,
  SkipCsrf,
} from '../../src/index.js';
import { closeApps, type SessionApp, startApp } from '../support/session.app.js';

LeakGuard.install();
afterEach(closeApps);

@Controller()
class TestController {
  @Get('form')
  form(@CsrfToken() token: string) {
    return { token };
  }

  @Post('transfer')
  transfer(@Session() session: Session, @Body() body: object = {}) {
    const transfers = session.getAttributeOrDefault<number>('transfers', 0) + 1;
    session.setAttribute('transfers', transfers);
    return { transfers, fields: Object.keys(body) };
  }

  @Put('transfer')
  replace(@Session() session: Session) {
    return this.transfer(session);
  }

  @Get('transfers')
  transfers(@Session() session: Session) {
    return { transfers: session.getAttributeOrDefault<number>('transfers', 0) };
  }

  @Get('start')
  start(@Session() session: Session) {
    session.setAttribute('started', true);
  }

  @Get('start-with-form')
  async startWithForm(@Session() session: Session) {
    const token = await csrfTokenOf(session);
    session.setAttribute('started', true);
    return { token };
  }

  @Post('logout')
  logout(@Session() session: Session) {
    session.signOut();
  }

  /** Where the handler would do without the session. */
  @Post('offline')
  @SessionOutagePolicy('anonymous')
  offline() {
    return { ok: true };
  }

  @Post('login')
  async login(@Session() session: Session) {
    session.changeSessionId();
    session.principalName = 'ann';
    return { token: await csrfTokenOf(session) };
  }
}

@Controller('webhook')
@SkipCsrf()
class WebhookController {
  @Post()
  receive() {
    return { received: true };
  }

  @SkipCsrf(false)
  @Post('strict')
  strict() {
    return { received: true };
  }
}

class StricterGuard extends CsrfGuard {}

@Controller('half-exempt')
@SkipCsrf()
class HalfExemptController {
  @UseGuards(CsrfGuard)
  @Post('guarded')
  guarded() {
    return { ok: true };
  }

  @UseGuards(StricterGuard)
  @SkipCsrf()
  @Post('guarded-by-subclass')
  guardedBySubclass() {
    return { ok: true };
  }

  @Post('exempt')
  exempt() {
    return { ok: true };
  }
}

@Controller('guarded')
class GuardedController {
  @UseGuards(CsrfGuard)
  @Post()
  guarded() {
    return { ok: true };
  }

  @Post('not')
  notGuarded() {
    return { ok: true };
  }
}

describe.each(['express', 'fastify'] as const)('CsrfGuard on %s', (platform) => {
  let app: SessionApp;
  let browser: HttpAgent;

  async function start(session: SessionModuleOptions = {}, trustProxy?: string): Promise<void> {
    app = await startApp({
      platform,
      session,
      ...(trustProxy !== undefined && { trustProxy }),
      controllers: [TestController, WebhookController],
      providers: [{ provide: APP_GUARD, useExisting: CsrfGuard }],
    });
    browser = app.agent();
  }

  async function tokenOf(agent: HttpAgent): Promise<string> {
    return (await agent.get('/form')).json<{ token: string }>().token;
  }

  /** Signs in, and returns the token of the session. */
  async function signedIn(agent = browser): Promise<string> {
    const headers = { 'X-CSRF-Token': await tokenOf(agent) };
    return (await agent.post('/login', undefined, { headers })).json<{ token: string }>().token;
  }

  /** Sends what changes something, with a token and headers. */
  function transfer(token: string | undefined, headers: Record<string, string> = {}, body?: unknown) {
    const sent = { ...(token !== undefined && { 'X-CSRF-Token': token }), ...headers };
    return browser.post('/transfer', body, { headers: sent });
  }

  function reasonOf({ status, text }: HttpResponse): string {
    if (status === 201 || status === 200) return 'accepted';
    const reasons = { origin: 'cross-origin', missing: 'missing-token', 'does not belong': 'invalid-token' };
    const found = Object.entries(reasons).find(([word]) => text.includes(word));
    return status === 403 && found ? found[1] : `${status} ${text}`;
  }

  it('gives each session of a browser its own token, and refuses the token of another', async () => {
    await start({ multipleSessions: true });
    const tokenIn = async (alias: number) => (await browser.get(`/form?_s=${alias}`)).json<{ token: string }>().token;
    const tokens = [await tokenIn(0), await tokenIn(1)];
    const transferIn = async (alias: number, token: string | undefined) =>
      reasonOf(await browser.post(`/transfer?_s=${alias}`, {}, { headers: { 'X-CSRF-Token': token } }));
    for (const [alias, other] of [
      [0, 1],
      [1, 0],
    ] as const) {
      expect(await transferIn(alias, tokens[alias])).toBe('accepted');
      expect(await transferIn(alias, tokens[other])).toBe('invalid-token');
    }
  });

  describe('the token', () => {
    beforeEach(() => start());

    it('is accepted in the header', async () => {
      const token = await tokenOf(browser);
      expect(reasonOf(await transfer(token))).toBe('accepted');
      expect(reasonOf(await transfer(token))).toBe('accepted');
    });

    it('is accepted in a field of a JSON body', async () => {
      const response = await transfer(undefined, {}, { _csrf: await tokenOf(browser), amount: 5 });
      expect(response.json()).toMatchObject({ transfers: 1, fields: ['_csrf', 'amount'] });
    });

    // Fastify parses forms with a plugin, which Nest registers as well.
    it('is accepted in a field of a form', async () => {
      const form = new URLSearchParams({ _csrf: await tokenOf(browser), amount: '5' });
      const headers = { 'Content-Type': 'application/x-www-form-urlencoded' };
      expect(reasonOf(await transfer(undefined, headers, form.toString()))).toBe('accepted');
    });

    it('is needed, and the handler does not run without it', async () => {
      await tokenOf(browser);
      expect(reasonOf(await transfer(undefined))).toBe('missing-token');
      expect(reasonOf(await transfer(undefined, {}, {}))).toBe('missing-token');
      expect(reasonOf(await transfer(undefined, {}, { __proto__: null, _CSRF: 'x' }))).toBe('missing-token');
      expect(reasonOf(await browser.request('PUT', '/transfer'))).toBe('missing-token');
      expect((await browser.get('/transfers')).json()).toEqual({ transfers: 0 });
    });

    it('is refused when it belongs to another session', async () => {
      const attacker = app.agent();
      await tokenOf(browser);
      expect(reasonOf(await transfer(await tokenOf(attacker)))).toBe('invalid-token');
    });

    it('is refused without a session, so that another page cannot sign a user in', async () => {
      const token = await tokenOf(browser);
      browser.clearCookies();
      const response = await transfer(token);
      expect([reasonOf(response), response.setCookies]).toEqual(['invalid-token', []]);
    });

    it.each<[string, (token: string) => unknown]>([
      ['changed', (token) => `${token.slice(0, -2)}${token.endsWith('AA') ? 'BB' : 'AA'}`],
      ['cut', (token) => token.slice(0, 43)],
      ['empty', () => ''],
      ['a list', (token) => [token]],
      ['an object', (token) => ({ token })],
      ['zeros', () => Buffer.alloc(64).toString('base64url')],
      ['with a character more', (token) => `${token}=`],
    ])('is refused when it is %s', async (_, change) => {
      const token = await tokenOf(browser);
      expect(reasonOf(await transfer(undefined, {}, { _csrf: change(token) }))).toBe('invalid-token');
    });

    it('counts in the header alone where both have one', async () => {
      const token = await tokenOf(browser);
      expect(reasonOf(await transfer('wrong', {}, { _csrf: token }))).toBe('invalid-token');
      expect(reasonOf(await transfer(token, {}, { _csrf: 'wrong' }))).toBe('accepted');
    });

    it('differs in every page, and all of them are accepted', async () => {
      const tokens = [await tokenOf(browser), await tokenOf(browser)];
      expect(new Set(tokens).size).toBe(2);
      for (const token of tokens) expect(reasonOf(await transfer(token))).toBe('accepted');
    });

    it('from before a sign-in is refused, and the one that the sign-in returned is accepted', async () => {
      const before = await tokenOf(browser);
      const response = await browser.post('/login', undefined, { headers: { 'X-CSRF-Token': before } });
      const { token } = response.json<{ token: string }>();
      expect(reasonOf(await transfer(before))).toBe('invalid-token');
      expect(reasonOf(await transfer(token))).toBe('accepted');
      expect(reasonOf(await transfer(await tokenOf(browser)))).toBe('accepted');
    });
  });

  describe('of a visitor', () => {
    const cookieOf = ({ setCookies }: HttpResponse) => setCookies.filter((each) => each.includes('.csrf='));
    const sessions = (response: HttpResponse) => response.setCookies.filter((each) => each.startsWith('SESSION='));

    it('is in a cookie of this host alone, and no session begins', async () => {
      await start({ cookie: { domain: 'shop.test', path: '/shop', httpOnly: false } });
      const first = await browser.get('/form');
      expect(first.setCookies).toEqual([
        expect.stringMatching(/^SESSION\.csrf=[\w-]{43}; Path=\/shop; HttpOnly; SameSite=Lax$/),
      ]);
      expect(first.headers).toMatchObject({ 'cache-control': 'no-store', vary: expect.stringMatching(/Cookie/) });
      const [cookie = ''] = first.setCookies[0]!.split(';');
      const again = await browser.get('/form', { headers: { Cookie: cookie } });
      expect([again.setCookies, again.headers['cache-control']]).toEqual([[], 'private']);
      expect(app.store.changes).toEqual([]);
    });

    it.each<[SessionModuleOptions, string]>([
      [{ security: 'strict' }, '__Host-SESSION.csrf'],
      [{ cookie: { secure: true } }, '__Host-SESSION.csrf'],
      [{ cookie: { secure: true, domain: 'shop.test', name: '__Secure-sid' } }, '__Host-sid.csrf'],
      [{ cookie: { secure: true, path: '/shop' } }, 'SESSION.csrf'],
      [{ multipleSessions: true }, 'SESSION.csrf'],
    ])('with %j has the cookie %s', async (session, name) => {
      await start(session);
      const response = await browser.get('/form');
      expect(response.setCookies.map((each) => each.split('=')[0])).toEqual([name]);
    });

    it('lets a page that was open before the session go on in it, also from a page without the token', async () => {
      await start();
      const token = await tokenOf(browser);
      const response = await transfer(token);
      expect([reasonOf(response), sessions(response).length]).toEqual(['accepted', 1]);
      expect(reasonOf(await transfer(token))).toBe('accepted');
      expect(reasonOf(await transfer(await tokenOf(browser)))).toBe('accepted');
      browser = app.agent();
      const before = await tokenOf(browser);
      await browser.get('/start');
      expect(reasonOf(await transfer(before))).toBe('accepted');
    });

    it('counts no more in a session, and again after the sign-out', async () => {
      await start();
      const before = await tokenOf(browser);
      const own = await signedIn();
      expect([reasonOf(await transfer(before)), reasonOf(await transfer(own))]).toEqual(['invalid-token', 'accepted']);
      await browser.post('/logout', undefined, { headers: { 'X-CSRF-Token': own } });
      expect(reasonOf(await transfer(own))).toBe('invalid-token');
      expect(reasonOf(await transfer(before))).toBe('accepted');
    });

    it.each(['signed in', 'anonymous'])('that is planted opens nothing in the session of another, %s', async (who) => {
      await start();
      const attacker = app.agent();
      const page = await attacker.get('/form');
      const [planted = ''] = cookieOf(page)[0]!.split(';');
      const { token } = page.json<{ token: string }>();
      if (who === 'anonymous') await browser.get('/start');
      else await signedIn();
      browser.setCookie(`${planted}; Path=/`);
      expect(reasonOf(await transfer(token))).toBe('invalid-token');
      // Nor does the session take it over.
      await tokenOf(browser);
      expect(reasonOf(await transfer(token))).toBe('invalid-token');
    });

    it.each(['', 'x', 'a'.repeat(42), `${'a'.repeat(42)}=`, `${'a'.repeat(43)}b`])(
      'is drawn anew in place of a cookie that holds %j',
      async (value) => {
        await start();
        const response = await browser.get('/form', { headers: { Cookie: `SESSION.csrf=${value}` } });
        expect(cookieOf(response)).toHaveLength(1);
        expect(reasonOf(await transfer(response.json<{ token: string }>().token))).toBe('accepted');
      },
    );

    it('is accepted behind planted cookies of the same name', async () => {
      await start();
      const page = await browser.get('/form');
      const [cookie = ''] = cookieOf(page)[0]!.split(';');
      const planted = `SESSION.csrf=${'A'.repeat(43)}; SESSION.csrf=x`;
      const { token } = page.json<{ token: string }>();
      const response = await transfer(token, { Cookie: `${planted}; ${cookie}` });
      expect(reasonOf(response)).toBe('accepted');
      expect(reasonOf(await transfer(token))).toBe('accepted');
    });

    it('starts a session where tokens of sessions are in a header', async () => {
      await start({ sessionIdResolver: HeaderSessionIdResolver.xAuthToken() });
      const response = await browser.get('/form');
      expect([response.setCookies, response.headers['x-auth-token']]).toEqual([[], expect.any(String)]);
      const headers = { 'X-Auth-Token': String(response.headers['x-auth-token']) };
      expect(reasonOf(await transfer(response.json<{ token: string }>().token, headers))).toBe('accepted');
    });

    it('is in the response of a handler that starts the session as well', async () => {
      await start();
      const response = await browser.get('/start-with-form');
      expect(reasonOf(await transfer(response.json<{ token: string }>().token))).toBe('accepted');
    });
  });

  describe('the origin', () => {
    const pages = ['https://admin.shop.test', 'HTTPS://Www.shop.test:443', 'https://münchen.test'];
    const apps = [
      'capacitor://localhost',
      'ionic://localhost',
      'tauri://LocalHost',
      'app://-',
      'chrome-extension://id',
    ];
    beforeEach(() => start({ csrf: { trustedOrigins: [...pages, ...apps] } }));

    it.each<[string, Record<string, string>, string]>([
      ['same-origin', { 'Sec-Fetch-Site': 'same-origin' }, 'accepted'],
      ['same-origin, whatever the Origin', { 'Sec-Fetch-Site': 'same-origin', Origin: 'null' }, 'accepted'],
      ['an address that was typed', { 'Sec-Fetch-Site': 'none' }, 'accepted'],
      ['another site', { 'Sec-Fetch-Site': 'cross-site' }, 'cross-origin'],
      ['another host of the domain', { 'Sec-Fetch-Site': 'same-site' }, 'cross-origin'],
      ['a word that is unknown', { 'Sec-Fetch-Site': 'trust-me' }, 'cross-origin'],
      [
        'another site with the own Origin',
        { 'Sec-Fetch-Site': 'cross-site', Origin: 'http://shop.test' },
        'cross-origin',
      ],
      ['a trusted origin', { 'Sec-Fetch-Site': 'cross-site', Origin: 'https://admin.shop.test' }, 'accepted'],
      ['a trusted origin, as browsers write it', { Origin: 'https://www.shop.test' }, 'accepted'],
      ['a trusted name, as browsers write it', { Origin: 'https://xn--mnchen-3ya.test' }, 'accepted'],
      ...['capacitor://localhost', 'ionic://localhost', 'tauri://localhost', 'app://-', 'chrome-extension://id'].map(
        (origin): [string, Record<string, string>, string] => [
          `the pages of a trusted app, ${origin}`,
          { 'Sec-Fetch-Site': 'cross-site', Origin: origin },
          'accepted',
        ],
      ),
      ['an app that is not listed', { Host: 'localhost', Origin: 'other://localhost' }, 'cross-origin'],
      ['another extension', { Origin: 'chrome-extension://other' }, 'cross-origin'],
      ['a host that begins like a trusted one', { Origin: 'https://admin.shop.test.evil.test' }, 'cross-origin'],
      ['a trusted host over http', { Origin: 'http://admin.shop.test' }, 'cross-origin'],
      ['the own origin', { Host: 'shop.test', Origin: 'http://shop.test' }, 'accepted'],
      ['the own origin with its port', { Host: 'shop.test:3000', Origin: 'http://shop.test:3000' }, 'accepted'],
      ['the own origin behind a proxy that ends TLS', { Host: 'shop.test', Origin: 'https://shop.test' }, 'accepted'],
      ['the own origin with the usual port', { Host: 'shop.test:443', Origin: 'https://shop.test' }, 'accepted'],
      ['another port', { Host: 'shop.test', Origin: 'http://shop.test:8080' }, 'cross-origin'],
      ['another host', { Host: 'shop.test', Origin: 'http://evil.test' }, 'cross-origin'],
      ['a host below', { Host: 'shop.test', Origin: 'http://evil.shop.test' }, 'cross-origin'],
      ['no origin that has a name', { Host: 'shop.test', Origin: 'null' }, 'cross-origin'],
      ['an empty Origin', { Host: 'shop.test', Origin: '' }, 'cross-origin'],
      ['a client that says nothing', { Host: 'shop.test' }, 'accepted'],
    ])('of %s, with a valid token', async (_, headers, expected) => {
      expect(reasonOf(await transfer(await tokenOf(browser), headers))).toBe(expected);
    });

    it('does not replace the token', async () => {
      await tokenOf(browser);
      expect(reasonOf(await transfer(undefined, { 'Sec-Fetch-Site': 'same-origin' }))).toBe('missing-token');
      expect(reasonOf(await transfer(undefined, { Origin: 'https://admin.shop.test' }))).toBe('missing-token');
    });
  });

  it.each([
    ['127.0.0.1', 'https://shop.test', 'accepted'],
    ['127.0.0.1', 'http://shop.test', 'cross-origin'],
    ['10.0.0.1', 'https://shop.test', 'cross-origin'],
  ])('behind a proxy, with %s trusted, the page %s is %s', async (trusted, origin, expected) => {
    await start({}, trusted);
    const forwarded = { Host: 'internal:3000', 'X-Forwarded-Host': 'shop.test', 'X-Forwarded-Proto': 'https' };
    expect(reasonOf(await transfer(await tokenOf(browser), { ...forwarded, Origin: origin }))).toBe(expected);
  });

  it('takes no page that came over http for one of an application that is on https alone', async () => {
    await start({ cookie: { secure: true } });
    browser = new HttpAgent(app.origin, { secure: true });
    const from = async (origin: string, host = 'shop.test') =>
      reasonOf(await transfer(await tokenOf(browser), { Host: host, Origin: origin }));
    expect(await from('https://shop.test')).toBe('accepted');
    expect(await from('http://shop.test')).toBe('cross-origin');
    expect(await from('http://localhost:3000', 'localhost:3000')).toBe('accepted');
  });

  it('leaves requests alone that change nothing, and does not start a session for them', async () => {
    await start();
    for (const method of ['GET', 'HEAD', 'OPTIONS']) {
      const response = await browser.request(method, '/transfers', { headers: { 'Sec-Fetch-Site': 'cross-site' } });
      expect([response.status === 403, response.setCookies]).toEqual([false, []]);
    }
  });

  it('is skipped where @SkipCsrf() says so, and a handler overrides its controller', async () => {
    await start();
    expect(reasonOf(await browser.post('/webhook', {}, { headers: { Origin: 'https://other.test' } }))).toBe(
      'accepted',
    );
    expect(reasonOf(await browser.post('/webhook/strict'))).toBe('missing-token');
  });

  it('guards a handler that names it, whatever @SkipCsrf() says there or on the class', async () => {
    app = await startApp({ platform, controllers: [TestController, HalfExemptController] });
    browser = app.agent();
    const headers = { 'X-CSRF-Token': await tokenOf(browser) };
    for (const path of ['/half-exempt/guarded', '/half-exempt/guarded-by-subclass']) {
      expect(reasonOf(await browser.post(path))).toBe('missing-token');
      expect(reasonOf(await browser.post(path, {}, { headers }))).toBe('accepted');
    }
    expect(reasonOf(await browser.post('/half-exempt/exempt'))).toBe('accepted');
  });

  it('guards single routes, and takes the token from either header or from the field', async () => {
    app = await startApp({ platform, controllers: [TestController, GuardedController] });
    browser = app.agent();
    const token = await tokenOf(browser);
    expect((await browser.post('/guarded')).json<{ message: string }>().message).toMatch(
      /send it in the header X-CSRF-Token or in the field _csrf/,
    );
    expect(reasonOf(await browser.post('/guarded', {}, { headers: { 'x-xsrf-token': token } }))).toBe('accepted');
    expect(reasonOf(await browser.post('/guarded', {}, { headers: { 'x-csrf-token': token } }))).toBe('accepted');
    const both = { 'x-csrf-token': 'other', 'x-xsrf-token': token };
    expect(reasonOf(await browser.post('/guarded', {}, { headers: both }))).toBe('invalid-token');
    expect(reasonOf(await browser.post('/guarded', { _csrf: token }))).toBe('accepted');
    expect(reasonOf(await browser.post('/guarded', { csrf: token }))).toBe('missing-token');
    expect(reasonOf(await browser.post('/guarded/not'))).toBe('accepted');
  });

  it('refuses a request that has no session because it is excluded', async () => {
    await start({ exclude: ({ url }) => url === '/webhook/strict' });
    const headers = { 'X-CSRF-Token': await tokenOf(browser) };
    expect(reasonOf(await browser.post('/webhook/strict', {}, { headers }))).toBe('invalid-token');
  });

  it('responds 503, not 403, when the session could not be loaded', async () => {
    await start();
    const token = await signedIn();
    app.store.break('load');
    expect((await transfer(token)).status).toBe(503);
    expect((await browser.post('/offline', {}, { headers: { 'X-CSRF-Token': token } })).status).toBe(503);
  });

  it('responds with an HttpException that filters recognize', () => {
    const error = new CsrfError('missing-token', 'The CSRF token is missing');
    expect([error.getStatus(), error.reason, error.name]).toEqual([403, 'missing-token', 'CsrfError']);
  });
});

it('CsrfGuard refuses a POST that middleware has made a GET, and a GET that it has made a POST', async () => {
  const override = (request: { method: string; originalMethod?: string; headers: Record<string, string> }) => {
    request.originalMethod ??= request.method;
    request.method = request.headers['x-http-method-override'] ?? request.method;
  };
  const app = await startApp({
    controllers: [TestController],
    providers: [{ provide: APP_GUARD, useExisting: CsrfGuard }],
    configure: (nest) =>
      nest.use((request: never, _response: unknown, next: () => void) => {
        override(request);
        next();
      }),
  });
  const browser = app.agent();
  const as = (method: string) => ({ headers: { 'X-HTTP-Method-Override': method } });
  expect((await browser.post('/transfers', {}, as('GET'))).text).toContain('CSRF token is missing');
  expect((await browser.get('/transfer', as('POST'))).text).toContain('CSRF token is missing');
  expect((await browser.get('/transfers')).status).toBe(200);
});

it('CsrfGuard does not see the fields of a form that an interceptor parses, but the header', async () => {
  @Controller()
  class UploadController {
    @Get('form')
    form(@CsrfToken() token: string) {
      return { token };
    }

    @Post('upload')
    @UseInterceptors(FileInterceptor('file'))
    upload(@UploadedFile() file: { readonly originalname: string }) {
      return { name: file.originalname };
    }
  }
  const app = await startApp({
    controllers: [UploadController],
    providers: [{ provide: APP_GUARD, useExisting: CsrfGuard }],
  });
  const browser = app.agent();
  const { token } = (await browser.get('/form')).json<{ token: string }>();
  const boundary = 'part';
  const parts = [
    `--${boundary}\r\nContent-Disposition: form-data; name="_csrf"\r\n\r\n${token}\r\n`,
    `--${boundary}\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\nabc\r\n--${boundary}--\r\n`,
  ].join('');
  const upload = (headers: Record<string, string>) =>
    browser.post('/upload', parts, {
      headers: { 'Content-Type': `multipart/form-data; boundary=${boundary}`, ...headers },
    });
  expect((await upload({})).text).toContain('CSRF token is missing');
  expect((await upload({ 'X-CSRF-Token': token })).json()).toEqual({ name: 'a.txt' });
});

it('CsrfGuard checks the HTTP request of a GraphQL resolver, and lets messages without a request pass', async () => {
  @Controller()
  class ResolverController {
    constructor(private readonly guard: CsrfGuard) {}

    @Get('form')
    form(@CsrfToken() token: string) {
      return { token };
    }

    /** As Nest calls the guard for a resolver or a message handler. */
    @Post(':kind/:driver')
    resolve(@Req() req: RequestWithSession & { body: unknown }, @Param() { kind, driver }: Record<string, string>) {
      const context = driver === 'apollo' ? { req } : { reply: { request: req } };
      const host = new ExecutionContextHost([undefined, {}, context, {}], ResolverController, this.resolve);
      host.setType(kind!);
      return { passes: this.guard.canActivate(host) };
    }
  }
  const app = await startApp({ controllers: [ResolverController] });
  const browser = app.agent();
  const { token } = (await browser.get('/form')).json<{ token: string }>();
  for (const driver of ['apollo', 'mercurius']) {
    expect((await browser.post(`/graphql/${driver}`)).status).toBe(403);
    expect((await browser.post(`/graphql/${driver}`, {}, { headers: { 'X-CSRF-Token': token } })).status).toBe(201);
  }
  expect((await browser.post('/rpc/none')).json()).toEqual({ passes: true });
  expect((await browser.post('/ws/none')).json()).toEqual({ passes: true });
});
