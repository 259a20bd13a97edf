import { Controller, Get, Headers, Param, Post, Res } from '@nestjs/common';
import { Gate, LeakGuard } from '@nest-session/test-infrastructure';
import { type HttpAgent, type HttpResponse, ManualClock } from '@nest-session/testing';
import { PRINCIPAL_ATTRIBUTE } from '../../src/session/attribute-names.js';
import {
  CompositeSessionIdResolver,
  CookieSessionIdResolver,
  csrfTokenOf,
  HeaderSessionIdResolver,
  Session,
  SessionOutagePolicy,
} from '../../src/index.js';
import { generateSessionKey } from '../../src/internal.js';
import { GatedRepository } from '../support/gated.repository.js';
import { type RawReply, rawOf } from '../support/raw.response.js';
import { closeApps, type SessionApp, type SessionAppOptions, startApp } from '../support/session.app.js';

LeakGuard.install();
afterEach(closeApps);

const DAY = 24 * 60 * 60;
const MINUTE = 60_000;

/** The gate at which a handler waits. */
let hold: Gate;

@Controller()
class TestController {
  @Post('set/:name/:value')
  set(@Session() session: Session, @Param('name') name: string, @Param('value') value: string) {
    session.setAttribute(name, value);
  }

  @Post('late/:name/:value')
  async late(@Session() session: Session, @Param('name') name: string, @Param('value') value: string) {
    session.setAttribute(name, value);
    session.setAttribute('late', value);
    await hold.pass();
  }

  /** Where the handler would do without the session while the store is down, which it is not. */
  @Get('offline')
  @SessionOutagePolicy('anonymous')
  offline(@Session() session: Session) {
    return { name: session.principalName ?? null };
  }

  @Get('csrf')
  async csrf(@Session() session: Session) {
    return { token: await csrfTokenOf(session) };
  }

  @Post('login/:name')
  login(@Session() session: Session, @Param('name') name: string, @Headers('x-remember') remember?: string) {
    session.signIn(decodeURIComponent(name), { remember: remember !== undefined });
    return { id: session.id, principalName: session.principalName };
  }

  @Post('again/:name')
  again(@Session() session: Session, @Param('name') name: string) {
    session.signIn(name);
  }

  @Post('login-without-data/:name')
  loginWithoutData(@Session() session: Session, @Param('name') name: string) {
    session.signIn(name, { keep: [] });
  }

  @Post('login-and-back/:name')
  loginAndBack(@Session() session: Session, @Param('name') name: string) {
    session.signIn(name, { keep: [] });
    session.principalName = undefined;
  }

  @Post('assign/:name')
  assign(@Session() session: Session, @Param('name') name: string) {
    session.principalName = name === 'nobody' ? undefined : name;
  }

  @Post('login-and-rename')
  loginAndRename(@Session() session: Session) {
    session.signIn('ann');
    session.principalName = 'anna';
  }

  @Post('login-and-act/:name')
  async loginAndAct(@Session() session: Session, @Param('name') name: string) {
    session.signIn('ann');
    await session.save();
    session.principalName = name;
  }

  @Post('logout')
  logout(@Session() session: Session) {
    session.signOut();
    return { name: session.principalName ?? null };
  }

  @Post('refused/:how')
  async refused(@Session() session: Session, @Param('how') how: string) {
    const name = PRINCIPAL_ATTRIBUTE;
    const calls: Record<string, () => unknown> = {
      set: () => session.setAttribute(name, 'ann'),
      remove: () => session.removeAttribute(name),
      update: () => session.updateAttribute(name, () => 'ann'),
      remember: () => session.signIn('ann', { remember: true }),
      'remember-text': () => session.signIn('ann', { remember: 'false' as never }),
      surrogate: () => session.signIn('x\ud800'),
      'surrogate-principal': () => (session.principalName = 'x\ud800'),
      empty: () => session.signIn(''),
    };
    return { error: await messageOf(calls[how]!) };
  }

  @Post('late-login')
  lateLogin(@Session() session: Session, @Res() reply: RawReply) {
    const response = rawOf(reply);
    response.write(' ');
    void messageOf(() => session.signIn('ann')).then((error) => response.end(JSON.stringify({ error })));
  }

  @Post('late-assign')
  lateAssign(@Session() session: Session, @Res() reply: RawReply) {
    const response = rawOf(reply);
    response.write(' ');
    void messageOf(() => (session.principalName = 'ann')).then((error) => response.end(JSON.stringify({ error })));
  }

  /** Its session gets an id that is stored, and then a user. */
  @Post('rotate-and-assign/:name')
  async rotateAndAssign(@Session() session: Session, @Param('name') name: string) {
    session.changeSessionId();
    await session.save();
    session.principalName = name;
  }

  @Get('me')
  me(@Session() session: Session) {
    const { isNew, principalName, maxInactiveInterval, authenticatedAt } = session;
    const names = session.attributeNames.filter((name) => name !== PRINCIPAL_ATTRIBUTE);
    const attributes = Object.fromEntries(names.map((name) => [name, session.getAttribute(name)]));
    return { isNew, name: principalName ?? null, maxInactiveInterval, attributes, authenticatedAt };
  }
}

async function messageOf(call: () => unknown): Promise<string> {
  try {
    await call();
    return 'none';
  } catch (error) {
    return (error as Error).message;
  }
}

const me = async (agent: HttpAgent, headers: Record<string, string> = {}) =>
  (await agent.get('/me', { headers })).json<Record<string, unknown>>();
const maxAges = ({ setCookies }: HttpResponse) => setCookies.map((each) => /Max-Age=(\d+)/.exec(each)?.[1]);

describe.each(['express', 'fastify'] as const)('on %s', (platform) => {
  let app: SessionApp;
  let clock: ManualClock;
  let store: GatedRepository;

  async function start(session: SessionAppOptions['session'] = {}): Promise<void> {
    clock = new ManualClock(Date.now());
    store = new GatedRepository({ clock, visitorAttributes: session.visitorAttributes });
    app = await startApp({ platform, controllers: [TestController], session, store });
  }

  async function signedIn(name: string): Promise<HttpAgent> {
    const agent = app.agent();
    await agent.post(`/login/${name}`);
    return agent;
  }

  const cookieOf = ({ cookies }: HttpAgent) =>
    Object.entries(cookies)
      .map((pair) => pair.join('='))
      .join();
  const sendWith = (cookies: string[]) => ({ headers: { cookie: cookies.join('; ') } });

  beforeEach(() => {
    hold = new Gate();
  });

  describe('signIn()', () => {
    it('starts a session, or changes the id of the one that there is, in one write', async () => {
      await start();
      const agent = app.agent();
      expect((await agent.post('/login/ann')).setCookies).toHaveLength(1);
      expect(store.calls.splice(0)).toEqual(['create']);
      const before = agent.fork();
      clock.advance(MINUTE / 2);
      const again = await agent.post('/login/bob');
      expect([again.setCookies.length, again.json()]).toEqual([1, { id: expect.any(String), principalName: 'bob' }]);
      expect(store.calls.splice(0)).toEqual(['load', 'update']);
      expect(await me(agent)).toMatchObject({ name: 'bob', authenticatedAt: clock.now() });
      expect(await me(before)).toMatchObject({ isNew: true, name: null });
    });

    it('signs in no user under a planted token, and keeps what the visitor collected', async () => {
      await start();
      const attacker = app.agent();
      await attacker.post('/set/items/apple');
      const victim = attacker.fork();
      await victim.post('/login/victim');
      expect(await me(attacker)).toMatchObject({ isNew: true, name: null });
      expect(await me(victim)).toMatchObject({ name: 'victim', attributes: { items: 'apple' } });
    });

    it('removes what is bound to the visitor: the attributes of the option, and the CSRF token', async () => {
      await start({ visitorAttributes: ['captcha'] });
      const agent = app.agent();
      await agent.post('/set/captcha/known');
      await agent.get('/csrf');
      await agent.post('/set/items/apple');
      expect(Object.keys((await me(agent))['attributes'] as object)).toHaveLength(3);
      await agent.post('/login/ann');
      expect(await me(agent)).toMatchObject({ attributes: { items: 'apple' } });
      expect((await me(agent))['attributes']).toEqual({ items: 'apple' });
    });

    it('with an empty `keep` removes everything', async () => {
      await start();
      const agent = app.agent();
      await agent.post('/set/items/apple');
      await agent.post('/login-without-data/ann');
      expect(await me(agent)).toMatchObject({ name: 'ann', attributes: {} });
    });

    it('that is taken back at once leaves nobody signed in, and nothing of who was before', async () => {
      await start();
      const agent = await signedIn('ann');
      await agent.post('/set/items/apple');
      await agent.post('/login-and-back/bob');
      expect(await me(agent)).toMatchObject({ isNew: false, name: null });
      expect((await me(agent))['attributes']).toEqual({});
    });

    it('is not undone by a request that was held open across it: it plants nothing', async () => {
      await start({ visitorAttributes: ['captcha'] });
      const attacker = app.agent();
      await attacker.post('/set/captcha/known');
      const victim = attacker.fork();
      const late = attacker.post('/late/captcha/planted');
      await hold.reached();
      await victim.post('/login/victim');
      hold.open();
      expect([(await late).status, (await late).setCookies]).toEqual([201, []]);
      expect((await me(victim))['attributes']).toEqual({});
    });

    it('of the same user saves what a request meanwhile has set, but for what is bound to the visitor', async () => {
      await start({ visitorAttributes: ['captcha'] });
      const agent = await signedIn('ann');
      const late = agent.fork().post('/late/captcha/planted');
      await hold.reached();
      await agent.post('/again/ann');
      hold.open();
      expect([(await late).status, (await late).setCookies]).toEqual([201, []]);
      expect((await me(agent))['attributes']).toEqual({ late: 'planted' });
    });

    it('of another user in the same browser keeps nothing of the first, unless `keep` names it', async () => {
      await start();
      const agent = await signedIn('ann');
      await agent.post('/set/roles/admin');
      await agent.post('/again/ann');
      expect((await me(agent))['attributes']).toEqual({ roles: 'admin' });
      await agent.post('/login/bob');
      expect(await me(agent)).toMatchObject({ name: 'bob' });
      expect((await me(agent))['attributes']).toEqual({});
    });

    it('decides anew whether the user is remembered', async () => {
      await start({ timeout: '30m', cookie: { rememberMe: '30d' } });
      const agent = app.agent();
      const remember = { headers: { 'x-remember': 'yes' } };
      expect(maxAges(await agent.post('/login/ann', undefined, remember))).toEqual([`${30 * DAY}`]);
      expect(await me(agent)).toMatchObject({ name: 'ann', maxInactiveInterval: 30 * DAY });
      expect(maxAges(await agent.post('/login/bob'))).toEqual([undefined]);
      expect(await me(agent)).toMatchObject({ name: 'bob', maxInactiveInterval: 1800, attributes: {} });
      clock.advance(30 * MINUTE + 1);
      expect(await me(agent)).toMatchObject({ isNew: true });
      expect(maxAges(await app.agent().post('/login/ann', undefined, remember))).toEqual([`${30 * DAY}`]);
    });

    it('keeps the same user remembered who signs in again without a choice', async () => {
      await start({ timeout: '30m', cookie: { rememberMe: '30d' } });
      const agent = app.agent();
      const remember = { headers: { 'x-remember': 'yes' } };
      await agent.post('/login/ann', undefined, remember);
      expect(maxAges(await agent.post('/again/ann'))).toEqual([`${30 * DAY}`]);
      expect(await me(agent)).toMatchObject({ maxInactiveInterval: 30 * DAY });
      expect(maxAges(await agent.post('/login-without-data/ann'))).toEqual([`${30 * DAY}`]);
    });

    it.each([
      ['another user', 'again/bob'],
      ['the same user without `remember`', 'login/ann'],
    ])('remembers nobody any more after a sign-in of %s', async (_, path) => {
      await start({ timeout: '30m', cookie: { rememberMe: '30d' } });
      const agent = app.agent();
      await agent.post('/login/ann', undefined, { headers: { 'x-remember': 'yes' } });
      expect(maxAges(await agent.post(`/${path}`))).toEqual([undefined]);
      expect(maxAges(await agent.post('/again/ann'))).toEqual([undefined]);
      expect(await me(agent)).toMatchObject({ name: 'ann', maxInactiveInterval: 1800 });
    });

    it('keeps nobody remembered where a session has no principal', async () => {
      await start({ timeout: '30m', cookie: { rememberMe: '30d' } });
      const agent = app.agent();
      await agent.post('/login/ann', undefined, { headers: { 'x-remember': 'yes' } });
      await agent.post('/assign/nobody');
      expect(maxAges(await agent.post('/again/ann'))).toEqual([undefined]);
    });

    it.each([
      ['remember', /set the option `cookie\.rememberMe`/],
      ['set', /is the principal: call session\.signIn\(name\)/],
      ['remove', /is the principal: call session\.signIn\(name\)/],
      ['update', /is the principal: call session\.signIn\(name\)/],
      ['remember-text', /`remember` of signIn\(\) is a boolean, but is of type string: .*ParseBoolPipe/],
      ['surrogate', /well-formed Unicode/],
      ['surrogate-principal', /well-formed Unicode/],
      ['empty', /non-empty string/],
    ])('is the only way in, and says what it refuses: %s', async (how, message) => {
      await start();
      const agent = app.agent();
      await agent.post('/set/items/apple');
      const response = await agent.post(`/refused/${how}`);
      expect([response.json(), response.setCookies]).toEqual([{ error: expect.stringMatching(message) }, []]);
      expect(await me(agent)).toMatchObject({ name: null, attributes: { items: 'apple' } });
    });

    it('is refused after the headers were sent', async () => {
      await start();
      const agent = app.agent();
      expect((await agent.post('/late-login')).json()).toEqual({ error: expect.stringContaining('headers') });
      await agent.post('/set/items/apple');
      const late = (await agent.post('/late-login')).json();
      expect(late).toEqual({ error: expect.stringContaining('signIn() or changeSessionId() before the first byte') });
      expect(await me(agent)).toMatchObject({ name: null });
    });
  });

  describe('principalName', () => {
    it('changes the id with the principal, so that a planted token is invalid', async () => {
      await start();
      const attacker = app.agent();
      await attacker.post('/set/items/apple');
      const victim = attacker.fork();
      expect((await victim.post('/assign/victim')).setCookies).toHaveLength(1);
      expect(await me(attacker)).toMatchObject({ isNew: true, name: null });
      expect(await me(victim)).toMatchObject({ name: 'victim', attributes: { items: 'apple' } });
      expect((await victim.post('/assign/victim')).setCookies).toEqual([]);
      expect((await victim.post('/assign/nobody')).setCookies).toHaveLength(1);
      expect(await me(victim)).toMatchObject({ isNew: false, name: null });
    });

    it('is refused after the headers were sent', async () => {
      await start();
      const agent = app.agent();
      await agent.post('/set/items/apple');
      expect((await agent.post('/late-assign')).json()).toEqual({ error: expect.stringContaining('headers') });
      expect(await me(agent)).toMatchObject({ isNew: false, name: null });
    });

    it('lets no request held open across it write, also where the id has changed and was saved before', async () => {
      await start();
      const attacker = app.agent();
      await attacker.post('/set/items/apple');
      const victim = attacker.fork();
      const late = attacker.post('/late/items/planted');
      await hold.reached();
      await victim.post('/rotate-and-assign/victim');
      hold.open();
      expect([(await late).status, (await late).setCookies]).toEqual([201, []]);
      expect(await me(victim)).toMatchObject({ name: 'victim' });
      expect((await me(victim))['attributes']).toEqual({ items: 'apple' });
    });

    it('may be changed right after a sign-in', async () => {
      await start({ visitorAttributes: ['captcha'] });
      const agent = app.agent();
      await agent.post('/set/captcha/known');
      await agent.post('/login-and-rename');
      expect(await me(agent)).toMatchObject({ name: 'anna', authenticatedAt: clock.now(), attributes: {} });
    });

    it('takes over no sign-in of another principal', async () => {
      await start();
      const agent = await signedIn('ann');
      await agent.post('/assign/ann');
      expect(await me(agent)).toHaveProperty('authenticatedAt');
      await agent.post('/assign/bob');
      expect(await me(agent)).toMatchObject({ name: 'bob' });
      expect(await me(agent)).not.toHaveProperty('authenticatedAt');
      await agent.post('/login-and-act/customer');
      expect(await me(agent)).toMatchObject({ name: 'customer' });
      expect(await me(agent)).not.toHaveProperty('authenticatedAt');
    });
  });

  describe('signOut()', () => {
    it('ends every session that the request presented, and expires the cookie', async () => {
      await start();
      const [one, two, visitor] = [await signedIn('ann'), await signedIn('ann'), app.agent()];
      await visitor.post('/set/items/apple');
      const all = [visitor, one, two].map(cookieOf);
      const response = await app.agent().post('/logout', undefined, sendWith(all));
      expect(response.json()).toEqual({ name: null });
      expect(response.setCookies).toEqual([expect.stringMatching(/^SESSION=; Max-Age=0;/)]);
      for (const each of [one, two, visitor]) expect(await me(each)).toMatchObject({ isNew: true, name: null });
    });

    it('ends both the session of a header and the session of the cookie', async () => {
      const resolvers = [new CookieSessionIdResolver(), HeaderSessionIdResolver.xAuthToken()];
      await start({ sessionIdResolver: new CompositeSessionIdResolver(...resolvers) });
      const [attacker, victim] = [await signedIn('attacker'), await signedIn('victim')];
      const headers = { cookie: cookieOf(attacker), 'x-auth-token': victim.cookie('SESSION')! };
      await app.agent().post('/logout', undefined, { headers });
      expect(await me(app.agent(), { 'x-auth-token': headers['x-auth-token'] })).toMatchObject({ isNew: true });
      expect(await me(attacker)).toMatchObject({ isNew: true });
    });

    it('can be repeated after a failure of the store', async () => {
      await start();
      const [one, two] = [await signedIn('ann'), await signedIn('ann')];
      const both = sendWith([one, two].map(cookieOf));
      store.break('delete');
      const failed = await app.agent().post('/logout', undefined, both);
      expect([failed.status, failed.setCookies]).toEqual([503, []]);
      store.repair();
      const repeated = await app.agent().post('/logout', undefined, both);
      expect([repeated.status, repeated.setCookies.length]).toEqual([201, 1]);
      for (const each of [one, two]) expect(await me(each)).toMatchObject({ isNew: true });
    });

    it('leaves the sessions of other aliases', async () => {
      await start({ multipleSessions: true });
      const agent = app.agent();
      await agent.post('/login/ann');
      await agent.post('/login/bob?_s=1');
      const response = await agent.post('/logout?_s=1');
      expect(response.setCookies).toEqual([expect.stringMatching(/^SESSION\.1=; Max-Age=0;/)]);
      expect(await me(agent)).toMatchObject({ name: 'ann' });
    });

    it('of a visitor without a session does nothing', async () => {
      await start();
      const response = await app.agent().post('/logout');
      expect([response.status, response.setCookies, store.calls]).toEqual([201, [], []]);
    });
  });

  describe('of several sessions in one request', () => {
    it('one of a principal counts before one of a visitor', async () => {
      await start();
      const [visitor, ann] = [app.agent(), await signedIn('ann')];
      await visitor.post('/set/items/apple');
      const response = await app.agent().get('/me', sendWith([cookieOf(visitor), cookieOf(ann)]));
      expect(response.json()).toMatchObject({ name: 'ann', attributes: {} });
      const two = app.agent();
      await two.post('/set/items/pear');
      const first = await app.agent().get('/me', sendWith([cookieOf(visitor), cookieOf(two)]));
      expect(first.json()).toMatchObject({ attributes: { items: 'apple' } });
    });

    it('the first principal counts, and the log says so once', async () => {
      await start();
      const [ann, bob, again] = [await signedIn('ann'), await signedIn('bob'), await signedIn('ann')];
      await app.agent().get('/me', sendWith([cookieOf(ann), cookieOf(again)]));
      expect(app.log.matching(/two principals/)).toEqual([]);
      for (let i = 0; i < 2; i++) {
        const response = await app.agent().get('/me', sendWith([cookieOf(bob), cookieOf(ann)]));
        expect(response.json()).toMatchObject({ name: 'bob' });
      }
      expect(app.log.matching(/two principals.*`security: 'strict'`/)).toHaveLength(1);
    });

    /** Cookies of unknown tokens, with which somebody fills the request. */
    const junk = (count: number, name = 'SESSION') =>
      Array.from({ length: count }, () => `${name}=${generateSessionKey().token.reveal()}`);

    it('the one that counts is signed out with all others, however many cookies there are', async () => {
      await start();
      const [ann, bob] = [await signedIn('ann'), await signedIn('bob')];
      const all = sendWith([...junk(4), cookieOf(ann), ...junk(20), cookieOf(bob)]);
      expect((await app.agent().get('/me', all)).json()).toMatchObject({ name: 'ann' });
      await app.agent().post('/logout', undefined, all);
      expect((await app.agent().get('/me', all)).json()).toMatchObject({ name: null });
      expect(await me(bob)).toMatchObject({ name: null });
    });

    it('two principals are refused with 409 in strict mode, however many cookies there are', async () => {
      await start({ security: 'strict' });
      const [ann, bob] = [await signedIn('ann'), await signedIn('bob')];
      const all = sendWith([cookieOf(bob), ...junk(20, '__Host-SESSION'), cookieOf(ann)]);
      expect((await app.agent().get('/me', all)).status).toBe(409);
    });

    it('two principals are refused with 409 in strict mode, where the session is used', async () => {
      await start({ security: 'strict' });
      const [ann, bob] = [await signedIn('ann'), await signedIn('bob')];
      const both = sendWith([cookieOf(bob), cookieOf(ann)]);
      for (const path of ['/me', '/csrf', '/offline']) {
        expect((await app.agent().get(path, both)).status).toBe(409);
      }
      const logout = await app.agent().post('/logout', undefined, both);
      expect([logout.status, logout.setCookies]).toEqual([409, []]);
      expect((await app.agent().get('/not-found', both)).status).toBe(404);
      expect(await me(ann)).toMatchObject({ name: 'ann' });
      const [said, ...others] = app.log.matching(/two principals/);
      expect(said).toMatch('409');
      expect(said).not.toMatch(/the first counted|`security: 'strict'`/);
      expect(others).toEqual([]);
    });
  });
});

it('outside of a request, a session is created, signed in, renamed and ended', async () => {
  const clock = new ManualClock(Date.now());
  const sessions = new GatedRepository({ clock });
  const session = sessions.createSession();
  session.signIn('kiosk');
  expect(await session.save()).toBe('saved');
  expect(session.authenticatedAt).toBe(clock.now());
  const { id } = session;
  clock.advance(MINUTE);
  session.signIn('kiosk');
  await session.save();
  expect([await sessions.findById(id), session.authenticatedAt]).toEqual([null, clock.now()]);
  const job = (await sessions.findById(session.id))!;
  job.principalName = 'renamed';
  await job.save();
  expect([job.id, job.authenticatedAt]).toEqual([session.id, clock.now()]);
  expect(() => job.signIn('ann', { remember: true })).toThrow('only in an HTTP request');
  job.signOut();
  await job.save();
  expect(await sessions.findById(session.id)).toBeNull();
});
