import { createHash, createHmac, randomBytes, randomUUID } from 'node:crypto';
import { Controller, Get, Inject, type INestApplication, Req } from '@nestjs/common';
import {
  BrowserSessions,
  IndexedSessionRepository,
  KeepSessionIdle,
  OnSecurityEvent,
  OnSessionEvent,
  type SecurityEvent,
  SessionCreatedEvent,
  type SessionModuleOptions,
  Sessions,
  SessionStoreError,
} from '@nest-session/core';
import { saveChannel, type SessionSaveContext } from '@nest-session/core/telemetry';
import { RedisSessionModule } from '@nest-session/redis';
import { SpringSessionModule, springSessions } from '@nest-session/spring';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually, HttpAgent, RedisServer } from '@nest-session/testing';
import { Redis } from 'ioredis';
import type { ExpressSessionModuleOptions } from '../../src/index.js';
import { closeApps, type ExpressSessionApp, startApp } from '../support/express-session.app.js';
import { logInByPassport } from '../support/passport-login.js';
import { request, runIn, type Step, StepController } from '../support/step.controller.js';

LeakGuard.install();

let server: RedisServer;
let client: Redis;
beforeAll(async () => {
  server = await RedisServer.start();
  client = new Redis(server.port, '127.0.0.1');
});
afterAll(async () => {
  await client.quit();
  await server.stop();
});
afterEach(closeApps);

const [SECRET, OLDER_SECRET] = ['a secret', 'an older secret'];
const NAMESPACE = 'nest:session';

@Controller()
class PlainController {
  static created: SessionCreatedEvent[] = [];
  static unknown: SecurityEvent[] = [];

  constructor(@Inject(BrowserSessions) readonly sessions: BrowserSessions) {}

  /** Does not use the session. */
  @Get('idle')
  @KeepSessionIdle()
  idle() {}

  @Get('plain')
  plain() {
    return {};
  }

  @Get('user')
  user(@Req() { session }: any) {
    return { user: session.passport?.user ?? null, id: session.id as unknown };
  }

  @OnSessionEvent(SessionCreatedEvent)
  onCreated(event: SessionCreatedEvent) {
    PlainController.created.push(event);
  }

  @OnSecurityEvent('unknown-token')
  onUnknown(event: SecurityEvent) {
    PlainController.unknown.push(event);
  }
}

let app: ExpressSessionApp;

async function start(
  express: ExpressSessionModuleOptions = {},
  session: SessionModuleOptions = {},
  configure?: (app: INestApplication) => unknown,
) {
  PlainController.created = [];
  PlainController.unknown = [];
  app = await startApp({
    controllers: [StepController, PlainController],
    session,
    express: { secret: [SECRET, OLDER_SECRET], principal: 'passport', ...express },
    store: RedisSessionModule.forRoot({ url: server.url, notifications: 'off', commandTimeout: '1m' }),
    configure,
  });
}

beforeEach(async () => {
  await client.flushall();
  await start();
});

const sign = (sid: string, secret = SECRET) =>
  `s:${sid}.${createHmac('sha256', secret).update(sid).digest('base64').replace(/=+$/, '')}`;

const tokenOf = (sid: string) => createHmac('sha256', OLDER_SECRET).update(`takeover:${sid}`).digest('base64url');

const DATA = {
  cookie: { originalMaxAge: 86_400_000, path: '/' },
  passport: { user: 'ann' },
  cart: ['book'],
  none: null,
};

/** An entry of connect-redis, and a browser with its cookie. */
async function oldSession({ ttl = 86_400_000, data = JSON.stringify(DATA), prefix = 'sess:', secret = SECRET } = {}) {
  const sid = randomUUID();
  const key = prefix + sid;
  await (ttl < 0 ? client.set(key, data) : client.set(key, data, 'PX', ttl));
  return { sid, key, browser: browserWith(sign(sid, secret)) };
}

function browserWith(value: string, name = 'connect.sid'): HttpAgent {
  const agent = app.agent();
  agent.setCookie(`${name}=${encodeURIComponent(value)}; Path=/`);
  return agent;
}

const userOf = async (browser: HttpAgent) => (await browser.get('/user')).json<{ user: string | null }>().user;

/** The end of the only session, in milliseconds from now. */
async function timeToLive(): Promise<number> {
  const shadows = await client.keys(`${NAMESPACE}:sessions:expires:*`);
  expect(shadows).toHaveLength(1);
  return client.pttl(shadows[0]!);
}

describe('an old session with a user where Passport keeps its own', () => {
  it.each(['ann', 7, { id: 'ann' }, { roles: ['admin'] }])(
    'signs nobody in, and is not taken over, where nothing says that the application uses Passport: %j',
    async (user) => {
      await app.app.close();
      await start({ principal: undefined });
      const data = (passport: unknown) => JSON.stringify({ ...DATA, passport });
      const reads: Step<unknown> = ({ session }) => [session.cart ?? null, session.passport?.user ?? null];
      for (const forged of [{ user }, ...(typeof user === 'object' ? [user] : [])]) {
        const { browser, key } = await oldSession({ data: data(forged) });
        expect(await runIn(browser, reads)).toEqual([null, null]);
        expect(await client.exists(key)).toBe(1);
      }
      const { browser } = await oldSession({ data: data({}) });
      expect(await runIn(browser, reads)).toEqual([['book'], null]);
      const lines = app.log.lines.filter((line) => line.includes('was not taken over'));
      expect(lines).toEqual([expect.stringContaining("set `principal: 'passport'` of ExpressSessionModule.forRoot()")]);
    },
  );

  it('ends with all sessions of its user by its id, although it would not be taken over', async () => {
    await app.app.close();
    await start({ principal: undefined });
    const { sid, key } = await oldSession();
    const sessions = app.app.get(Sessions, { strict: false });
    expect(await sessions.end(sid, { of: 'bob' })).toBe(false);
    expect(await sessions.end(sid, { of: 'ann' })).toBe(true);
    expect(await client.exists(key)).toBe(0);
  });
});

describe('the takeover of a session of connect-redis', () => {
  it('happens under the alias of the first session only, where a browser may have several', async () => {
    await app.app.close();
    await start({}, { multipleSessions: true });
    const { browser } = await oldSession();
    expect((await browser.get('/user?_s=1')).json()).toMatchObject({ user: null });
    expect(await userOf(browser)).toBe('ann');
  });

  it.each(['list() and end()', 'end() alone'])(
    'is prevented by BrowserSessions under another alias: %s',
    async (how) => {
      await app.app.close();
      await start({}, { multipleSessions: true });
      const { browser, key } = await oldSession();
      const other = browser.fork();
      const { sessions } = app.app.get(PlainController);
      const ended = await runIn(
        browser,
        async () => {
          expect(sessions.newAlias).not.toBe('0');
          if (how === 'end() alone') return [await sessions.end('0')];
          const aliases = [...(await sessions.list()).keys()];
          return Promise.all(aliases.map((alias) => sessions.end(alias)));
        },
        '?_s=1',
      );
      expect(ended).toEqual([true]);
      expect(browser.cookies).toEqual({});
      expect([await userOf(browser), await userOf(other)]).toEqual([null, null]);
      expect(await client.exists(key)).toBe(0);
    },
  );

  it('gives the browser the new cookie instead of the old one, on any route', async () => {
    const { browser } = await oldSession();
    const response = await browser.get('/plain');
    expect(response.setCookies).toEqual([
      expect.stringMatching(/^connect\.sid=; Max-Age=0; Path=\//),
      expect.stringMatching(/^SESSION=[\w-]{43}; Path=\//),
    ]);
    expect(response.headers['cache-control']).toContain('no-store');
    expect(await userOf(browser)).toBe('ann');
    // Nobody has guessed the token that the old cookie stands for.
    expect(PlainController.unknown).toEqual([]);
  });

  it('looks at the first 64 old cookies of a request, which other hosts may have planted', async () => {
    const { sid } = await oldSession();
    const header = (count: number) =>
      [...Array.from({ length: count }, () => sign(randomUUID(), 'no secret')), 's:x.', sign(sid)]
        .map((value) => `connect.sid=${encodeURIComponent(value)}`)
        .join('; ');
    const userWith = async (count: number) =>
      (await app.agent().get('/user', { headers: { cookie: header(count) } })).json<{ user: string | null }>().user;
    expect(await userWith(63)).toBeNull();
    expect(await userWith(62)).toBe('ann');
  });

  it('is made up for by a sign-out of another session, so that the old one signs in no user afterwards', async () => {
    const { browser, sid, key } = await oldSession();
    const own = app.agent();
    await runIn(own, ({ session }) => session.signIn('bob'));
    own.setCookie(`connect.sid=${encodeURIComponent(sign(sid))}; Path=/`);
    expect(await runIn(own, ({ session }) => session.principalName as string)).toBe('bob');
    await runIn(own, ({ session }) => session.signOut());
    expect(await client.exists(key)).toBe(0);
    expect([await userOf(own), await userOf(browser)]).toEqual([null, null]);
  });

  it('brings all attributes that are not null, and the principal', async () => {
    const { browser } = await oldSession();
    expect(await runIn(browser, ({ session }) => ({ ...session, cookie: undefined }))).toEqual({
      passport: { user: 'ann' },
      cart: ['book'],
    });
    const sessions = app.app.get(IndexedSessionRepository, { strict: false });
    expect(await sessions.findByPrincipalName('ann')).toHaveLength(1);
    await eventually(() =>
      expect(PlainController.created).toEqual([expect.objectContaining({ principalName: 'ann' })]),
    );
  });

  it('brings values that are false, zero or empty', async () => {
    const values = { no: false, zero: 0, text: '', list: [], object: {} };
    const { browser } = await oldSession({ data: JSON.stringify({ ...DATA, ...values }) });
    expect(await runIn(browser, ({ session }) => ({ ...session, cookie: undefined }))).toEqual({
      passport: { user: 'ann' },
      cart: ['book'],
      ...values,
    });
  });

  it('shows the device that presented it, as a session that began here does', async () => {
    await app.app.close();
    await start({}, { devices: true });
    const { browser } = await oldSession();
    await browser.get('/plain', { headers: { 'user-agent': 'Mozilla/5.0 (X11; Linux x86_64) Firefox/140.0' } });
    const device = { address: '127.0.0.0', userAgent: '(X11; Linux x86_64) Firefox/140.0' };
    for await (const session of app.app.get(Sessions).ofPrincipal('ann')) expect(session.device).toEqual(device);
    await eventually(() => expect(PlainController.created.map((event) => event.device)).toEqual([device]));
  });

  it('brings more than a session may hold, and no key __proto__', async () => {
    const many = Object.fromEntries(Array.from({ length: 300 }, (_, i) => [`item ${i}`, 1]));
    const data = JSON.stringify({ ...DATA, ...many, large: 'x'.repeat(70_000) });
    const { browser } = await oldSession({ data: `${data.slice(0, -1)},"body":{"__proto__":{"isAdmin":true},"a":1}}` });
    const shown = await runIn(browser, ({ session }) => [Object.keys(session).length, session.large.length]);
    expect(shown).toEqual([305, 70_000]);
    expect(await runIn(browser, ({ session }) => JSON.stringify(session.body))).toBe('{"a":1}');
    await runIn(browser, ({ session }) => void (session['item 1'] = 2));
    await expect(runIn(browser, ({ session }) => void (session.more = 1))).rejects.toThrow('`maxAttributes`');
  });

  it('lets parallel requests of a page meet in one session', async () => {
    const { browser, key } = await oldSession();
    const responses = await Promise.all(
      Array.from({ length: 6 }, () => browser.fork()).map(async (tab) => {
        const response = await tab.get('/user');
        return { ...response.json<{ user: string; id: string }>(), cookie: tab.cookie('SESSION') };
      }),
    );
    expect(new Set(responses.map(({ id }) => id)).size).toBe(1);
    expect(new Set(responses.map(({ cookie }) => cookie)).size).toBe(1);
    expect(responses.map(({ user }) => user)).toEqual(Array(6).fill('ann'));
    expect(await client.exists(key)).toBe(0);
    expect(await client.keys(`${NAMESPACE}:sessions:expires:*`)).toHaveLength(1);
  });

  it('is told by the tracing channel of saves: a new session, nothing to take over, a failure', async () => {
    const told: SessionSaveContext[] = [];
    const nothing = () => undefined;
    const asyncEnd = (save: SessionSaveContext) => void told.push(save);
    const subscribers = { start: nothing, end: nothing, asyncStart: nothing, asyncEnd, error: nothing };
    saveChannel.subscribe(subscribers);
    try {
      const { browser } = await oldSession();
      const again = browser.fork();
      const { id } = (await browser.get('/user')).json<{ id: string }>();
      await again.get('/user');
      await client.set(`${NAMESPACE}:events`, 'foreign');
      await (await oldSession()).browser.get('/user');
      const create = { operation: 'create', namespace: NAMESPACE };
      expect(told).toEqual([
        { ...create, sessionId: id, outcome: 'created' },
        { ...create, sessionId: id, outcome: 'gone' },
        { ...create, sessionId: expect.any(String), error: expect.any(SessionStoreError) },
      ]);
    } finally {
      saveChannel.unsubscribe(subscribers);
    }
  });

  it('has removed the old entry when the response leaves', async () => {
    const { browser, key } = await oldSession();
    let found: Promise<number> | undefined;
    await browser.get('/plain', { onHead: () => void (found = client.exists(key)) });
    expect(await found).toBe(0);
  });

  it('demands a signature', async () => {
    const { sid, key } = await oldSession();
    const signed = sign(sid);
    const refused = [
      sid,
      `s:${sid}`,
      `s:${sid}.`,
      sign(sid, 'another secret'),
      signed.slice(2),
      `${signed.slice(0, -1)}${signed.endsWith('A') ? 'B' : 'A'}`,
      `${signed}=`,
      's:.',
      '%',
    ];
    for (const value of refused) {
      expect([value, await userOf(browserWith(value))]).toEqual([value, null]);
      expect(await client.exists(key)).toBe(1);
    }
    expect(await userOf(browserWith(signed))).toBe('ann');
  });

  it('finds the signed cookie behind another one of the same name', async () => {
    const { sid } = await oldSession();
    const headers = { cookie: `connect.sid=other; connect.sid=${encodeURIComponent(sign(sid))}` };
    expect((await app.agent().get('/user', { headers })).json()).toMatchObject({ user: 'ann' });
  });

  it.each([SECRET, OLDER_SECRET])('accepts the signature of %s, and makes the same session of it', async (secret) => {
    const { browser, sid } = await oldSession({ secret });
    await browser.get('/plain');
    expect(browser.cookie('SESSION')).toBe(tokenOf(sid));
  });

  it('happens with an id that the application has made up, also with a dot', async () => {
    const sid = `shop.${randomUUID()}.1`;
    await client.set(`sess:${sid}`, JSON.stringify(DATA), 'PX', 86_400_000);
    const response = await browserWith(sign(sid)).get('/user');
    expect(response.json()).toMatchObject({ user: 'ann' });
  });

  it('makes one session of an old one, whichever secret has signed its cookies', async () => {
    const { sid } = await oldSession();
    const [ann, thief] = [browserWith(sign(sid)), browserWith(sign(sid, OLDER_SECRET))];
    expect([await userOf(thief), await userOf(ann)]).toEqual(['ann', 'ann']);
    await runIn(ann, ({ session }) => session.destroy().then(() => undefined));
    expect(await userOf(thief)).toBeNull();
    expect(await client.keys(`${NAMESPACE}:sessions:expires:*`)).toEqual([]);
  });

  it.each(['destroy', 'signOut'])('with two old cookies in one request: %s() ends both sessions', async (method) => {
    const [first, second] = [await oldSession(), await oldSession()];
    const cookie = (...sids: string[]) => ({
      headers: { cookie: sids.map((sid) => `connect.sid=${encodeURIComponent(sign(sid))}`).join('; ') },
    });
    const both = cookie(first.sid, second.sid);
    expect((await app.agent().get('/user', both)).json()).toMatchObject({ user: 'ann' });
    const out: Step<unknown> = ({ session }) => void session[method]();
    expect((await request(app.agent(), out, '', both.headers)).status).toBe(200);
    for (const presented of [cookie(first.sid), cookie(second.sid), both])
      expect((await app.agent().get('/user', presented)).json()).toMatchObject({ user: null });
    expect(await client.exists(first.key, second.key)).toBe(0);
  });

  it.each(['nothing', 'the session of a visitor'])('finds that of a user behind an old cookie of %s', async (what) => {
    const planted = what === 'nothing' ? 'ended' : (await oldSession({ data: '{"cookie":{},"cart":[]}' })).sid;
    const { sid } = await oldSession();
    const cookie = [planted, sid].map((each) => `connect.sid=${encodeURIComponent(sign(each))}`).join('; ');
    const response = await app.agent().get('/user', { headers: { cookie } });
    expect(response.json()).toMatchObject({ user: 'ann' });
    expect(response.setCookies.join()).toContain(`SESSION=${tokenOf(sid)}`);
  });

  it('happens once: after a sign-out the old cookie opens nothing, although the old entry is there again', async () => {
    const { browser, sid, key } = await oldSession();
    const thief = browser.fork();
    await browser.get('/plain');
    await runIn(browser, ({ session }) => session.destroy().then(() => undefined));
    // Nobody wants its end, so that nothing is left of the session but the mark.
    const hash = `${NAMESPACE}:sessions:${createHash('sha256').update(tokenOf(sid)).digest('base64url')}`;
    expect(await client.exists(hash)).toBe(0);
    await client.set(key, JSON.stringify(DATA), 'PX', 60_000);
    expect(await userOf(thief)).toBeNull();
    expect(await userOf(browserWith(sign(sid)))).toBeNull();
    expect(await client.exists(key)).toBe(0);
    expect(await client.keys(`${NAMESPACE}:sessions:expires:*`)).toEqual([]);
  });

  it('leaves a mark that outlives the old entry, also one that an old instance writes again', async () => {
    const marks = async () => {
      const [mark = ''] = await client.keys(`${NAMESPACE}:sessions:taken-over:*`);
      return client.pttl(mark);
    };
    // It lived for a day when it was new.
    const { browser, sid } = await oldSession({ ttl: 7_200_000 });
    await browser.get('/plain');
    const [day, hour] = [86_400_000, 3_600_000];
    expect(await marks()).toBeGreaterThan(7_100_000 + day + hour);
    expect(await marks()).toBeLessThanOrEqual(7_200_000 + day + hour);
    await runIn(browser, ({ session }) => session.destroy().then(() => undefined));
    const [mark = ''] = await client.keys(`${NAMESPACE}:sessions:taken-over:*`);
    // When the first entry would have ended.
    await client.pexpire(mark, (await client.pttl(mark)) - 7_200_000);
    await client.set(`sess:${sid}`, JSON.stringify(DATA), 'PX', day);
    expect(await userOf(browserWith(sign(sid)))).toBeNull();
    await client.flushall();
    const { browser: endedSoon } = await oldSession({ ttl: 3000, data: '{"cookie":{"originalMaxAge":null}}' });
    await endedSoon.get('/plain');
    expect(await marks()).toBeGreaterThan(day);
    await client.flushall();
    const { browser: endless } = await oldSession({ ttl: -1 });
    await endless.get('/plain');
    expect(await marks()).toBe(-1);
  });

  it('is completed by the next request when a process ended before the old entry was removed', async () => {
    const { browser, sid, key } = await oldSession();
    const other = browserWith(sign(sid));
    await browser.get('/user');
    await runIn(browser, ({ session }) => session.cart.push('pen'));
    await client.set(key, JSON.stringify(DATA), 'PX', 60_000);
    expect(await runIn(other, ({ session }) => session.cart)).toEqual(['book', 'pen']);
    expect(await client.exists(key)).toBe(0);
    expect(other.cookie('SESSION')).toBe(browser.cookie('SESSION'));
  });

  it.each([
    ['the old time to live, when it is earlier than the timeout', 60_000, 60_000],
    ['the timeout, when it is earlier than the old time to live', 86_400_000, 1_800_000],
    ['the timeout, when the old session had no end', -1, 1_800_000],
  ])('gives the session as its end %s', async (_, ttl, end) => {
    const { browser } = await oldSession({ ttl });
    await browser.get('/plain');
    const left = await timeToLive();
    expect(left).toBeGreaterThan(end - 20_000);
    expect(left).toBeLessThanOrEqual(end);
  });

  it('renews the session with its next access', async () => {
    const { browser } = await oldSession({ ttl: 60_000 });
    await browser.get('/plain');
    await browser.get('/plain');
    await eventually(async () => expect(await timeToLive()).toBeGreaterThan(1_700_000));
  });

  it('prefers the session of the new cookie, and leaves the old entry', async () => {
    const browser = app.agent();
    await runIn(browser, (req) => logInByPassport(req, 'bob'));
    const { sid, key } = await oldSession();
    browser.setCookie(`connect.sid=${encodeURIComponent(sign(sid))}; Path=/`);
    expect(await userOf(browser)).toBe('bob');
    expect(await client.exists(key)).toBe(1);
  });

  it('takes the old session when the new cookie opens no session', async () => {
    const { browser } = await oldSession();
    browser.setCookie(`SESSION=${'x'.repeat(43)}; Path=/`);
    expect(await userOf(browser)).toBe('ann');
  });

  it('makes a browser without an old session forget its old cookie', async () => {
    const browser = browserWith(sign('ended long ago'));
    expect((await browser.get('/plain')).setCookies).toEqual([expect.stringMatching(/^connect\.sid=; Max-Age=0/)]);
    expect(browser.cookies).toEqual({});
  });

  it.each([
    ['no JSON', '{'],
    ['JSON without a cookie', '{"passport":{"user":"ann"}}'],
    ['no object', '"text"'],
  ])('leaves %s alone', async (_, data) => {
    const { browser, key } = await oldSession({ data });
    expect(await userOf(browser)).toBeNull();
    expect(await client.exists(key)).toBe(1);
  });

  it('leaves a key of another type alone', async () => {
    const { browser, key } = await oldSession();
    await client.del(key);
    await client.hset(key, 'a', 1);
    expect(await userOf(browser)).toBeNull();
    expect(await client.type(key)).toBe('hash');
  });

  it('sets aside a key of another type in the place of the index of its principal', async () => {
    expect(await userOf((await oldSession()).browser)).toBe('ann');
    const [index] = await client.keys(`${NAMESPACE}:index:*`);
    await client.del(index!);
    await client.sadd(index!, 'unknown');
    expect(await userOf((await oldSession()).browser)).toBe('ann');
    expect(await client.zcard(index!)).toBe(1);
  });

  it.each<[string, unknown, string | null]>([
    ['an ObjectId, which is a text there', '507f', '507f'],
    ['a document of MongoDB', { _id: '507f', name: 'ann' }, '507f'],
    ['claims', { sub: 'ann' }, 'ann'],
    ['a Buffer', { type: 'Buffer', data: [1, 254] }, '01fe'],
    ['an object without an id', { userinfo: {} }, null],
  ])('knows the principal of %s, and keeps it through later requests', async (_, user, name) => {
    const { browser } = await oldSession({ data: JSON.stringify({ ...DATA, passport: { user } }) });
    for (let visit = 0; visit < 2; visit++) {
      const seen = await runIn(browser, ({ session }) => {
        session.visits = (session.visits ?? 0) + 1;
        return [session.principalName ?? null, session.passport.user, session.visits];
      });
      expect(seen).toEqual([name, user, visit + 1]);
    }
  });

  it('leaves a session alone whose user has no name, and says so once', async () => {
    for (const user of [true, { id: 'undefined' }]) {
      const { browser, key } = await oldSession({ data: JSON.stringify({ ...DATA, passport: { user } }) });
      expect(await runIn(browser, ({ session }) => [session.isNew, session.principalName ?? null])).toEqual([
        true,
        null,
      ]);
      expect(await client.exists(key)).toBe(1);
    }
    const lines = app.log.lines.filter((line) => line.includes('was not taken over'));
    expect(lines).toEqual([expect.stringContaining('The user that Passport keeps in the session is a boolean')]);
  });

  it('takes no attribute of a name that belongs to the library', async () => {
    const names = {
      'nest-session.rememberMe': true,
      'nest-session.principal': 'root',
      '': 1,
    };
    const { browser } = await oldSession({ data: JSON.stringify({ ...DATA, passport: {}, ...names }) });
    expect(await runIn(browser, ({ session }) => [session.attributeNames, session.principalName])).toEqual(
      [['passport', 'cart'], undefined].map((each) => each ?? null),
    );
  });

  it('fails without a trace when the store does: the browser keeps the old cookie, and the old entry stays', async () => {
    const { browser, key } = await oldSession();
    await client.set(`${NAMESPACE}:events`, 'foreign');
    expect((await browser.get('/user')).status).toBe(503);
    expect(browser.cookies).toEqual({ 'connect.sid': expect.any(String) });
    expect(await client.exists(key)).toBe(1);
    await client.del(`${NAMESPACE}:events`);
    expect(await userOf(browser)).toBe('ann');
  });

  it('keeps the old cookie where the new one cannot be sent', async () => {
    const { browser } = await oldSession();
    const other = browser.fork();
    // The session is rotated while this request runs.
    await runIn(browser, async () => {
      await runIn(other, (req) => req.session.regenerate().then(() => undefined));
    });
    expect(Object.keys(browser.cookies)).toEqual(['connect.sid']);
    expect(Object.keys(other.cookies)).toEqual(['SESSION']);
  });

  it('keeps the old cookie where the new one is Secure and would be sent over http', async () => {
    await closeApps();
    await start({}, { cookie: { secure: true } });
    const { browser } = await oldSession();
    expect([await userOf(browser), await userOf(browser)]).toEqual(['ann', 'ann']);
    expect(Object.keys(browser.cookies)).toEqual(['connect.sid']);
  });

  it('sends the new cookie also in a request that keeps the session idle', async () => {
    await closeApps();
    await start();
    const { browser } = await oldSession();
    await browser.get('/idle');
    expect(Object.keys(browser.cookies)).toEqual(['SESSION']);
    expect(await userOf(browser)).toBe('ann');
  });

  it('sends the cookie of a login in the first request', async () => {
    const { browser } = await oldSession();
    await runIn(browser, (req) => logInByPassport(req, 'bob'));
    expect(Object.keys(browser.cookies)).toEqual(['SESSION']);
    expect(await userOf(browser)).toBe('bob');
  });

  it('reads the cookie and the keys that the options name', async () => {
    await closeApps();
    const cookie = { path: '/', domain: '127.0.0.1' };
    await start({ name: 'sid', prefix: 'app:', cookie }, { cookie });
    const { sid } = await oldSession({ prefix: 'app:' });
    const browser = browserWith(sign(sid), 'sid');
    const response = await browser.get('/plain');
    expect(response.setCookies[0]).toMatch(/^sid=; Max-Age=0; Domain=127\.0\.0\.1; Path=\//);
    expect(await userOf(browser)).toBe('ann');
  });

  // The client ignores what browsers ignore.
  it.each<[string, SessionModuleOptions, string]>([
    ['__Host-sid', {}, 'HttpOnly; Secure; SameSite=Lax'],
    ['__Secure-sid', {}, 'HttpOnly; Secure; SameSite=Lax'],
    [
      'sid',
      { cookie: { secure: true, sameSite: 'none', partitioned: true } },
      'HttpOnly; Secure; Partitioned; SameSite=None',
    ],
  ])('removes the old cookie %s with the attributes that browsers demand', async (name, session, attributes) => {
    await closeApps();
    await start({ name }, session, (nest) => nest.getHttpAdapter().getInstance().set('trust proxy', true));
    const { sid } = await oldSession();
    const browser = new HttpAgent(app.origin, { secure: true, headers: { 'x-forwarded-proto': 'https' } });
    browser.setCookie(`${name}=${encodeURIComponent(sign(sid))}; Path=/; Secure`);
    expect(await userOf(browser)).toBe('ann');
    expect(Object.keys(browser.cookies)).not.toContain(name);
    browser.clearCookies();
    browser.setCookie(`${name}=${encodeURIComponent(sign(sid))}; Path=/; Secure`);
    expect((await browser.get('/plain')).setCookies).toContain(`${name}=; Max-Age=0; Path=/; ${attributes}`);
  });

  it('does not happen without a secret', async () => {
    await closeApps();
    await start({ secret: undefined as never });
    const { browser, key } = await oldSession();
    expect(await userOf(browser)).toBeNull();
    expect(await client.exists(key)).toBe(1);
  });

  it('is warned about when the store cannot read old sessions', async () => {
    const { log } = await startApp({ express: { secret: SECRET } });
    expect(log.lines.join()).toContain(
      'The sessions of express-session are not taken over, because only RedisSessionModule',
    );
  });

  it.each(['read', 'shared'] as const)("does not happen to sessions of Spring: `mode: '%s'`", async (mode) => {
    await closeApps();
    app = await startApp({
      controllers: [StepController, PlainController],
      session: springSessions(),
      express: { secret: SECRET },
      store: SpringSessionModule.forRoot({ url: server.url, mode, commandTimeout: '1m' }),
    });
    const { browser, key } = await oldSession();
    expect(await userOf(browser)).toBeNull();
    expect(await client.exists(key)).toBe(1);
    expect(await client.keys('spring:session:*sessions:*')).toEqual([]);
    expect(app.log.lines.join()).toContain('The sessions of express-session are not taken over');
  });

  it('tells nothing of the old cookie, the token or a value in a log line', async () => {
    const { browser, sid } = await oldSession();
    await browser.get('/user');
    const token = browser.cookie('SESSION')!;
    for (const secret of [sid, token, 'book']) expect(app.log.lines.join()).not.toContain(secret);
  });
});

describe('Sessions.end() with the id of a session of express-session', () => {
  const end = (id: string, of?: string) => app.app.get(Sessions).end(id, of === undefined ? {} : { of });
  const warnings = () => app.log.lines.filter((line) => line.includes('Sessions.endAll(name)'));

  it('ends it, and its old cookie opens nothing, although an old instance writes it again', async () => {
    const { browser, sid, key } = await oldSession({ ttl: 7_200_000 });
    expect(await end(sid)).toBe(true);
    expect(await client.exists(key)).toBe(0);
    const [mark = ''] = await client.keys(`${NAMESPACE}:sessions:taken-over:*`);
    expect(await client.pttl(mark)).toBeGreaterThan(86_400_000 + 7_100_000);
    await client.set(key, JSON.stringify(DATA), 'PX', 60_000);
    expect(await userOf(browser)).toBeNull();
    expect(warnings()).toEqual([]);
  });

  it('ends one without an end for ever', async () => {
    const { sid } = await oldSession({ ttl: -1 });
    expect(await end(sid)).toBe(true);
    const [mark = ''] = await client.keys(`${NAMESPACE}:sessions:taken-over:*`);
    expect(await client.pttl(mark)).toBe(-1);
  });

  it('ends the session that it has become', async () => {
    const { browser, sid } = await oldSession();
    const other = browser.fork();
    await browser.get('/plain');
    expect(await end(sid)).toBe(true);
    expect([await userOf(browser), await userOf(other)]).toEqual([null, null]);
  });

  it('ends it by req.sessionStore.destroy(), too', async () => {
    const { browser, sid } = await oldSession();
    await browser.get('/plain');
    await runIn(app.agent(), ({ sessionStore }) => new Promise((resolve) => sessionStore.destroy(sid, resolve)));
    expect(await userOf(browser)).toBeNull();
  });

  it('ends only that of a principal, where it names one', async () => {
    const [waiting, moved] = [await oldSession(), await oldSession()];
    await moved.browser.get('/plain');
    for (const { sid } of [waiting, moved]) expect(await end(sid, 'bob')).toBe(false);
    expect([await userOf(waiting.browser.fork()), await userOf(moved.browser)]).toEqual(['ann', 'ann']);
    const another = await oldSession();
    for (const { sid } of [another, moved]) expect(await end(sid, 'ann')).toBe(true);
    expect([await userOf(another.browser), await userOf(moved.browser)]).toEqual([null, null]);
  });

  it('takes no place of the sessions that its principal may have', async () => {
    await app.app.close();
    await start({}, { maxSessions: { perPrincipal: 1, whenReached: 'end-oldest' } as never });
    const current = await oldSession();
    await current.browser.get('/plain');
    expect(await end((await oldSession()).sid)).toBe(true);
    expect(await userOf(current.browser)).toBe('ann');
  });

  it('says what to call where the session has another id by now, once, and not of an id of this library', async () => {
    const { browser, sid } = await oldSession();
    await runIn(browser, ({ session }) => session.signIn('ann'));
    const id = await runIn(browser, ({ session }) => session.id as string);
    app.log.lines.length = 0;
    await runIn(browser, ({ session }) => session.signOut());
    expect(await end(id)).toBe(false);
    expect(warnings()).toEqual([]);
    for (let call = 0; call < 2; call++) expect(await end(sid)).toBe(false);
    expect(warnings()).toEqual([expect.stringContaining('Sessions.end() got an id of express-session')]);
  });
});

describe.each([
  ['express', 1],
  ['fastify', 4],
] as const)('on %s with %i partition(s), a session of connect-redis', (platform, partitions) => {
  /** Another instance of the application. */
  async function startInstance(session: SessionModuleOptions = {}): Promise<ExpressSessionApp> {
    return startApp({
      platform,
      controllers: [StepController, PlainController],
      session,
      express: { secret: SECRET, principal: 'passport' },
      store: RedisSessionModule.forRoot({ url: server.url, partitions, notifications: 'off', commandTimeout: '1m' }),
    });
  }

  beforeEach(async () => {
    await closeApps();
    await client.flushall();
    app = await startInstance();
  });

  /** As many as that each partition gets one, or nearly so. */
  const oldSessions = (user: string) =>
    Promise.all(Array.from({ length: 8 }, () => oldSession({ data: JSON.stringify({ ...DATA, passport: { user } }) })));

  it('ends with all others of its principal, on every instance, although it was not taken over', async () => {
    const other = await startInstance();
    const [current, ...rest] = await oldSessions('ann');
    const [bob] = await oldSessions('bob');
    const sessions = other.app.get(Sessions, { strict: false });
    expect(await runIn(current!.browser, ({ session }) => sessions.endAll('ann', { except: session.id }))).toBe(0);
    expect(await Promise.all(rest.map(({ browser }) => userOf(browser)))).toEqual(rest.map(() => null));
    expect(await client.exists(...rest.map(({ key }) => key))).toBe(0);
    expect([await userOf(current!.browser), await userOf(bob!.browser)]).toEqual(['ann', 'bob']);
    const marks = await client.keys(`${NAMESPACE}:*revoked:*`);
    expect(marks).toHaveLength(partitions);
    for (const mark of marks) expect(await client.ttl(mark)).toBeGreaterThan(399 * 86_400);
  });

  it('ends with every session, on every instance, although it was not taken over', async () => {
    const other = await startInstance();
    const all = [...(await oldSessions('ann')), await oldSession({ data: '{"cookie":{},"cart":[]}' })];
    await other.app.get(Sessions, { strict: false }).endEverySession();
    expect(await Promise.all(all.map(({ browser }) => userOf(browser)))).toEqual(all.map(() => null));
    expect(await client.exists(...all.map(({ key }) => key))).toBe(0);
  });

  it('has the timeouts of the options from then on, as a user or as a visitor', async () => {
    await closeApps();
    app = await startInstance({ timeout: '1h', anonymousTimeout: '10m', absoluteTimeout: '2h' });
    for (const [passport, idle] of [
      [{ user: 'ann' }, 3600],
      [{}, 600],
    ] as const) {
      const { browser } = await oldSession({ data: JSON.stringify({ ...DATA, passport }) });
      expect(await runIn(browser, ({ session }) => [session.maxInactiveInterval, session.absoluteTimeout])).toEqual([
        idle,
        7200,
      ]);
    }
  });

  it('that was ended takes no place of the sessions that its principal may have', async () => {
    await closeApps();
    app = await startInstance({ maxSessions: { perPrincipal: 1, whenReached: 'refuse' } });
    const { browser } = await oldSession();
    await app.app.get(Sessions, { strict: false }).endAll('ann');
    expect(await userOf(browser)).toBeNull();
    await runIn(browser, ({ session }) => session.signIn('ann'));
    expect(await runIn(browser, ({ session }) => session.principalName as string)).toBe('ann');
  });
});

it('the end of all sessions of a principal leaves a mark for ten minutes where no old sessions are taken over', async () => {
  await closeApps();
  await start({ secret: undefined as never });
  await app.app.get(Sessions, { strict: false }).endAll('ann');
  const [mark, ...others] = await client.keys(`${NAMESPACE}:revoked:*`);
  expect(others).toEqual([]);
  expect(await client.ttl(mark!)).toBeLessThanOrEqual(600);
  expect(await client.ttl(mark!)).toBeGreaterThan(0);
});

describe('old cookies of two users in one request', () => {
  const both = async () => {
    const users = await Promise.all(
      ['ann', 'bob'].map((user) => oldSession({ data: JSON.stringify({ ...DATA, passport: { user } }) })),
    );
    const browser = app.agent();
    const cookie = users.map(({ sid }) => `connect.sid=${encodeURIComponent(sign(sid))}`).join('; ');
    return () => browser.get('/user', { headers: { cookie } });
  };

  it('are the first one by default', async () => {
    const visit = await both();
    expect((await visit()).json()).toMatchObject({ user: 'ann' });
  });

  it("are a 409 with `security: 'strict'`, also once they are taken over", async () => {
    await closeApps();
    await start({}, { security: 'strict' });
    const visit = await both();
    for (let visits = 0; visits < 2; visits++) {
      const { status, setCookies } = await visit();
      expect([status, setCookies]).toEqual([409, []]);
    }
  });
});

it("does not start a takeover with `plainValues: 'refuse'`", async () => {
  const keys = [{ id: 'k', key: randomBytes(32).toString('base64') }];
  const starting = (plainValues: 'read' | 'refuse', express: ExpressSessionModuleOptions) =>
    startApp({
      express,
      store: RedisSessionModule.forRoot({ url: server.url, encryption: { keys, plainValues }, namespace: 'encrypted' }),
    });
  await expect(starting('refuse', { secret: SECRET })).rejects.toThrow(
    /`secret` takes over nothing: `encryption.plainValues: 'refuse'`.*Remove `plainValues` until they are taken over/,
  );
  await starting('refuse', {});
  await starting('read', { secret: SECRET });
});
