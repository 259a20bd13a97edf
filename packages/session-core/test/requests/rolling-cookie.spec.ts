import { Controller, Get, Param, Post, Res } from '@nestjs/common';
import { Gate, LeakGuard } from '@nest-session/test-infrastructure';
import { type HttpAgent, type HttpResponse, ManualClock } from '@nest-session/testing';
import {
  CompositeSessionIdResolver,
  CookieSessionIdResolver,
  HeaderSessionIdResolver,
  KeepSessionIdle,
  RememberMe,
  Session,
  SessionStateError,
} from '../../src/index.js';
import { generateSessionKey } from '../../src/internal.js';
import { GatedRepository, STORE_FAILURE } from '../support/gated.repository.js';
import { type RawReply, rawOf } from '../support/raw.response.js';
import { closeApps, type SessionApp, type SessionAppOptions, startApp } from '../support/session.app.js';

LeakGuard.install();

const MINUTE = 60_000;
const DAY = 24 * 60 * 60;

/** The gate at which a handler waits. */
let hold: Gate;

@Controller()
class TestController {
  constructor(private readonly rememberMe: RememberMe) {}

  @Post('set/:value')
  set(@Session() session: Session, @Param('value') value: string) {
    session.setAttribute('value', value);
  }

  @Get('value')
  value(@Session() session: Session) {
    return { value: session.getAttribute('value'), interval: session.maxInactiveInterval };
  }

  @Post('timeout/:seconds')
  async timeout(@Session() session: Session, @Param('seconds') seconds: string) {
    session.maxInactiveInterval = Number(seconds);
    await session.save();
  }

  @Post('idle/timeout/:seconds')
  @KeepSessionIdle()
  idleTimeout(@Session() session: Session, @Param('seconds') seconds: string) {
    session.maxInactiveInterval = Number(seconds);
  }

  @Get('plain')
  plain() {
    return 'no session here';
  }

  @Get('idle')
  @KeepSessionIdle()
  idle() {
    return 'no access';
  }

  @Get('held')
  async held() {
    await hold.pass();
  }

  @Post('held/:value')
  async heldSet(@Session() session: Session, @Param('value') value: string) {
    session.setAttribute('value', value);
    await hold.pass();
  }

  @Post('login')
  login(@Session() session: Session) {
    session.principalName = 'ann';
    session.changeSessionId();
  }

  @Post('logout')
  logout(@Session() session: Session) {
    session.invalidate();
  }

  @Post('remember')
  remember(@Session() session: Session) {
    session.principalName = 'ann';
    this.rememberMe.remember(session);
  }

  @Post('forget')
  forget(@Session() session: Session) {
    this.rememberMe.forget(session);
  }

  @Post('remember/refused')
  refused(@Session() session: Session) {
    return refusalOf(() => this.rememberMe.remember(session));
  }

  @Post('late/:call')
  late(@Session() session: Session, @Param('call') call: 'remember' | 'forget', @Res() reply: RawReply) {
    const response = rawOf(reply);
    response.write(' ');
    response.end(JSON.stringify(refusalOf(() => this.rememberMe[call](session))));
  }
}

function refusalOf(call: () => void): object {
  try {
    call();
    return { isStateError: false };
  } catch (error) {
    return { isStateError: error instanceof SessionStateError, message: (error as Error).message };
  }
}

describe.each(['express', 'fastify'] as const)('on %s', (platform) => {
  let app: SessionApp;
  let clock: ManualClock;
  let agent: HttpAgent;
  beforeEach(() => {
    clock = new ManualClock(Date.now());
    hold = new Gate();
  });
  afterEach(closeApps);

  async function start(session: SessionAppOptions['session'], timeout?: number): Promise<void> {
    const store = new GatedRepository({ clock, timeout });
    app = await startApp({ platform, controllers: [TestController], session, store });
    agent = app.agent();
  }

  function calls(): readonly string[] {
    return app.store.calls.splice(0);
  }

  describe('a cookie with Max-Age', () => {
    beforeEach(async () => {
      await start({ cookie: { maxAge: '1h' } });
      expect((await agent.post('/set/a')).setCookies).toEqual([
        expect.stringMatching(/^SESSION=[\w-]{43}; Max-Age=3600;/),
      ]);
      calls();
    });

    it('is sent again when the session is renewed, with the same token, and not before', async () => {
      const token = agent.cookie('SESSION');
      expect((await agent.get('/value')).setCookies).toEqual([]);
      expect(calls()).toEqual(['load']);
      clock.advance(MINUTE);
      const renewed = await agent.get('/value');
      expect(renewed.setCookies).toEqual([`SESSION=${token}; Max-Age=3600; Path=/; HttpOnly; SameSite=Lax`]);
      expect([renewed.headers['cache-control'], renewed.headers.vary]).toEqual(['no-store', 'Cookie']);
      expect(calls()).toEqual(['load', 'touch']);
      expect((await agent.get('/value')).setCookies).toEqual([]);
    });

    it('is sent again when a timeout changes, because that renews the session as well', async () => {
      const token = agent.cookie('SESSION');
      for (let i = 1; i <= 3; i++) {
        clock.advance(MINUTE / 2);
        const { setCookies } = await agent.post(`/timeout/${DAY + i}`);
        expect(setCookies).toEqual([expect.stringContaining(`SESSION=${token}; Max-Age=3600;`)]);
      }
      calls();
      expect((await agent.post(`/timeout/${DAY + 3}`)).setCookies).toEqual([]);
      expect(calls()).toEqual(['load']);
      expect((await agent.post('/timeout/0')).setCookies).toEqual([expect.stringMatching(/^SESSION=; Max-Age=0;/)]);
    });

    it('is sent again by requests that do not use the session, and after a save', async () => {
      clock.advance(MINUTE);
      const plain = await agent.get('/plain');
      expect(plain.setCookies).toHaveLength(1);
      expect([plain.headers['cache-control'], plain.headers.vary]).toEqual(['no-store', 'Cookie']);
      clock.advance(MINUTE);
      expect((await agent.get('/not-found')).setCookies).toHaveLength(1);
      clock.advance(MINUTE);
      calls();
      expect((await agent.post('/set/b')).setCookies).toHaveLength(1);
      expect(calls()).toEqual(['load', 'update', 'touch']);
    });

    it('is not sent again when a request that keeps the session idle changes a timeout', async () => {
      expect((await agent.post(`/idle/timeout/${DAY}`)).setCookies).toEqual([]);
      expect(calls()).toEqual(['load', 'update']);
    });

    it('is not sent again by requests that keep the session idle', async () => {
      clock.advance(MINUTE);
      expect((await agent.get('/idle')).setCookies).toEqual([]);
      expect(calls()).toEqual(['load']);
    });

    it('is sent once when the session is rotated, and once when it ends', async () => {
      const token = agent.cookie('SESSION');
      clock.advance(MINUTE);
      const login = await agent.post('/login');
      expect(login.setCookies).toEqual([expect.stringMatching(/^SESSION=[\w-]{43}; Max-Age=3600;/)]);
      expect(agent.cookie('SESSION')).not.toBe(token);
      clock.advance(MINUTE);
      calls();
      expect((await agent.post('/logout')).setCookies).toEqual([expect.stringMatching(/^SESSION=; Max-Age=0;/)]);
      expect(calls()).toEqual(['load', 'delete']);
    });

    it.each<[string, (held: HttpAgent) => Promise<HttpResponse>]>([
      ['reads', (held) => held.get('/held')],
      ['writes', (held) => held.post('/held/late')],
    ])('is not sent again by a request that %s and was held open across a login', async (_, send) => {
      clock.advance(MINUTE);
      const late = send(agent.fork());
      await hold.reached();
      await agent.post('/login');
      hold.open();
      expect([(await late).status, (await late).setCookies]).toEqual([expect.any(Number), []]);
    });

    it('is not sent again by a request that was held open across a logout', async () => {
      clock.advance(MINUTE);
      const late = agent.fork().get('/held');
      await hold.reached();
      await agent.post('/logout');
      hold.open();
      expect((await late).setCookies).toEqual([]);
    });

    it('is sent after the store has recorded the access, and the response stays unchanged when the store fails', async () => {
      clock.advance(MINUTE);
      const touch = app.store.gate('touch');
      let isAnswered = false;
      const response = agent.get('/value').finally(() => (isAnswered = true));
      await touch.reached();
      expect(isAnswered).toBe(false);
      touch.fail(STORE_FAILURE);
      expect([(await response).status, (await response).setCookies]).toEqual([200, []]);
      expect(app.log.matching(/The idle timeout of session .* was not renewed/)).toHaveLength(1);
    });

    it('is not sent to a client that presents no live session', async () => {
      clock.advance(MINUTE);
      const headers = { cookie: `SESSION=${generateSessionKey().token.reveal()}` };
      expect((await app.agent().get('/value', { headers })).setCookies).toEqual([]);
    });
  });

  it('a cookie with Max-Age is sent again to clients whose sessions never expire, once per touch interval', async () => {
    clock.advance(-2 * MINUTE);
    await start({ timeout: 'never', cookie: { maxAge: '1h' } }, -1);
    await agent.post('/set/a');
    const token = agent.cookie('SESSION');
    clock.advance(2 * MINUTE);
    calls();
    expect((await agent.get('/idle')).setCookies).toEqual([]);
    expect((await agent.get('/value')).setCookies).toEqual([
      `SESSION=${token}; Max-Age=3600; Path=/; HttpOnly; SameSite=Lax`,
    ]);
    expect((await agent.get('/value')).setCookies).toEqual([]);
    expect(calls()).toEqual(['load', 'load', 'touch', 'load']);
  });

  it('a session that never expires is not touched for a cookie that ends with the browser', async () => {
    clock.advance(-2 * MINUTE);
    await start({ timeout: 'never' }, -1);
    await agent.post('/set/a');
    clock.advance(2 * MINUTE);
    calls();
    expect((await agent.get('/value')).setCookies).toEqual([]);
    expect(calls()).toEqual(['load']);
  });

  describe('RememberMe', () => {
    beforeEach(() => start({ timeout: '30m', cookie: { rememberMe: '30d' } }));

    function maxAges({ setCookies }: HttpResponse): (string | undefined)[] {
      return setCookies.map((each) => /Max-Age=(\d+)/.exec(each)?.[1]);
    }

    it('lets the cookie outlive the browser and the session live as long: for new, rotated and renewed sessions', async () => {
      expect(maxAges(await app.agent().post('/remember'))).toEqual([`${30 * DAY}`]);
      expect(maxAges(await agent.post('/set/a'))).toEqual([undefined]);
      const before = agent.cookie('SESSION');
      expect(maxAges(await agent.post('/remember'))).toEqual([`${30 * DAY}`]);
      expect(agent.cookie('SESSION')).not.toBe(before);
      expect((await agent.get('/value')).json()).toEqual({ value: 'a', interval: 30 * DAY });
      expect(maxAges(await agent.post('/login'))).toEqual([`${30 * DAY}`]);
      clock.advance(MINUTE);
      expect(maxAges(await agent.get('/plain'))).toEqual([`${30 * DAY}`]);
      clock.advance(29 * DAY * 1000);
      expect((await agent.get('/value')).json()).toMatchObject({ value: 'a' });
    });

    it('sends the cookies of other sessions no second time', async () => {
      await agent.post('/set/a');
      clock.advance(MINUTE);
      expect((await agent.get('/value')).setCookies).toEqual([]);
    });

    it('can be undone', async () => {
      await agent.post('/remember');
      expect(maxAges(await agent.post('/forget'))).toEqual([undefined]);
      expect((await agent.get('/value')).json()).toEqual({ interval: 1800 });
      clock.advance(MINUTE);
      expect((await agent.get('/value')).setCookies).toEqual([]);
    });

    it.each(['remember', 'forget'])(
      'throws after the headers were sent, says what to do, and changes nothing: %s()',
      async (call) => {
        const expected = {
          isStateError: true,
          message: expect.stringMatching(
            /after the headers of the response were sent.* before the first byte$/,
          ) as string,
        };
        const ofNew = await agent.post(`/late/${call}`);
        expect([ofNew.json(), ofNew.setCookies, calls()]).toEqual([expected, [], []]);
        await agent.post('/set/a');
        calls();
        const ofStored = await agent.post(`/late/${call}`);
        expect([ofStored.json(), ofStored.setCookies]).toEqual([expected, []]);
        expect(calls()).toHaveLength(1);
        expect((await agent.get('/value')).json()).toEqual({ value: 'a', interval: 1800 });
        expect(app.log.lines).toEqual([]);
      },
    );
  });

  it('RememberMe names the option to set when none says for how long', async () => {
    await start({});
    expect((await agent.post('/remember/refused')).json()).toEqual({
      isStateError: true,
      message: "No session can be remembered: set the option `cookie.rememberMe`, for example to '30d'",
    });
  });

  it('RememberMe uses the cookie among several resolvers, and a token in a header is sent once', async () => {
    const sessionIdResolver = new CompositeSessionIdResolver(
      HeaderSessionIdResolver.xAuthToken(),
      new CookieSessionIdResolver({ rememberMe: '30d' }),
    );
    await start({ sessionIdResolver });
    const token = (await agent.post('/remember')).headers['x-auth-token'] as string;
    clock.advance(MINUTE);
    const byHeader = await agent.get('/value', { headers: { 'x-auth-token': token } });
    expect([byHeader.json(), byHeader.headers['x-auth-token']]).toEqual([{ interval: 30 * DAY }, undefined]);
    clock.advance(MINUTE);
    const byCookie = await agent.get('/value', { headers: { cookie: `SESSION=${token}` } });
    expect(byCookie.setCookies).toEqual([expect.stringContaining(`SESSION=${token}; Max-Age=${30 * DAY};`)]);
  });
});
