import { Controller, Delete, Get, Param, Post, Query, Redirect, Res } from '@nestjs/common';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually } from '@nest-session/testing';
import { BrowserSessions, Session, SessionStateError } from '../../src/index.js';
import { generateSessionKey } from '../../src/internal.js';
import { type RawReply, rawOf } from '../support/raw.response.js';
import { closeApps, startApp } from '../support/session.app.js';

LeakGuard.install();

@Controller()
class AccountsController {
  constructor(private readonly sessions: BrowserSessions) {}

  @Get()
  whoami(@Session() session: Session) {
    return { user: session.principalName, alias: this.sessions.currentAlias };
  }

  @Post('login/:name')
  login(@Session() session: Session, @Param('name') name: string) {
    session.changeSessionId();
    session.principalName = name;
  }

  @Post('logout')
  logout(@Session() session: Session) {
    session.invalidate();
  }

  @Get('accounts')
  async accounts() {
    const sessions = await this.sessions.list();
    return Object.fromEntries([...sessions].map(([alias, { principalName }]) => [alias, principalName]));
  }

  @Delete('accounts/:alias')
  async end(@Param('alias') alias: string) {
    return { ended: await this.sessions.end(alias) };
  }

  @Delete('twice/:alias')
  async endTwice(@Param('alias') alias: string) {
    return { ended: [await this.sessions.end(alias), await this.sessions.end(alias)] };
  }

  @Delete('late/:alias')
  async endLate(@Param('alias') alias: string, @Res() reply: RawReply) {
    const response = rawOf(reply);
    response.write('ended: ');
    response.end(String(await this.sessions.end(alias)));
  }

  @Get('link')
  link(@Query('to') to: string, @Query('alias') alias?: string) {
    return { link: this.sessions.link(to, alias) };
  }

  @Get('add')
  @Redirect()
  add() {
    return { url: this.sessions.link('/', this.sessions.newAlias) };
  }

  @Get('new')
  newAlias() {
    return { alias: this.sessions.newAlias };
  }

  @Get('cookies-of-its-own')
  async own(@Res({ passthrough: true }) reply: { header(name: string, value: string): void }) {
    reply.header('Set-Cookie', 'app=1');
    return { ended: await this.sessions.end('1') };
  }
}

afterEach(closeApps);

describe.each(['express', 'fastify'] as const)('several sessions in one browser, on %s,', (platform) => {
  async function start() {
    const session = { multipleSessions: true };
    const app = await startApp({ platform, controllers: [AccountsController], session });
    const browser = app.agent();
    return { ...app, browser };
  }

  it.each(['x', '20', '__proto__', '7'])('are not ended by an alias that none of them has: %s', async (alias) => {
    const { browser } = await start();
    await browser.post('/login/ann');
    const response = await browser.request('DELETE', `/accounts/${alias}`);
    expect(response).toMatchObject({ status: 200, setCookies: [] });
    expect(response.json()).toEqual({ ended: false });
  });

  it('have a cookie each, and the alias in the URL selects one', async () => {
    const { browser } = await start();
    await browser.post('/login/ann');
    await browser.post('/login/bob?_s=1');
    expect(Object.keys(browser.cookies).toSorted()).toEqual(['SESSION', 'SESSION.1']);
    expect((await browser.get('/')).json()).toEqual({ user: 'ann', alias: '0' });
    expect((await browser.get('/?_s=1')).json()).toEqual({ user: 'bob', alias: '1' });
    expect((await browser.get('/?_s=2')).json()).toEqual({ alias: '2' });
    // A malformed alias selects the session of alias 0.
    expect((await browser.get('/?_s=x')).json()).toEqual({ user: 'ann', alias: '0' });
  });

  it('do not overwrite each other when two tabs sign in at the same moment', async () => {
    const { browser } = await start();
    await Promise.all(Array.from({ length: 20 }, (_, alias) => browser.post(`/login/u${alias}?_s=${alias}`)));
    const accounts = await browser.get('/accounts?_s=7');
    expect(accounts.json()).toEqual(
      Object.fromEntries(Array.from({ length: 20 }, (_, alias) => [`${alias}`, `u${alias}`])),
    );
  });

  it('are listed in spite of planted cookies, which cost 64 questions at most', async () => {
    const { browser, agent, store } = await start();
    await browser.post('/login/ann');
    await browser.post('/login/bob?_s=1');
    const planted = (name: string, count: number) =>
      Array.from({ length: count }, () => `${name}=${generateSessionKey().token.reveal()}`);
    const own = [`SESSION=${browser.cookie('SESSION')}`, `SESSION.1=${browser.cookie('SESSION.1')}`];
    const list = (...cookies: string[]) => agent().get('/accounts?_s=19', { headers: { cookie: cookies.join('; ') } });
    store.lookUps.splice(0);
    const response = await list(own[0]!, ...planted('SESSION', 9), ...planted('SESSION.1', 7), own[1]!);
    expect(response.json()).toEqual({ 0: 'ann', 1: 'bob' });
    expect(store.lookUps.splice(0).map((ids) => ids.length)).toEqual([18, 1, 1]);
    await list(...planted('SESSION', 40), ...planted('SESSION.1', 40), ...planted('SESSION.2', 40));
    expect(store.lookUps.map((ids) => ids.length)).toEqual([15 + 64]);
  });

  it('have cookies that begin with __Host- where they are always Secure', async () => {
    const session = { multipleSessions: true, cookie: { secure: true } };
    const { agent } = await startApp({ platform, controllers: [AccountsController], session });
    const names = async (path: string) => (await agent().post(path)).setCookies.map((each) => each.split('=')[0]);
    expect(await names('/login/ann')).toEqual(['__Host-SESSION']);
    expect(await names('/login/bob?_s=1')).toEqual(['__Host-SESSION.1']);
  });

  it('are at most 20: one more is refused with 409, and cookies of ended sessions count', async () => {
    const { browser, store } = await start();
    for (let alias = 0; alias < 19; alias++) browser.setCookie(`SESSION.${alias}=${'a'.repeat(42)}${'ab'[alias % 2]}`);
    browser.setCookie(`SESSION=${'a'.repeat(43)}`);
    expect((await browser.get('/new')).json()).toEqual({ alias: '19' });
    browser.setCookie(`SESSION.19=${'a'.repeat(43)}`);
    store.calls.length = 0;
    const full = await browser.get('/new');
    expect([full.status, full.json()]).toMatchObject([409, { error: 'Conflict', reason: 'too-many-aliases' }]);
    expect(store.calls).toHaveLength(1);
    expect((await browser.request('DELETE', '/accounts/7')).json()).toEqual({ ended: false });
    expect((await browser.get('/new')).json()).toEqual({ alias: '7' });
  });

  it('are opened under their own aliases only', async () => {
    const { browser, agent } = await start();
    await browser.post('/login/bob?_s=1');
    const thief = agent();
    const headers = { cookie: `SESSION=x; SESSION.2=${browser.cookie('SESSION.1')}` };
    expect((await thief.get('/', { headers })).json()).toEqual({ alias: '0' });
    expect((await thief.get('/?_s=1', { headers })).json()).toEqual({ alias: '1' });
  });

  it('rotate and end one by one', async () => {
    const { browser } = await start();
    await browser.post('/login/ann');
    await browser.post('/login/bob?_s=1');
    const [ann, bob] = [browser.cookie('SESSION'), browser.cookie('SESSION.1')];
    await browser.post('/login/carl?_s=1');
    expect(browser.cookie('SESSION.1')).not.toBe(bob);
    expect(browser.cookie('SESSION')).toBe(ann);
    const logout = await browser.post('/logout?_s=1');
    expect(logout.setCookies).toEqual(['SESSION.1=; Max-Age=0; Path=/; HttpOnly; SameSite=Lax']);
    expect((await browser.get('/accounts')).json()).toEqual({ 0: 'ann' });
  });

  it('are listed while they are alive, with one call of the store, and the response varies by Cookie', async () => {
    const { browser, store } = await start();
    await browser.post('/login/ann');
    await browser.post('/login/bob?_s=3');
    browser.setCookie(`SESSION.4=${'a'.repeat(43)}`);
    store.calls.splice(0);
    const response = await browser.get('/accounts?_s=5');
    expect(response.json()).toEqual({ 0: 'ann', 3: 'bob' });
    expect(response.headers.vary).toContain('Cookie');
    expect(store.calls).toEqual(['load']);
    expect(response.setCookies).toEqual([]);
  });

  it('can be ended from another session, and the browser forgets their cookies', async () => {
    const { browser } = await start();
    await browser.post('/login/ann');
    await browser.post('/login/bob?_s=1');
    const token = browser.cookie('SESSION.1')!;
    const ended = await browser.request('DELETE', '/accounts/1');
    expect(ended.json()).toEqual({ ended: true });
    expect(ended.setCookies).toEqual(['SESSION.1=; Max-Age=0; Path=/; HttpOnly; SameSite=Lax']);
    expect(ended.headers['cache-control']).toContain('no-store');
    expect(browser.cookie('SESSION.1')).toBeUndefined();
    const headers = { cookie: `SESSION.1=${token}` };
    expect((await browser.get('/?_s=1', { headers })).json()).toEqual({ alias: '1' });
    expect((await browser.request('DELETE', '/accounts/1')).json()).toEqual({ ended: false });
    expect((await browser.request('DELETE', '/accounts/0')).json()).toEqual({ ended: true });
    expect(browser.cookies).toEqual({});
  });

  it.each(['0', '1'])('are ended once when a request of alias 0 ends alias %s twice', async (alias) => {
    const { browser } = await start();
    await browser.post(`/login/ann?_s=${alias}`);
    const ended = await browser.request('DELETE', `/twice/${alias}`);
    expect(ended.json()).toEqual({ ended: [true, false] });
    expect(browser.cookies).toEqual({});
  });

  it('are removed from the browser beside cookies that the application sets', async () => {
    const { browser } = await start();
    await browser.post('/login/bob?_s=1');
    const response = await browser.get('/cookies-of-its-own');
    expect(response.setCookies).toEqual(['app=1', 'SESSION.1=; Max-Age=0; Path=/; HttpOnly; SameSite=Lax']);
  });

  it('are ended after the headers were sent, and one log line says that the browser keeps the cookies', async () => {
    const { browser, log } = await start();
    for (const alias of ['0', '1', '2']) await browser.post(`/login/u${alias}?_s=${alias}`);
    for (const alias of ['1', '2', '0']) {
      const ended = await browser.request('DELETE', `/late/${alias}`);
      expect([ended.text, ended.setCookies]).toEqual(['ended: true', []]);
    }
    expect(Object.keys(browser.cookies).toSorted()).toEqual(['SESSION', 'SESSION.1', 'SESSION.2']);
    expect((await browser.get('/accounts')).json()).toEqual({});
    expect((await browser.get('/new')).json()).toEqual({ alias: '3' });
    expect((await browser.request('DELETE', '/late/1')).text).toBe('ended: false');
    expect(log.lines).toEqual([
      expect.stringMatching(
        /^warn BrowserSessions\.end\(\) ended .* after the headers .* Call end\(\) before the first byte/,
      ),
    ]);
  });

  it('are ended by only one of two requests that end the same session at the same moment', async () => {
    const { browser, store } = await start();
    await browser.post('/login/ann');
    const gate = store.gate('delete');
    const responses = [browser, browser.fork()].map((each) => each.request('DELETE', '/accounts/0'));
    await eventually(() => expect(store.calls.filter((call) => call === 'delete')).toHaveLength(2));
    gate.open();
    const ended = (await Promise.all(responses)).map((response) => response.json<{ ended: boolean }>().ended);
    expect(ended.filter(Boolean)).toHaveLength(1);
  });

  it.each(['0', '1'])(
    'are ended under alias %s, although another request has rotated them meanwhile',
    async (alias) => {
      const { browser, store } = await start();
      await browser.post(`/login/ann?_s=${alias}`);
      const gate = store.gate('delete');
      const ending = browser.fork().request('DELETE', `/accounts/${alias}`);
      await gate.reached();
      await browser.post(`/login/ann?_s=${alias}`);
      gate.open();
      expect((await ending).json()).toEqual({ ended: true });
      expect((await browser.get('/accounts')).json()).toEqual({});
    },
  );

  it('are selected by links with their aliases', async () => {
    const { browser } = await start();
    const link = async (path: string) => (await browser.get(path)).json<{ link: string }>().link;
    expect(await link('/link?to=/cart')).toBe('/cart');
    expect(await link('/link?to=/cart&_s=3')).toBe('/cart?_s=3');
    expect(await link('/link?to=/cart&_s=3&alias=0')).toBe('/cart');
    expect(await link('/link?to=/cart&alias=5')).toBe('/cart?_s=5');
    expect((await browser.get('/link?to=/cart&alias=99')).status).toBe(500);
  });

  it('are added under a free alias', async () => {
    const { browser } = await start();
    await browser.post('/login/ann');
    await browser.post('/login/bob?_s=2');
    const add = await browser.get('/add');
    expect([add.status, add.headers.location]).toEqual([302, '/?_s=1']);
    expect((await browser.get('/new?_s=1')).json()).toEqual({ alias: '3' });
  });

  it('are a single one under alias 0 without the option, and only a new alias is refused', async () => {
    const { agent, app } = await startApp({ platform, controllers: [AccountsController] });
    const browser = agent();
    await browser.post('/login/ann?_s=1');
    expect(Object.keys(browser.cookies)).toEqual(['SESSION']);
    expect((await browser.get('/?_s=1')).json()).toEqual({ user: 'ann', alias: '0' });
    expect((await browser.get('/accounts')).json()).toEqual({ '0': 'ann' });
    expect((await browser.get('/link?to=/basket')).json()).toEqual({ link: '/basket' });
    expect((await browser.get('/new')).status).toBe(500);
    expect((await browser.request('DELETE', '/accounts/1')).json()).toEqual({ ended: false });
    expect((await browser.request('DELETE', '/accounts/0')).json()).toEqual({ ended: true });
    expect(browser.cookies).toEqual({});
    expect((await browser.get('/accounts')).json()).toEqual({});
    expect(() => app.get(BrowserSessions).currentAlias).toThrow(SessionStateError);
  });
});
