import { ServerResponse } from 'node:http';
import { Controller, Get, Inject, Param, Post } from '@nestjs/common';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { type HttpAgent, type HttpResponse, ManualClock } from '@nest-session/testing';
import { resolveSessionOptions } from '../../src/configuration/session.options.js';
import {
  Authenticated,
  CookieSessionIdResolver,
  Public,
  RecentlyAuthenticated,
  Session,
  type SessionModuleOptions,
  Sessions,
  sessionTokenOf,
} from '../../src/index.js';
import { generateSessionKey } from '../../src/internal.js';
import { type ResolvedSessionOptions, SESSION_OPTIONS } from '../../src/store.js';
import { GatedRepository } from '../support/gated.repository.js';
import { requestWith } from '../support/node.request.js';
import { closeApps, type SessionApp, startApp } from '../support/session.app.js';
import { SIGNING_KEYS } from '../support/signing.keys.js';

// What OWASP ASVS 5.0 asks of a session library, where docs/evidence/asvs.md names no other test. In strict mode, with
// its defaults.

LeakGuard.install();
afterEach(closeApps);

const NAME = '__Host-SESSION';
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

@Controller()
@Authenticated()
class AccountController {
  constructor(@Inject(Sessions) private readonly sessions: Sessions) {}

  @Get()
  @Public()
  home() {
    return { is: 'open' };
  }

  @Post('cart')
  @Public()
  addToCart(@Session() session: Session) {
    session.setAttribute('cart', 1);
    return { id: session.id };
  }

  @Post('sign-in/:name')
  @Public()
  signIn(@Session() session: Session, @Param('name') name: string) {
    session.signIn(name);
    return { id: session.id };
  }

  @Post('remember/:duration')
  @Public()
  remember(@Session() session: Session, @Param('duration') duration: string) {
    session.signIn('ann', { remember: true });
    session.absoluteTimeout = duration;
  }

  /** By an identity provider that bounds the session itself. */
  @Post('sign-in-until/:duration')
  @Public()
  signInUntil(@Session() session: Session, @Param('duration') duration: string) {
    session.signIn('ann');
    session.absoluteTimeout = duration;
  }

  @Get('me')
  me(@Session() session: Session) {
    return { id: session.id, name: session.principalName };
  }

  @Get('broken')
  broken(@Session() session: Session) {
    throw new Error(`Nothing works in ${session.id}`);
  }

  @Post('sign-out')
  signOut(@Session() session: Session) {
    session.signOut();
  }

  @Get('sessions')
  async list(@Session() session: Session) {
    const infos = [];
    for await (const info of this.sessions.ofPrincipal(session.principalName!)) infos.push(info);
    return infos;
  }

  @Post('sessions/:id/end')
  @RecentlyAuthenticated('5m')
  async end(@Session() session: Session, @Param('id') id: string) {
    return { ended: await this.sessions.end(id, { of: session.principalName! }) };
  }
}

describe.each(['express', 'fastify'] as const)('an application in strict mode, on %s,', (platform) => {
  let app: SessionApp;
  let clock: ManualClock;
  let store: GatedRepository;

  beforeEach(() => start());

  async function start(options: SessionModuleOptions = {}): Promise<void> {
    const session = { ...options, security: 'strict' } as const;
    clock = new ManualClock(Date.now());
    store = new GatedRepository({ ...resolveSessionOptions(session), clock });
    app = await startApp({ platform, controllers: [AccountController], session, store });
  }

  async function signedIn(name: string): Promise<HttpAgent> {
    const agent = app.agent();
    expect((await agent.post(`/sign-in/${name}`)).status).toBe(201);
    return agent;
  }

  const withToken = (token: string | undefined) => ({ headers: { cookie: `${NAME}=${token}` } });
  /** The status of a page for users, with a token that is presented whatever the browser has kept. */
  const statusWith = async (token: string | undefined) => (await app.agent().get('/me', withToken(token))).status;

  it('tells the lifetimes that are in effect', () => {
    const { timeout, anonymousTimeout, absoluteTimeout } = app.app.get<ResolvedSessionOptions>(SESSION_OPTIONS);
    expect([timeout, anonymousTimeout, absoluteTimeout]).toEqual([1800, 600, 43_200]);
  });

  it('accepts no token that it has not issued, and asks its store, not the client, who is signed in', async () => {
    const { token } = generateSessionKey();
    expect(await statusWith(token.reveal())).toBe(401);
    const forged = { headers: { cookie: `${NAME}=${token.reveal()}; name=ann`, 'x-auth-token': token.reveal() } };
    expect((await app.agent().get(`/me?${NAME}=${token.reveal()}&name=ann`, forged)).status).toBe(401);
  });

  it('issues a new token at each sign-in, also at a repeated one, and ends the one before', async () => {
    const agent = app.agent();
    const tokens = [];
    for (const path of ['/cart', '/sign-in/ann', '/sign-in/ann', '/sign-in/bob']) {
      await agent.post(path);
      tokens.push(agent.cookie(NAME));
    }
    expect(new Set(tokens).size).toBe(4);
    expect(await Promise.all(tokens.map(statusWith))).toEqual([401, 401, 401, 200]);
  });

  it('ends a session that nobody uses for 30 minutes', async () => {
    const ann = await signedIn('ann');
    clock.advance(30 * MINUTE - 1);
    expect(await statusWith(ann.cookie(NAME))).toBe(200);
    clock.advance(30 * MINUTE);
    expect(await statusWith(ann.cookie(NAME))).toBe(401);
  });

  it('ends a session 12 hours after the sign-in, although it is used all the time', async () => {
    const ann = await signedIn('ann');
    const token = ann.cookie(NAME);
    for (let passed = 0; passed < 12 * HOUR; passed += 20 * MINUTE) {
      expect(await statusWith(token)).toBe(200);
      clock.advance(20 * MINUTE);
    }
    expect(await statusWith(token)).toBe(401);
  });

  it('lets nobody use a session after it was signed out, whatever the browser has kept', async () => {
    const ann = await signedIn('ann');
    const token = ann.cookie(NAME);
    const response = await ann.post('/sign-out');
    expect(response.setCookies).toEqual([expect.stringMatching(`^${NAME}=; Max-Age=0; `)]);
    expect([ann.cookie(NAME), await statusWith(token)]).toEqual([undefined, 401]);
  });

  it('ends all sessions of an account that was disabled', async () => {
    const [phone, laptop, bob] = [await signedIn('ann'), await signedIn('ann'), await signedIn('bob')];
    expect(await app.app.get(Sessions).endAll('ann')).toBe(2);
    const tokens = [phone, laptop, bob].map((agent) => agent.cookie(NAME));
    expect(await Promise.all(tokens.map(statusWith))).toEqual([401, 401, 200]);
  });

  it('ends the sessions of all users when an administrator asks for it', async () => {
    const tokens = [await signedIn('ann'), await signedIn('bob')].map((agent) => agent.cookie(NAME));
    clock.advance(1);
    await app.app.get(Sessions).endEverySession();
    expect(await Promise.all(tokens.map(statusWith))).toEqual([401, 401]);
  });

  it('shows users their sessions, and lets them end one after they have signed in again', async () => {
    const [phone, laptop, bob] = [await signedIn('ann'), await signedIn('ann'), await signedIn('bob')];
    const { id } = (await phone.get('/me')).json<{ id: string }>();
    const listed = (await laptop.get('/sessions')).json<{ id: string }[]>();
    expect(listed.map((info) => info.id)).toContain(id);
    // What a list shows opens nothing.
    expect(await statusWith(id)).toBe(401);
    expect((await bob.post(`/sessions/${id}/end`)).json()).toEqual({ ended: false });
    clock.advance(6 * MINUTE);
    expect((await laptop.post(`/sessions/${id}/end`)).status).toBe(401);
    await laptop.post('/sign-in/ann');
    expect((await laptop.post(`/sessions/${id}/end`)).json()).toEqual({ ended: true });
    expect(await statusWith(phone.cookie(NAME))).toBe(401);
  });

  it('gives a session the lifetime that an identity provider states', async () => {
    const ann = app.agent();
    await ann.post('/sign-in-until/10m');
    clock.advance(10 * MINUTE - 1);
    expect(await statusWith(ann.cookie(NAME))).toBe(200);
    clock.advance(1);
    expect(await statusWith(ann.cookie(NAME))).toBe(401);
  });

  it('remembers a user for as long as the application states', async () => {
    await start({ cookie: { rememberMe: '30d' } });
    const ann = app.agent();
    const { setCookies } = await ann.post('/remember/30d');
    expect(setCookies).toEqual([expect.stringContaining('; Max-Age=2592000; ')]);
    for (let days = 0; days < 30; days += 15) {
      expect(await statusWith(ann.cookie(NAME))).toBe(200);
      clock.advance(15 * 24 * HOUR);
    }
    expect(await statusWith(ann.cookie(NAME))).toBe(401);
  });

  it('creates no session for a visit, only where the application stores something', async () => {
    const visitor = app.agent();
    expect((await visitor.get('/')).setCookies).toEqual([]);
    expect((await visitor.get('/me')).setCookies).toEqual([]);
    expect(store.calls).toEqual([]);
    expect((await visitor.post('/cart')).setCookies).toHaveLength(1);
  });

  it('sets a cookie that is Secure, HttpOnly, of one host and with a stated SameSite', async () => {
    const { setCookies } = await app.agent().post('/sign-in/ann');
    expect(setCookies).toEqual([
      expect.stringMatching(/^__Host-SESSION=[\w-]{43}; Path=\/; HttpOnly; Secure; SameSite=Lax$/),
    ]);
  });

  it('sends a token in Set-Cookie and nowhere else', async () => {
    const agent = app.agent();
    const responses: HttpResponse[] = [];
    const tokens = new Set<string>();
    for (const path of ['/cart', '/sign-in/ann', '/sign-in/ann', '/broken', '/sessions', '/me', '/nowhere']) {
      responses.push(await (/cart|sign/.test(path) ? agent.post(path) : agent.get(path)));
      tokens.add(agent.cookie(NAME)!);
    }
    expect(responses.map(({ status }) => status)).toEqual([201, 201, 201, 500, 200, 200, 404]);
    expect(tokens.size).toBe(3);
    for (const { headers, text } of responses) {
      const { 'set-cookie': _, ...others } = headers;
      for (const token of tokens) expect(JSON.stringify(others) + text).not.toContain(token);
    }
  });

  it('reads a token from the cookie alone, never from a URL, a body or another header', async () => {
    const token = (await signedIn('ann')).cookie(NAME);
    expect(await statusWith(token)).toBe(200);
    for (const name of ['SESSION', NAME, 'sid', 'token', 'authorization']) {
      const elsewhere = { headers: { [name]: token }, body: { [name]: token } };
      const { status } = await app.agent().request('POST', `/sign-out?${name}=${token}`, elsewhere);
      expect({ name, status }).toEqual({ name, status: 401 });
    }
    expect(await statusWith(token)).toBe(200);
  });
});

it('the name and the value of the longest cookie, signed, have no more than 4096 bytes', () => {
  const name = '__Host-'.padEnd(3840, 'a');
  const resolver = new CookieSessionIdResolver({ name, signingKeys: SIGNING_KEYS }, 'strict');
  const response = new ServerResponse(requestWith());
  resolver.send(requestWith(), response, sessionTokenOf('a'.repeat(128))!, { isRemembered: false });
  const [pair = ''] = String(response.getHeader('Set-Cookie')).split(';');
  expect(pair.length - '='.length).toBeLessThanOrEqual(4096);
  expect(pair.length).toBeGreaterThan(4000);
  expect(() => new CookieSessionIdResolver({ name: `${name}a` }, 'strict')).toThrow('is too long for browsers');
});
