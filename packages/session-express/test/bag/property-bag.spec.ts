import { inspect } from 'node:util';
import { Controller, Get, Inject, Req } from '@nestjs/common';
import { SessionContext } from '@nest-session/core';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { closeApps, type ExpressSessionApp, startApp } from '../support/express-session.app.js';
import { request, runIn, type Step, StepController, type StepRequest } from '../support/step.controller.js';

LeakGuard.install();
afterEach(closeApps);

describe.each(['express', 'fastify'] as const)('req.session on %s', (platform) => {
  let app: ExpressSessionApp;
  let agent: ReturnType<ExpressSessionApp['agent']>;
  let run: <T>(step: Step<T>) => Promise<Awaited<T>>;
  beforeEach(async () => {
    app = await startApp({ platform, controllers: [StepController] });
    agent = app.agent();
    run = (step) => runIn(agent, step);
  });

  it('keeps what is assigned to its properties', async () => {
    await run(({ session }) => void (session.user = { name: 'ann' }));
    expect(await run(({ session }) => session.user)).toEqual({ name: 'ann' });
  });

  it('loses what is deleted, and what is set to undefined or null', async () => {
    await run(({ session }) => void Object.assign(session, { a: 1, b: 2, c: 3, d: 4 }));
    await run(({ session }) => {
      delete session.a;
      delete session.unknown;
      session.b = undefined;
      session.c = null;
    });
    expect(await run(({ session }) => Object.keys(session))).toEqual(['cookie', 'd']);
  });

  it('is an object with the attributes and the cookie as its properties', async () => {
    await run(({ session }) => void Object.assign(session, { a: 1, b: [2] }));
    expect(
      await run(({ session }) => {
        const { a, ...rest } = session;
        const inLoop = [];
        for (const name in session) inLoop.push(name);
        return { a, rest: Object.keys(rest), keys: Object.keys(session), inLoop, copy: { ...session }.b };
      }),
    ).toEqual({ a: 1, rest: ['cookie', 'b'], keys: ['cookie', 'a', 'b'], inLoop: ['cookie', 'a', 'b'], copy: [2] });
    expect(
      await run(({ session }) => [
        'a' in session,
        'x' in session,
        'save' in session,
        Object.hasOwn(session, 'b'),
        Object.hasOwn(session, 'x'),
        Object.hasOwn(session, 'save'),
      ]),
    ).toEqual([true, false, true, true, false, false]);
  });

  it('is written by JSON.stringify() as its properties, and printed without them', async () => {
    const text = await run(({ session }) => {
      session.secret = 'hidden value';
      return [JSON.stringify(session), inspect(session), `${String(session)}`];
    });
    expect(JSON.parse(text[0]!)).toEqual({ cookie: expect.objectContaining({ path: '/' }), secret: 'hidden value' });
    expect(text.slice(1).join()).not.toContain('hidden value');
    expect(text[1]).toContain("attributeNames: [ 'secret' ]");
  });

  it('takes properties that are defined, and refuses accessors', async () => {
    await run(({ session }) => {
      Object.defineProperty(session, 'a', { value: 1 });
      expect(() => Object.defineProperty(session, 'b', { get: () => 1 })).toThrow(TypeError);
    });
    expect(await run(({ session }) => Object.keys(session))).toEqual(['cookie', 'a']);
  });

  it('notices nested objects that are changed in place', async () => {
    await run(({ session }) => void (session.cart = { items: ['a'], by: { id: 1 } }));
    await run(({ session }) => {
      session.cart.items.push('b');
      delete session.cart.by.id;
    });
    expect(await run(({ session }) => session.cart)).toEqual({ items: ['a', 'b'], by: {} });
  });

  it('notices an object that is changed after it was assigned', async () => {
    await run(({ session }) => {
      const cart: Record<string, unknown> = (session.cart = session.cart || {});
      cart['items'] = ['a'];
    });
    expect(await run(({ session }) => session.cart)).toEqual({ items: ['a'] });
  });

  it('writes only what changed, so that parallel requests lose nothing', async () => {
    await run(({ session }) => void Object.assign(session, { a: 0, b: 0 }));
    const order: (() => void)[] = [];
    const changing = (name: string) =>
      run(async ({ session }) => {
        await new Promise<void>((resolve) => (order.push(resolve), order.length === 2 && order.forEach((go) => go())));
        session[name] = 1;
      });
    await Promise.all([changing('a'), changing('b')]);
    expect(await run(({ session }) => [session.a, session.b])).toEqual([1, 1]);
  });

  it('is a view on the session, with updateAttribute() beside it', async () => {
    await run(({ session }) => void (session.n = 1));
    const seen = await run(async ({ session }) => {
      session.other = 'x';
      const next = await session.updateAttribute('n', (n: number) => n + 1);
      return [next, session.n, session.getAttribute('other'), session.isNew];
    });
    expect(seen).toEqual([2, 2, 'x', false]);
    expect(await run(({ session }) => [session.n, session.other])).toEqual([2, 'x']);
  });

  it('shows the timeouts and the principal of the session, and has no property for them', async () => {
    await run(({ session }) => {
      session.a = 1;
      session.signIn('ann');
    });
    await run(({ session }) => void (session.cookie.maxAge = 600_000));
    expect(await run(({ session }) => [session.maxInactiveInterval, session.principalName])).toEqual([600, 'ann']);
    expect(await run(({ session }) => Reflect.ownKeys(session).filter((key) => typeof key === 'string'))).toEqual([
      'cookie',
      'a',
    ]);
  });

  it.each([
    ['principalName', 'admin', 'call req.session.signIn(name) or signOut()'],
    ['maxInactiveInterval', 2_147_483_647, 'set req.session.cookie.maxAge'],
    ['absoluteTimeout', -1, 'set absoluteTimeout of the session in SessionContext'],
  ])('refuses %s, which a client could name in a body, and says what to write', async (name, value, instead) => {
    const body = JSON.stringify({ theme: 'dark', [name]: value });
    const state = ({ session }: StepRequest) => [session.theme, session[name]] as unknown[];
    await run(({ session }) => void (session.theme = 'light'));
    const before = await run(state);
    await expect(run(({ session }) => void Object.assign(session, JSON.parse(body)))).rejects.toThrow(
      `TypeError: req.session.${name} cannot be assigned: ${instead}`,
    );
    expect(await run(state)).toEqual(['dark', before[1]]);
  });

  it.each([
    '{"__proto__":{"polluted":1}}',
    '{"constructor":{"prototype":{"polluted":1}}}',
    '{"save":{"polluted":1}}',
    '{"save":{"bind":1}}',
    '{"save":{"constructor":{"prototype":{"polluted":1}}}}',
    '{"save":{"__proto__":{"polluted":1}}}',
    '{"save":{"call":{"polluted":1}}}',
    '{"toString":{"polluted":1}}',
    '{"hasOwnProperty":{"call":1}}',
    '{"toString":{"constructor":{"prototype":{"polluted":1}}}}',
    '{"signIn":{"constructor":{"prototype":{"polluted":1}}}}',
    '{"get":{"apply":{"polluted":1}}}',
    '{"cookie":{"__proto__":{"polluted":1}}}',
    '{"cookie":{"constructor":{"prototype":{"polluted":1}}}}',
    '{"cookie":{"serialize":{"polluted":1}}}',
    '{"cookie":{"toJSON":{"constructor":{"prototype":{"polluted":1}}}}}',
    '{"cookie":{"valueOf":{"polluted":1}}}',
  ])('lets no deep merge of %s reach other sessions', async (body) => {
    await expect(run(({ session }) => mergeDeep(session, JSON.parse(body)))).rejects.toThrow('TypeError');
    const seen = await runIn(app.agent(), ({ session }) => [
      Object.isFrozen(Object.getPrototypeOf(session)),
      [session, session.cookie, session.save, session.cookie.serialize].some((each) => 'polluted' in each),
      typeof session.save.bind(session),
      session.hasOwnProperty('a'),
      String(session),
      session instanceof Object,
    ]);
    expect(seen).toEqual([true, false, 'function', false, '[object Object]', true]);
    const { call, apply } = Function.prototype;
    expect([{}, call, apply, Object.prototype.toString].filter((each) => 'polluted' in each)).toEqual([]);
  });

  it('refuses values under the names of its members, and under names of the library', async () => {
    const problems = await run(({ session }) =>
      ['isNew', 'save', '__proto__', 'hasOwnProperty', 'nest-session.rememberMe'].map((name) => {
        try {
          session[name] = { a: 1 };
          return undefined;
        } catch (error) {
          return (error as Error).message;
        }
      }),
    );
    expect(problems).toEqual([
      expect.stringContaining('req.session.isNew is a member of the session'),
      expect.stringContaining('req.session.save is a member'),
      expect.stringContaining('req.session.__proto__ is a member'),
      expect.stringContaining('req.session.hasOwnProperty is a member'),
      expect.stringContaining('belongs to @nest-session'),
    ]);
  });

  it('lets a method be replaced, and the replacement be removed', async () => {
    expect(
      await run(({ session }) => {
        session.save = () => 'replaced';
        const replaced = session.save();
        delete session.save;
        return [replaced, Object.keys(session), typeof session.save, session.save.name];
      }),
    ).toEqual(['replaced', ['cookie'], 'function', 'save']);
  });

  it('refuses a value that cannot be stored where it is assigned', async () => {
    const message = await run(({ session }) => {
      try {
        session.x = 1n;
      } catch (error) {
        return (error as Error).message;
      }
    });
    expect(message).toMatch(/^Session attribute "x" holds what JSON.stringify\(\) refuses, such as a bigint/);
  });

  it('stores nothing and sends no cookie in a request that only reads', async () => {
    const response = await request(agent, ({ session }) => [session.x, Object.keys(session), session.cookie.maxAge]);
    expect(response.setCookies).toEqual([]);
  });

  it('is what the decorators of Nest and of the core give', async () => {
    const seen = await run(({ session }) => (session.a = 1));
    expect(seen).toBe(1);
    expect((await agent.get('/decorated')).json()).toEqual({ nest: true, core: true, a: 1 });
  });

  it('shares its session with SessionContext', async () => {
    const other = await startApp({ platform, controllers: [ContextController] });
    expect((await other.agent().get('/context')).json()).toEqual([1, 2, 28_800]);
  });
});

/** As applications write it who do not know of prototypes. */
function mergeDeep(target: any, source: any): void {
  for (const name of Object.keys(source)) {
    if (typeof source[name] === 'object') mergeDeep((target[name] ??= {}), source[name]);
    else target[name] = source[name];
  }
}

@Controller()
class ContextController {
  constructor(@Inject(SessionContext) private readonly context: SessionContext) {}

  @Get('context')
  read(@Req() { session }: StepRequest) {
    session.a = 1;
    this.context.session.setAttribute('b', 2);
    this.context.session.absoluteTimeout = '8h';
    return [this.context.session.getAttribute('a'), session.b as unknown, session.absoluteTimeout as unknown];
  }
}
