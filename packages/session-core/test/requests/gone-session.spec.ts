import type { ServerResponse } from 'node:http';
import { ConflictException, Controller, Get, Param, Post, Req, Res } from '@nestjs/common';
import { Gate, LeakGuard } from '@nest-session/test-infrastructure';
import { eventually, type HttpAgent, ManualClock, sessionOf } from '@nest-session/testing';
import { Session, type SessionEvent, SessionGoneError, SessionRepository } from '../../src/index.js';
import type { MapSessionRepositoryOptions } from '../../src/internal.js';
import { GatedRepository } from '../support/gated.repository.js';
import { closeApps, type SessionApp, startApp } from '../support/session.app.js';

LeakGuard.install();
afterEach(closeApps);

/** The gate at which handlers wait, and how many do. */
let hold: Gate;
let waiting = 0;

async function pass(): Promise<void> {
  waiting++;
  await hold.pass();
  waiting--;
}

const CONFLICT = {
  statusCode: 409,
  message: 'The session has ended or changed in the meantime: repeat the request',
  error: 'Conflict',
  reason: 'session-gone',
};

@Controller()
class GoneController {
  constructor(private readonly sessions: SessionRepository) {}

  @Post('start')
  start(@Session() session: Session) {
    session.setAttribute('a', 1);
  }

  @Post('rotate')
  rotate(@Session() session: Session) {
    session.changeSessionId();
  }

  @Post('login')
  login(@Session() session: Session) {
    session.signIn('ann');
    return { ok: true };
  }

  @Post('login-saved')
  async loginSaved(@Session() session: Session) {
    session.signIn('ann');
    await session.save();
    return { ok: true };
  }

  @Post('login-by-response')
  loginByResponse(@Session() session: Session, @Res() response: ServerResponse & { raw?: ServerResponse }) {
    session.signIn('ann');
    (response.raw ?? response).end('ok');
  }

  @Post('login-as/:name')
  loginAs(@Session() session: Session, @Param('name') name: string) {
    session.signIn(name);
  }

  @Post('login-held')
  async loginHeld(@Session() session: Session) {
    await pass();
    session.signIn('ann');
  }

  @Post('login-counted')
  async loginCounted(@Session() session: Session) {
    await pass();
    await session.updateAttribute<number>('tries', (tries = 0) => tries + 1);
    session.signIn('ann');
  }

  @Post('assign')
  assign(@Session() session: Session) {
    session.principalName = 'ann';
  }

  /** Signs out, and keeps the session. */
  @Post('leave')
  leave(@Session() session: Session) {
    session.principalName = undefined;
  }

  @Post(['logout', 'invalidate', 'zero', 'held/:how'])
  async end(@Session() session: Session, @Req() { url }: { url: string }) {
    if (url.startsWith('/held/')) await pass();
    if (url.endsWith('logout')) session.signOut();
    else if (url.endsWith('invalidate')) session.invalidate();
    else session.maxInactiveInterval = 0;
  }

  @Post('logout-of-its-own')
  async logoutOfItsOwn(@Session() session: Session) {
    session.signOut();
    const error: unknown = await session.save().catch((each: unknown) => each);
    return { isTyped: error instanceof SessionGoneError };
  }

  /** Its session ends while the handler runs. */
  @Post('ended/:then')
  async ended(@Session() session: Session, @Param('then') then: string) {
    await this.sessions.deleteById(session.id);
    const before = session.isGone;
    if (then === 'set') session.setAttribute('a', 2);
    if (then === 'sign-in') session.signIn('ann');
    if (then === 'update-and-sign-in') {
      await session.updateAttribute('a', () => 2);
      session.signIn('ann');
    }
    if (then === 'sign-in-and-update') {
      session.signIn('ann');
      await session.updateAttribute('a', () => 2);
    }
    if (then === 'set') return { before, outcome: await session.save(), after: session.isGone };
    if (then === 'sign-in-of-its-own') {
      session.signIn('ann');
      const error: unknown = await session.save().catch((each: unknown) => each);
      const isTyped = error instanceof SessionGoneError && error instanceof ConflictException;
      return { isTyped, isGone: session.isGone };
    }
    return { ok: true };
  }

  @Get('me')
  me(@Session() session: Session) {
    return { name: session.principalName ?? null, isGone: session.isGone, a: session.getAttribute('a') ?? null };
  }
}

describe.each(['express', 'fastify'] as const)('on %s,', (platform) => {
  let app: SessionApp;
  let clock: ManualClock;
  beforeEach(() => start());

  async function start(options: MapSessionRepositoryOptions = {}): Promise<void> {
    clock = new ManualClock(Date.now());
    const store = new GatedRepository({ clock, ...options });
    app = await startApp({ platform, controllers: [GoneController], store });
  }

  /** A visitor with a session, who has clicked twice: both requests have loaded it, and wait. */
  async function clickedTwice(path: string, rounds = 2): Promise<HttpAgent[]> {
    const visitor = app.agent();
    await visitor.post('/start');
    hold = new Gate();
    const tabs = Array.from({ length: rounds }, () => visitor.fork());
    const responses = tabs.map((tab) => tab.post(path));
    await hold.reached();
    await eventually(() => expect(waiting).toBe(rounds));
    hold.open();
    for (const response of await Promise.all(responses)) expect(response.status).toBe(201);
    return tabs;
  }

  /** A client with the token of a session that has just got another one, as somebody may have planted it (L13). */
  async function withReplacedToken(): Promise<HttpAgent> {
    const attacker = app.agent();
    await attacker.post('/start');
    const victim = attacker.fork();
    await attacker.post('/rotate');
    return victim;
  }

  it.each(['start', 'assign'])(
    'a token that was just replaced makes POST /%s a 409 without a cookie, never a silent 201',
    async (route) => {
      const victim = await withReplacedToken();
      const response = await victim.post(`/${route}`);
      expect(response.status).toBe(409);
      expect(response.json()).toEqual(CONFLICT);
      expect(response.setCookies).toEqual([]);
      expect((await victim.get('/me')).json()).toEqual({ name: null, isGone: false, a: null });
      expect(app.log.lines).toEqual([]);
    },
  );

  it.each(['login', 'login-saved', 'login-by-response'])(
    'a token that was just replaced keeps nobody from signing in by POST /%s, with a token of their own',
    async (route) => {
      const victim = await withReplacedToken();
      const planted = victim.cookie('SESSION');
      const response = await victim.post(`/${route}`);
      expect([response.status, response.setCookies.length]).toEqual([201, 1]);
      expect(victim.cookie('SESSION')).not.toBe(planted);
      expect((await victim.get('/me')).json()).toMatchObject({ name: 'ann', a: null });
      expect(app.log.lines).toEqual([]);
    },
  );

  it.each([0, 1, 10, 50, 59, 61])('a login whose response was lost is repeated with success after %d s', async (s) => {
    const visitor = app.agent();
    await visitor.post('/start');
    await visitor.fork().post('/login');
    clock.advance(s * 1000);
    expect((await visitor.post('/login')).status).toBe(201);
    expect((await visitor.get('/me')).json()).toMatchObject({ name: 'ann' });
  });

  it('each of several logins of a visitor who clicks twice signs in, with what the visitor has', async () => {
    const tabs = await clickedTwice('/login-held', 3);
    const tokens = new Set(tabs.map((tab) => tab.cookie('SESSION')));
    expect(tokens.size).toBe(3);
    for (const tab of tabs) expect((await tab.get('/me')).json()).toEqual({ name: 'ann', isGone: false, a: 1 });
  });

  it('a login signs in although an update before it has found the session rotated', async () => {
    const tabs = await clickedTwice('/login-counted');
    for (const tab of tabs) expect((await tab.get('/me')).json()).toMatchObject({ name: 'ann' });
  });

  it('of two logins at once, the later one leaves a single session where a user may have one', async () => {
    const events: string[] = [];
    const dispatch = async ({ type }: SessionEvent) => void events.push(type);
    await start({
      maxSessions: { perPrincipal: 1, whenReached: 'end-oldest' },
      dispatcher: { dispatch, broadcast: async () => {} },
    });
    const tabs = await clickedTwice('/login-held');
    const names = new Set<string | null>();
    for (const tab of tabs) names.add((await tab.get('/me')).json<{ name: string | null }>().name);
    expect(names).toEqual(new Set(['ann', null]));
    expect(await app.store.findByPrincipalName('ann')).toHaveLength(1);
    expect(events.toSorted()).toEqual(['created', 'created', 'deleted', 'id-changed', 'signed-in', 'signed-in']);
  });

  it('a login of a signed-in user that lost against another one is a 409, and signs nobody in', async () => {
    const ann = app.agent();
    await ann.post('/login');
    hold = new Gate();
    const tab = ann.fork();
    const late = tab.post('/login-held');
    await hold.reached();
    await ann.post('/login');
    hold.open();
    expect([(await late).status, (await late).json(), (await late).setCookies]).toEqual([409, CONFLICT, []]);
    expect((await ann.get('/me')).json()).toMatchObject({ name: 'ann' });
  });

  it('a sign-in that lost can be answered by the application', async () => {
    const client = app.agent();
    await client.post('/start');
    const response = await client.post('/ended/sign-in-of-its-own');
    expect([response.status, response.json()]).toEqual([201, { isTyped: true, isGone: true }]);
  });

  it.each(['logout', 'invalidate', 'zero'])(
    'a token that was just replaced ends by POST /%s what it opened',
    async (how) => {
      const ann = app.agent();
      await ann.post('/login');
      const old = ann.fork();
      await ann.post('/login');
      expect((await old.post(`/${how}`)).status).toBe(201);
      expect((await ann.get('/me')).json()).toMatchObject({ name: null });
      // It has ended: there is nothing to refuse.
      expect((await old.post(`/${how}`)).status).toBe(201);
    },
  );

  it.each(['logout', 'invalidate', 'zero'])(
    'a token from before a login that ends nothing by POST /%s is a 409, and leaves the login',
    async (how) => {
      const [visitor, ann] = [app.agent(), app.agent()];
      await visitor.post('/start');
      await ann.post('/login-as/bob');
      for (const agent of [visitor, ann]) {
        const old = agent.fork();
        hold = new Gate();
        const held = agent.fork().post(`/held/${how}`);
        await hold.reached();
        await agent.post('/login');
        hold.open();
        for (const response of [await old.post(`/${how}`), await held]) {
          expect([response.status, response.json(), response.setCookies]).toEqual([409, CONFLICT, []]);
        }
        expect((await agent.get('/me')).json()).toMatchObject({ name: 'ann' });
      }
    },
  );

  it('a request that began before a logout may start a session, unless somebody has signed in since', async () => {
    const ann = app.agent();
    await ann.post('/login');
    const old = ann.fork();
    await ann.post('/leave');
    expect((await old.fork().post('/logout')).status).toBe(201);
    expect((await old.fork().post('/start')).setCookies).toHaveLength(1);
    await ann.post('/login');
    const late = await old.post('/start');
    expect([late.status, late.json(), late.setCookies]).toEqual([409, CONFLICT, []]);
    expect((await ann.get('/me')).json()).toMatchObject({ name: 'ann' });
  });

  it('a logout that ended nothing can be answered by the application', async () => {
    const visitor = app.agent();
    await visitor.post('/start');
    const old = visitor.fork();
    await visitor.post('/login');
    const response = await old.post('/logout-of-its-own');
    expect([response.status, response.json(), response.setCookies]).toEqual([201, { isTyped: true }, []]);
  });

  it('a token of a session that has ended does not stop a sign-in', async () => {
    const victim = app.agent();
    await victim.post('/start');
    await app.store.deleteById((await sessionOf(app.app, victim))!.id);
    expect((await victim.post('/login')).status).toBe(201);
    expect((await victim.get('/me')).json()).toEqual({ name: 'ann', isGone: false, a: null });
  });

  it.each(['sign-in', 'update-and-sign-in', 'sign-in-and-update'])(
    'a %s into a session that has ended meanwhile is a 409, and nobody is signed in',
    async (then) => {
      const client = app.agent();
      await client.post('/start');
      const response = await client.post(`/ended/${then}`);
      expect([response.status, response.json(), response.setCookies]).toEqual([409, CONFLICT, []]);
      expect((await client.get('/me')).json()).toEqual({ name: null, isGone: false, a: null });
    },
  );

  it('a save of an attribute that finds its session gone leaves the response, and isGone tells', async () => {
    const client = app.agent();
    await client.post('/start');
    const response = await client.post('/ended/set');
    expect(response.status).toBe(201);
    expect(response.json()).toEqual({ before: false, outcome: 'gone', after: true });
  });
});
