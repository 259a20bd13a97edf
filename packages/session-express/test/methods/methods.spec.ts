import { Gate, LeakGuard } from '@nest-session/test-infrastructure';
import { IndexedSessionRepository, SessionGoneError, SessionRepository } from '@nest-session/core';
import { eventually, HttpAgent } from '@nest-session/testing';
import { closeApps, type ExpressSessionApp, startApp } from '../support/express-session.app.js';
import { GatedStore, STORE_FAILURE } from '../support/gated.store.js';
import { request, runIn, type Step, StepController, type StepRequest } from '../support/step.controller.js';

LeakGuard.install();
afterEach(closeApps);

let app: ExpressSessionApp;
let agent: HttpAgent;
const run = <T>(step: Step<T>, client = agent) => runIn(client, step);

/** What a callback is called with. */
const calledBack = (call: (callback: (...args: unknown[]) => void) => unknown) =>
  new Promise<unknown[]>((resolve) => call((...args) => resolve(args)));

/** Runs `step` in a request of the browser while a slow request of its session is about to set `late`. */
async function during(step: Step<unknown>): Promise<void> {
  const gate = new Gate();
  const slow = run(async ({ session }) => {
    session.late = 1;
    await gate.pass();
  }, agent.fork());
  await gate.reached();
  await run(step);
  gate.open();
  await slow;
}

beforeEach(async () => {
  app = await startApp({ controllers: [StepController] });
  agent = app.agent();
});

describe('regenerate()', () => {
  it('replaces the session by one without properties, and the client gets another token', async () => {
    await run(({ session }) => void (session.planted = 1));
    const before = agent.fork();
    const seen = await run(async (req) => {
      const previous = req.session;
      const args = await calledBack((done) => previous.regenerate(done));
      return [args, previous === req.session, previous.id === req.session.id, Object.keys(req.session)];
    });
    expect(seen).toEqual([[], false, false, ['cookie']]);
    expect(agent.cookie('SESSION')).not.toBe(before.cookie('SESSION'));
    expect(await run(({ session }) => session.planted ?? null)).toBeNull();
    expect(await run(({ session }) => session.isNew, before)).toBe(true);
  });

  it('leaves the previous object readable, and what is set there goes nowhere', async () => {
    await run(({ session }) => Object.assign(session, { a: { n: 1 }, b: 2 }));
    const seen = await run(async (req) => {
      const previous = req.session;
      const { id } = previous;
      await previous.regenerate();
      previous.lost = 1;
      previous.a.n = 5;
      delete previous.b;
      return [previous.id === id, previous.a, previous.lost, Object.keys(previous), await previous.save()];
    });
    expect(seen).toEqual([true, { n: 5 }, 1, ['cookie', 'a', 'lost'], 'gone']);
    expect(await run(({ session }) => Object.keys(session))).toEqual(['cookie']);
  });

  it('keeps what is set after it, and takes effect at the save', async () => {
    await run(({ session }) => void (session.a = 1));
    await run(async (req) => {
      await req.session.regenerate();
      req.session.b = 2;
    });
    expect(await run(({ session }) => ({ ...session, cookie: undefined }))).toEqual({ b: 2 });
  });

  it('adds nothing that a slow request of the previous session saves', async () => {
    await run(({ session }) => void (session.a = 1));
    await during((req) => req.session.regenerate().then(() => undefined));
    expect(await run(({ session }) => [session.isNew, Object.keys(session)])).toEqual([false, ['cookie']]);
  });

  it('keeps the attributes that are named, as @fastify/session has it', async () => {
    const kept = { b: 2, zero: 0, no: false, text: '', list: [] };
    await run(({ session }) => Object.assign(session, { a: 1, ...kept }));
    const names = [...Object.keys(kept), 'unknown'];
    await run((req) => req.session.regenerate(names).then(() => undefined));
    expect(await run(({ session }) => ({ ...session, cookie: undefined }))).toEqual(kept);
  });

  it('calls back after the attributes that are named, as @fastify/session has it', async () => {
    await run(({ session }) => void Object.assign(session, { a: 1, b: 2 }));
    const { id } = await run(({ session }) => ({ id: session.id as string }));
    expect(await run(({ session }) => calledBack((done) => session.regenerate(['b'], done)))).toEqual([]);
    expect(await run(({ session }) => [session.id !== id, session.a ?? null, session.b])).toEqual([true, null, 2]);
  });

  it('stores nothing for a visitor without a session', async () => {
    const response = await request(agent, (req) => calledBack((done) => req.session.regenerate(done)));
    expect(response.setCookies).toEqual([]);
  });

  it('undoes a lifetime that the session had', async () => {
    await run(({ session }) => {
      session.a = 1;
      session.cookie.maxAge = 3_600_000;
    });
    await run((req) => calledBack((done) => req.session.regenerate(done)));
    expect(await run(({ session }) => [session.maxInactiveInterval, session.cookie.maxAge])).toEqual([1800, null]);
  });

  describe('when the session ends in the meantime', () => {
    const end = ({ session }: StepRequest) => app.app.get(SessionRepository).deleteById(session.id as string);
    beforeEach(() => run(({ session }) => void (session.a = 1)));

    it('makes a response with what is set after it a 409', async () => {
      const response = await request(agent, async (req) => {
        await end(req);
        await req.session.regenerate();
        req.session.user = 'ann';
      });
      expect([response.status, response.setCookies]).toEqual([409, []]);
    });

    it('gives the error to the callback of a save, once, also when an earlier save has found the end', async () => {
      const seen = await run(async (req) => {
        await end(req);
        req.session.a = 2;
        const outcome: unknown = await req.session.save();
        await req.session.regenerate();
        req.session.user = 'ann';
        const [error] = await calledBack((done) => req.session.save(done));
        return [outcome, error instanceof SessionGoneError, await req.session.save()];
      });
      expect(seen).toEqual(['gone', true, 'gone']);
    });

    it('succeeds when nothing is set after it, as at a logout', async () => {
      const outcome = await run(async (req) => {
        await end(req);
        await req.session.regenerate();
        return req.session.save() as Promise<unknown>;
      });
      expect(outcome).toBe('gone');
    });
  });

  it('gives the error to the callback when it is too late for a cookie', async () => {
    await run(({ session }) => void (session.a = 1));
    let error: unknown;
    const response = await request(agent, async (req) => {
      const { res } = req as unknown as { res: import('node:http').ServerResponse };
      res.write('begun');
      [error] = await calledBack((done) => req.session.regenerate(done));
      expect(req.session.a).toBe(1);
      res.end();
      return new Promise(() => undefined);
    });
    expect(response.text).toBe('begun');
    expect(String(error)).toContain('cannot be changed after the headers');
  });
});

describe('destroy()', () => {
  it('ends the session before the callback, and unsets req.session', async () => {
    await run(({ session }) => void (session.a = 1));
    const old = agent.fork();
    const seen = await run(async (req) => {
      const { session } = req;
      const id = session.id as string;
      const args = await calledBack((done) => session.destroy(done));
      const found = await app.app.get(IndexedSessionRepository, { strict: false }).findById(id);
      return [args, req.session === undefined, found, session.a];
    });
    expect(seen).toEqual([[], true, null, 1]);
    expect(agent.cookie('SESSION')).toBeUndefined();
    expect(await run(({ session }) => session.a ?? null, old)).toBeNull();
  });

  it('returns a promise without a callback', async () => {
    await run(({ session }) => void (session.a = 1));
    expect(await run((req) => req.session.destroy().then(() => req.session === undefined))).toBe(true);
  });

  it.each(['destroy()', 'null'])('may be called on the object again after %s, and so may the others', async (way) => {
    await run(({ session }) => void (session.a = 1));
    const seen = await run(async (req) => {
      const { session } = req;
      if (way === 'null') req.session = null;
      else await session.destroy();
      const [first] = await calledBack((done) => session.destroy(done));
      const [reloaded, regenerated] = [
        await calledBack((done) => session.reload(done)),
        await calledBack((done) => session.regenerate(done)),
      ].map(([error]) => (error as Error).message);
      return [first ?? null, reloaded, regenerated, await session.save()];
    });
    expect(seen).toEqual([
      null,
      'failed to load session',
      expect.stringContaining('The session was ended in this request'),
      'gone',
    ]);
    expect(agent.cookie('SESSION')).toBeUndefined();
  });

  it.each(['destroy()', 'null'])('ends every session that the request presents, by %s', async (way) => {
    const strict = await startApp({ controllers: [StepController], express: { unset: 'destroy' } });
    const browsers = [strict.agent(), strict.agent()];
    for (const browser of browsers) await run(({ session }) => void (session.a = 1), browser);
    const cookie = browsers.map((each) => `SESSION=${each.cookie('SESSION')}`).join('; ');
    const both = new HttpAgent(strict.origin, { headers: { cookie } });
    await run(way === 'null' ? (req) => void (req.session = null) : (req) => req.session.destroy().then(() => 1), both);
    const left = await Promise.all(browsers.map((each) => run(({ session }) => session.isNew as boolean, each.fork())));
    expect(left).toEqual([true, true]);
  });

  it('unsets req.session at once, even if the store fails later, each time', async () => {
    const store = new GatedStore();
    app = await startApp({ controllers: [StepController], store: store.module });
    agent = app.agent();
    for (let visit = 1; visit <= 2; visit++) {
      await run(({ session }) => void (session.a = visit));
      const seen = await run(async (req) => {
        const writing = store.gate('write');
        const called = calledBack((done) => req.session.destroy(done));
        const states = [req.session];
        await writing.reached();
        states.push(req.session);
        writing.fail(STORE_FAILURE);
        const [error] = await called;
        states.push(req.session);
        store.repair();
        return [(error as Error).message, states.every((state) => state === undefined)];
      });
      expect(seen).toEqual([STORE_FAILURE.message, true]);
      // The end of the request tries once more.
      expect(agent.cookie('SESSION')).toBeUndefined();
    }
  });

  describe('of a session in which another request has signed somebody in meanwhile', () => {
    /** The response to `step`, whose request has loaded the session of a visitor before. */
    async function afterLogin(step: Step<unknown>) {
      app = await startApp({ controllers: [StepController], express: { principal: (session: any) => session.user } });
      agent = app.agent();
      await run(({ session }) => void (session.a = 1));
      const gate = new Gate();
      const late = request(agent.fork(), async (req) => {
        await gate.pass();
        return step(req);
      });
      await gate.reached();
      await run(async ({ session }) => {
        session.signIn('ann');
        session.user = 'ann';
      });
      gate.open();
      const response = await late;
      expect(await run(({ session }) => session.principalName)).toBe('ann');
      expect(response.setCookies).toEqual([]);
      return response;
    }

    it('calls back with an error, and ends nothing', async () => {
      const response = await afterLogin(async (req) => {
        const [error] = await calledBack((done) => req.session.destroy(done));
        return [error instanceof SessionGoneError, req.session === undefined];
      });
      expect([response.status, response.json()]).toEqual([200, { result: [true, true] }]);
    });

    it('rejects, and leaves the response to who handles that', async () => {
      const response = await afterLogin((req) => req.session.destroy().catch((error: Error) => error.name));
      expect([response.status, response.json()]).toEqual([200, { result: 'SessionGoneError' }]);
    });

    it.each([
      ['at once', () => undefined],
      ['after some time', () => new Promise((resolve) => setTimeout(resolve, 20))],
    ])('makes the response a 409 where nobody awaits it, and the handler returns %s', async (_, work) => {
      const response = await afterLogin(async (req) => {
        void req.session.destroy();
        await work();
      });
      expect(response.status).toBe(409);
    });
  });

  it('is not undone by a slow request of the same session', async () => {
    await run(({ session }) => void (session.a = 1));
    await during((req) => calledBack((done) => req.session.destroy(done)));
    expect(await run(({ session }) => session.isNew)).toBe(true);
  });
});

describe('reload()', () => {
  it('loads the session again into another object, without the changes that were not saved', async () => {
    await run(({ session }) => void (session.n = { a: 1 }));
    const seen = await run(async (req) => {
      const previous = req.session;
      previous.n.a = 2;
      previous.lost = 1;
      await run(({ session }) => void (session.other = 3), agent.fork());
      const args = await calledBack((done) => previous.reload(done));
      return [args, previous === req.session, { ...req.session, cookie: undefined }, previous.lost];
    });
    expect(seen).toEqual([[], false, { n: { a: 1 }, other: 3 }, 1]);
    expect(await run(({ session }) => ({ ...session, cookie: undefined }))).toEqual({ n: { a: 1 }, other: 3 });
  });

  it('keeps the token of a session that this request has created', async () => {
    await run(async ({ session }) => {
      session.a = 1;
      await session.save();
      await session.reload();
    });
    expect(await run(({ session }) => session.a)).toBe(1);
  });

  it('leaves req.session as it is until the store has replied, and when the store fails', async () => {
    const store = new GatedStore();
    app = await startApp({ controllers: [StepController], store: store.module });
    agent = app.agent();
    await run(({ session }) => void (session.n = { a: 1 }));
    const seen = await run(async (req) => {
      const { session } = req;
      const loading = store.gate('load');
      const called = calledBack((done) => session.reload(done));
      await loading.reached();
      session.n.a = 2;
      loading.fail(STORE_FAILURE);
      const [error] = await called;
      store.repair();
      session.b = 3;
      return [(error as Error).message, req.session === session];
    });
    expect(seen).toEqual([STORE_FAILURE.message, true]);
    expect(await run(({ session }) => ({ ...session, cookie: undefined }))).toEqual({ n: { a: 2 }, b: 3 });
  });

  it.each<[string, (request: StepRequest) => unknown, object | null]>([
    ['destroy()', ({ session }) => session.destroy(), null],
    ['signOut()', ({ session }) => session.signOut(), {}],
    ['regenerate()', ({ session }) => session.regenerate(), {}],
  ])('fails after %s in the meantime, and brings nothing back', async (_, act, shown) => {
    const store = new GatedStore();
    app = await startApp({ controllers: [StepController], store: store.module });
    agent = app.agent();
    await run(({ session }) => void (session.a = 1));
    const seen = await run(async (req) => {
      const loading = store.gate('load');
      const called = calledBack((done) => req.session.reload(done));
      await loading.reached();
      // Whatever it writes comes after the reply to the load.
      const writing = store.gate('write');
      const acting: unknown = act(req);
      loading.open();
      const [error] = await called;
      writing.open();
      await acting;
      return [(error as Error | undefined)?.message, req.session ? { ...req.session, cookie: undefined } : null];
    });
    expect(seen).toEqual(['failed to load session', shown]);
  });

  it('fails when there is no session in the store', async () => {
    const messages = await run(async ({ session }) => {
      const [first] = await calledBack((done) => session.reload(done));
      session.a = 1;
      await session.save();
      await app.app.get(IndexedSessionRepository, { strict: false }).deleteById(session.id);
      const [second] = await calledBack((done) => session.reload(done));
      return [first, second].map((error) => (error as Error).message);
    });
    expect(messages).toEqual(['failed to load session', 'failed to load session']);
  });
});

describe('save()', () => {
  it('stores the session before the callback, and returns the session', async () => {
    const seen = await run(async ({ session }) => {
      session.a = 1;
      let returned: unknown;
      const args = await calledBack((done) => (returned = session.save(done)));
      const found = await app.app.get(IndexedSessionRepository, { strict: false }).findById(session.id);
      return [args, typeof (returned as any).then, (returned as any).id === session.id, found?.getAttribute('a')];
    });
    expect(seen).toEqual([[], 'undefined', true, 1]);
  });

  it('returns a promise without a callback', async () => {
    expect(await run(({ session }) => ((session.a = 1), session.save()))).toBe('saved');
  });

  it('has a parameter on the prototype, by which grant tells whether it can wait', async () => {
    expect(await run(({ session }) => Object.getPrototypeOf(session).save.length)).toBe(1);
  });

  it('does not bring back a session that has ended', async () => {
    await run(({ session }) => void (session.a = 1));
    const seen = await run(async ({ session }) => {
      await app.app.get(IndexedSessionRepository, { strict: false }).deleteById(session.id);
      session.a = 2;
      return [await calledBack((done) => session.save(done)), await session.save()];
    });
    expect(seen).toEqual([[], 'gone']);
    expect(await run(({ session }) => session.isNew)).toBe(true);
  });
});

describe.each(['save', 'destroy'])('%s() that nobody awaits', (method) => {
  const unhandled: unknown[] = [];
  const record = (reason: unknown) => void unhandled.push(reason);

  beforeEach(() => {
    unhandled.length = 0;
    process.on('unhandledRejection', record);
  });
  afterEach(() => process.off('unhandledRejection', record));

  it('ends no process when the store fails: the response is a 503, as it is with a callback', async () => {
    const store = new GatedStore();
    app = await startApp({ controllers: [StepController], store: store.module });
    agent = app.agent();
    await run(({ session }) => void (session.a = 1));
    store.break('write');
    const { status } = await request(agent, ({ session }) => {
      session.a = 2;
      void session[method]();
    });
    expect(status).toBe(503);
    // Node.js reports a rejection a turn later.
    await new Promise(setImmediate);
    expect(unhandled).toEqual([]);
    store.repair();
  });
});

describe('touch() and resetMaxAge()', () => {
  it('return the session', async () => {
    expect(
      await run(({ session }) => [session.touch().id === session.id, session.resetMaxAge().id === session.id]),
    ).toEqual([true, true]);
  });
});

describe('cookie', () => {
  it('shows the attributes of the session cookie', async () => {
    const cookie = await run(({ session }) => ({ ...session.cookie.data, text: session.cookie.serialize('a', 'b') }));
    expect(cookie).toEqual({
      originalMaxAge: null,
      expires: null,
      path: '/',
      httpOnly: true,
      secure: false,
      sameSite: 'lax',
      partitioned: false,
      text: 'a=b; Path=/; HttpOnly; SameSite=Lax',
    });
  });

  it('with a maxAge gives the session and its cookie that lifetime', async () => {
    const response = await request(agent, ({ session }) => {
      session.a = 1;
      session.cookie.maxAge = 3_600_000;
      return [session.cookie.originalMaxAge, session.cookie.expires instanceof Date];
    });
    expect(response.json()).toEqual({ result: [3_600_000, true] });
    expect(response.setCookies[0]).toContain('Max-Age=3600');
    const [interval, original, left] = await run(({ session }) => [
      session.maxInactiveInterval,
      session.cookie.originalMaxAge,
      session.cookie.maxAge,
    ]);
    expect([interval, original]).toEqual([3600, 3_600_000]);
    expect(left).toBeGreaterThan(3_590_000);
    expect(left).toBeLessThanOrEqual(3_600_000);
  });

  it('is sent again when the lifetime of a session is changed, and only then', async () => {
    await run(({ session }) => void (session.a = 1));
    const change = (value: number | Date | null) =>
      request(agent, ({ session }) => void (session.cookie.maxAge = value));
    const token = agent.cookie('SESSION');
    const first = await change(3_600_000);
    expect(first.setCookies).toEqual([expect.stringContaining(`SESSION=${token}; Max-Age=3600`)]);
    expect((await change(3_600_000)).setCookies).toEqual([]);
    expect(
      (await request(agent, ({ session }) => void (session.cookie.expires = new Date(Date.now() + 3_600_000))))
        .setCookies,
    ).toEqual([]);
    const last = await change(null);
    expect(last.setCookies).toEqual([expect.not.stringContaining('Max-Age')]);
    expect(await run(({ session }) => [session.maxInactiveInterval, session.cookie.expires])).toEqual([1800, null]);
  });

  it('is sent once for a lifetime that is longer than browsers keep a cookie, also when each request sets it', async () => {
    const visit = () => request(agent, ({ session }) => void (session.cookie.maxAge = 500 * 24 * 3_600_000));
    await run(({ session }) => void (session.a = 1));
    expect((await visit()).setCookies).toEqual([expect.stringContaining(`Max-Age=${400 * 24 * 3600}`)]);
    expect((await visit()).setCookies).toEqual([]);
  });

  it('with expires=false ends with the browser', async () => {
    await run(({ session }) => {
      session.a = 1;
      session.cookie.maxAge = 3_600_000;
      session.cookie.expires = false;
    });
    expect(await run(({ session }) => [session.cookie.maxAge, session.cookie.originalMaxAge])).toEqual([null, null]);
  });

  it('with a maxAge of 0 ends the session', async () => {
    await run(({ session }) => void (session.a = 1));
    await run(({ session }) => void (session.cookie.maxAge = 0));
    expect(agent.cookie('SESSION')).toBeUndefined();
  });

  it('by itself does not make a visitor have a session', async () => {
    const response = await request(agent, ({ session }) => void (session.cookie.maxAge = 3_600_000));
    expect(response.setCookies).toEqual([]);
  });

  it('refuses other attributes for one session, and says where they are set', async () => {
    const messages = await run(({ session }) =>
      ['secure', 'path', 'priority'].map((name) => {
        try {
          session.cookie[name] = 'x';
          return '';
        } catch (error) {
          return (error as Error).message;
        }
      }),
    );
    expect(messages).toEqual(
      ['secure', 'path', 'priority'].map((name) =>
        expect.stringContaining(`set the option \`cookie.${name}\` in SessionModule`),
      ),
    );
  });

  it('keeps httpOnly and secure where code would switch them off for one session', async () => {
    const { setCookies } = await request(agent, ({ session }) => {
      session.a = 1;
      Object.assign(session.cookie, { httpOnly: false, secure: false });
      return [session.cookie.httpOnly, session.cookie.secure];
    });
    expect(setCookies).toEqual([expect.stringContaining('HttpOnly')]);
    await expect(run(({ session }) => void (session.cookie.secure = true))).rejects.toThrow(
      'set the option `cookie.secure`',
    );
  });

  it('has the lifetime of an assigned originalMaxAge in the response, as in express-session', async () => {
    const day = 24 * 3_600_000;
    const remember = (days: number) =>
      request(agent, ({ session }) => {
        session.a = 1;
        const before = session.cookie.maxAge;
        session.cookie.originalMaxAge = days * day;
        // `maxAge` counts down, so that two reads differ where a millisecond passed between them.
        const kept = Math.abs(before - session.cookie.maxAge) < day / 2;
        return [kept, session.touch().cookie.maxAge > (days - 1) * day];
      });
    for (const days of [30, 60]) {
      const response = await remember(days);
      expect(response.json()).toEqual({ result: [true, true] });
      expect(response.setCookies).toEqual([expect.stringContaining(`Max-Age=${days * 86_400}`)]);
      expect(await run(({ session }) => session.maxInactiveInterval)).toBe(days * 86_400);
    }
  });

  it('is copied from another session, as Passport does, and taken from nothing else', async () => {
    await run(({ session }) => {
      session.a = 1;
      session.cookie.maxAge = 3_600_000;
    });
    await run(async (req) => {
      const { cookie } = req.session;
      await req.session.regenerate();
      req.session.cookie = cookie;
      req.session.cookie = { originalMaxAge: 1e12, maxAge: -1, httpOnly: false };
      expect(() => (req.session.cookie = null)).toThrow('Only the cookie of another session');
    });
    expect(await run(({ session }) => session.cookie.originalMaxAge)).toBe(3_600_000);
  });

  it('refuses a maxAge that is no number', async () => {
    await expect(run(({ session }) => void (session.cookie.maxAge = '1h'))).rejects.toThrow('takes milliseconds');
  });

  it.each<[what: string, name: string, value: unknown, message: string | undefined]>([
    ['no number', 'maxAge', NaN, undefined],
    ['no number either', 'originalMaxAge', NaN, undefined],
    ['infinite', 'maxAge', Infinity, undefined],
    ['an invalid date', 'expires', new Date(NaN), undefined],
    [
      'longer than a timeout can be',
      'maxAge',
      2 ** 31 * 1000,
      'cookie.maxAge takes at most 2147483647000 milliseconds',
    ],
  ])('keeps its lifetime when it is given one that is %s', async (_, name, value, message) => {
    await run(({ session }) => {
      session.a = 1;
      session.cookie.maxAge = 3_600_000;
      const { expires } = session.cookie;
      const assign = () => (session.cookie[name] = value);
      if (message === undefined) assign();
      else expect(assign).toThrow(message);
      expect([session.cookie.originalMaxAge, session.cookie.expires]).toEqual([3_600_000, expires]);
    });
    expect(await run(({ session }) => session.maxInactiveInterval)).toBe(3600);
  });

  it('keeps its lifetime when the session has been ended', async () => {
    const lifetime = await run(({ session }) => {
      const { cookie } = session;
      session.invalidate();
      expect(() => (cookie.maxAge = 3_600_000)).toThrow('was ended in this request');
      return cookie.originalMaxAge;
    });
    expect(lifetime).toBeNull();
  });

  it('can live as long as a timeout can be', async () => {
    await run(({ session }) => {
      session.a = 1;
      session.cookie.maxAge = (2 ** 31 - 1) * 1000;
    });
    expect(await run(({ session }) => session.maxInactiveInterval)).toBe(2 ** 31 - 1);
  });
});

describe('req.session = null', () => {
  it('keeps the session in the store and drops the changes of the request', async () => {
    await run(({ session }) => void (session.a = { n: 1 }));
    const seen = await run((req) => {
      req.session.a.n = 2;
      req.session.b = 1;
      req.session = null;
      return req.session;
    });
    expect(seen).toBeNull();
    expect(await run(({ session }) => ({ ...session, cookie: undefined }))).toEqual({ a: { n: 1 } });
  });

  it('stores nothing of a new session', async () => {
    const response = await request(agent, (req) => {
      req.session.a = 1;
      req.session = null;
    });
    expect(response.setCookies).toEqual([]);
  });

  it('drops a sign-in after regenerate(), which stays', async () => {
    await run(({ session }) => session.signIn('bob'));
    const old = agent.cookie('SESSION');
    await run(async (req) => {
      await req.session.regenerate();
      req.session.signIn('ann');
      req.session = null;
    });
    expect(agent.cookie('SESSION')).not.toBe(old);
    const seen = await run(({ session }) => [
      session.isNew,
      session.principalName ?? null,
      session.authenticatedAt ?? null,
    ]);
    expect(seen).toEqual([false, null, null]);
  });

  it('with `unset: destroy` ends the session at the end of the request', async () => {
    app = await startApp({ controllers: [StepController], express: { unset: 'destroy' } });
    agent = app.agent();
    await run(({ session }) => void (session.a = 1));
    await run((req) => void (req.session = null));
    expect(agent.cookie('SESSION')).toBeUndefined();
  });

  it.each(['used', 'not used'])(
    'may be written as `delete req.session`, of a session that is %s before',
    async (use) => {
      const forget = (req: any) => {
        if (use === 'used') req.session.b = 1;
        delete req.session;
        return req.session ?? null;
      };
      await run(({ session }) => void (session.a = 1));
      expect(await run(forget)).toBeNull();
      expect(await run(({ session }) => ({ ...session, cookie: undefined }))).toEqual({ a: 1 });

      app = await startApp({ controllers: [StepController], express: { unset: 'destroy' } });
      agent = app.agent();
      await run(({ session }) => void (session.a = 1));
      const kept = agent.fork();
      expect(await run(forget)).toBeNull();
      expect(agent.cookie('SESSION')).toBeUndefined();
      expect(await run(({ session }) => session.isNew as boolean, kept)).toBe(true);
    },
  );

  it.each(['keep', 'destroy'] as const)(
    'does nothing more after destroy(), nor when it is set again, with %s',
    async (unset) => {
      app = await startApp({ controllers: [StepController], express: { unset } });
      agent = app.agent();
      for (let visit = 0; visit < 2; visit++) {
        await run(({ session }) => void (session.a = 1));
        const seen = await run(async (req) => {
          await calledBack((done) => req.session.destroy(done));
          const values: unknown[] = [];
          for (const value of [null, undefined, null]) {
            req.session = value;
            values.push(req.session === value);
          }
          return values;
        });
        expect(seen).toEqual([true, true, true]);
        expect(agent.cookie('SESSION')).toBeUndefined();
      }
    },
  );

  it('accepts the session itself, and no other object', async () => {
    await run((req) => {
      req.session = req.session || {};
      req.session.a = 1;
    });
    await expect(run((req) => void (req.session = {}))).rejects.toThrow(
      /req\.session cannot be replaced by another object.*another library.*Assigned at .*methods\.spec/,
    );
    expect(await run(({ session }) => session.a)).toBe(1);
  });
});

describe('req.sessionID', () => {
  it('is the id of the session, which opens no session, and cannot be assigned', async () => {
    await run(({ session }) => void (session.a = 1));
    const ids = await run((req) => [req.sessionID, req.session.id]);
    expect(ids[0]).toBe(ids[1]);
    expect(ids[0]).not.toBe(agent.cookie('SESSION'));
    await expect(run((req) => void ((req as any).sessionID = 'x'))).rejects.toThrow('cannot be assigned');
  });
});

describe('req.sessionStore', () => {
  it('reads and ends other sessions', async () => {
    const id = await run(({ session, sessionID }) => ((session.a = 1), sessionID));
    const other = app.agent();
    const seen = await run(async ({ sessionStore }) => {
      const [, found] = await calledBack((done) => sessionStore.get(id, done));
      const [failure] = await calledBack((done) => sessionStore.destroy(id, done));
      const [, none] = await calledBack((done) => sessionStore.load(id, done));
      return [found, failure, none];
    }, other);
    expect(seen).toEqual([{ a: 1, cookie: expect.objectContaining({ path: '/', httpOnly: true }) }, null, null]);
    expect(await run(({ session }) => session.isNew)).toBe(true);
  });

  it('gives other sessions the cookie that they have, whose lifetime begins with the last access', async () => {
    const read = (id: string) =>
      run(async ({ sessionStore }) => {
        const [, found] = await calledBack((done) => sessionStore.get(id, done));
        const { originalMaxAge, expires, maxAge, secure, sameSite } = (found as any).cookie;
        return { originalMaxAge, expires: expires as Date | null, isLeft: maxAge > 0, secure, sameSite };
      }, app.agent());
    const id = await run(({ session, sessionID }) => ((session.a = 1), sessionID));
    const untilClosed = { originalMaxAge: null, expires: null, isLeft: false };
    expect(await read(id)).toEqual({ ...untilClosed, secure: false, sameSite: 'lax' });
    const accessed = await run(({ session }) => {
      session.cookie.maxAge = 3_600_000;
      return session.lastAccessedTime as number;
    });
    // Redis and this process may round the time of the access differently, so let more than that pass.
    const saved = Date.now();
    await eventually(() => Date.now() > saved + 20);
    const later = await read(id);
    expect(later).toMatchObject({ originalMaxAge: 3_600_000, isLeft: true });
    expect(Date.parse(String(later.expires))).toBeGreaterThanOrEqual(accessed + 3_600_000);
    expect(Date.parse(String(later.expires))).toBeLessThanOrEqual(saved + 3_600_000);
  });

  it('regenerates the session of a request', async () => {
    await run(({ session }) => void (session.a = 1));
    await run((req) => calledBack((done) => req.sessionStore.regenerate(req, done)));
    expect(await run(({ session }) => [session.isNew, Object.keys(session)])).toEqual([false, ['cookie']]);
  });
});
