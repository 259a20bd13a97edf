import {
  Authenticated,
  IndexedSessionRepository,
  type Session,
  SessionContext,
  SessionRepository,
  Sessions,
} from '@nest-session/core';
import { RedisSessionModule } from '@nest-session/redis';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { RedisServer, sessionOf } from '@nest-session/testing';
import { Controller, Get, Injectable } from '@nestjs/common';
import type { ExpressSessionModuleOptions } from '../../src/index.js';
import { closeApps, startApp } from '../support/express-session.app.js';
import { logInByPassport } from '../support/passport-login.js';
import { request, runIn, type Step, StepController } from '../support/step.controller.js';

LeakGuard.install();
afterEach(closeApps);

let redis: RedisServer;
beforeAll(async () => (redis = await RedisServer.start()));
afterAll(() => redis.stop());

@Controller()
class PrivateController {
  @Get('private')
  @Authenticated()
  see() {
    return 'yours';
  }
}

@Injectable()
class CartService {
  constructor(readonly context: SessionContext) {}
}

const byAccount: ExpressSessionModuleOptions['principal'] = (session) => session['account'] as string;

let started = 0;

async function start(
  store: 'memory' | 'Redis',
  principal: ExpressSessionModuleOptions['principal'],
  namespace = `test:${started++}`,
) {
  const { app, agent, log } = await startApp({
    controllers: [StepController, PrivateController],
    providers: [CartService],
    express: { principal },
    ...(store === 'Redis' && { store: RedisSessionModule.forRoot({ url: redis.url, namespace }) }),
  });
  const client = agent();
  const parts = {
    context: app.get(CartService).context,
    sessions: app.get(Sessions, { strict: false }),
    repository: app.get(SessionRepository, { strict: false }),
  };
  const indexed = app.get(IndexedSessionRepository, { strict: false });
  const stored = async () => (await sessionOf(app, client))!;
  return {
    parts,
    client,
    agent,
    log,
    stored,
    run: <T>(step: Step<T>) => runIn(client, step),
    request: (step: Step<unknown>) => request(client, step),
    isIn: async (who = client) => (await who.get('/private')).status === 200,
    count: async (name: string) => (await indexed.findByPrincipalName(name)).length,
    who: async () => (await stored()).principalName,
    content: async (name: string) => (await stored()).getAttribute(name),
  };
}

type Parts = Awaited<ReturnType<typeof start>>['parts'];
type Write = (session: Session, name: string, value: unknown) => unknown;

const set: Write = (session, name, value) => session.setAttribute(name, value);
const update: Write = (session, name, value) => session.updateAttribute(name, () => value);

async function saved(session: Session | null, name: string, value: unknown, write: Write) {
  await write(session!, name, value);
  await session!.save();
}

/** Other ways to a session than `req.session`, which the request does not use. */
const WAYS: Record<string, (parts: Parts, req: any, name: string, value: unknown) => unknown> = {
  'SessionContext and setAttribute()': ({ context }, _req, ...change) => set(context.session, ...change),
  'SessionContext and updateAttribute()': ({ context }, _req, ...change) => update(context.session, ...change),
  'Sessions.load() and setAttribute()': async ({ sessions }, req, ...change) =>
    saved(await sessions.load(req), ...change, set),
  'Sessions.load() and updateAttribute()': async ({ sessions }, req, ...change) =>
    saved(await sessions.load(req), ...change, update),
};

const OUTSIDE: Record<string, Write> = {
  'setAttribute()': set,
  'updateAttribute()': update,
};

describe.each(['memory', 'Redis'] as const)('in the store %s', (store) => {
  describe.each(Object.keys(WAYS))('%s', (way) => {
    const write = WAYS[way]!;

    it.each([{ user: 'admin' }, 'admin', { user: { id: 'admin' } }])(
      'signs in nobody by %j where Passport keeps its users',
      async (user) => {
        const { parts, run, request, isIn, content, count } = await start(store, 'passport');
        await run(({ session }) => void (session.cart = 1));
        await request((req) => write(parts, req, 'passport', user));
        expect([await content('passport'), await content('cart'), await count('admin'), await isIn()]).toEqual([
          undefined,
          1,
          0,
          false,
        ]);
        await run((req) => logInByPassport(req, 'mallory'));
        await request((req) => write(parts, req, 'passport', user));
        expect([await content('passport'), await count('mallory'), await count('admin')]).toEqual([
          { user: 'mallory' },
          1,
          0,
        ]);
      },
    );

    it('never signs a user in to the session of who planted it, by a function as the option `principal`', async () => {
      const { parts, run, request, client, isIn, count } = await start(store, byAccount);
      await run(({ session }) => void (session.cart = 1));
      const planted = client.fork();
      await request((req) => write(parts, req, 'account', 'ann'));
      expect(await isIn(planted)).toBe(false);
      const isSignedIn = !way.includes('updateAttribute');
      expect([await isIn(), await count('ann')]).toEqual(isSignedIn ? [true, 1] : [false, 0]);
    });

    it('leaves nobody signed in whose property is gone', async () => {
      const { parts, run, request, isIn, count, content } = await start(store, byAccount);
      await run(({ session }) => void (session.account = 'ann'));
      const response = await request((req) => write(parts, req, 'account', undefined));
      const isOut = (await content('account')) === undefined;
      expect([await isIn(), await count('ann')]).toEqual(isOut ? [false, 0] : [true, 1]);
      if (way.includes('updateAttribute')) expect(response.text).toContain('would change the principal of the session');
      else expect(isOut).toBe(true);
    });
  });

  describe('outside of a request, by SessionRepository.findById() and', () => {
    it.each(Object.keys(OUTSIDE))('%s, a user of Passport is refused', async (way) => {
      const { parts, run, stored, content } = await start(store, 'passport');
      await run(({ session }) => void (session.cart = 1));
      const save = async () =>
        saved(await parts.repository.findById((await stored()).id), 'passport', { user: 'admin' }, OUTSIDE[way]!);
      await expect(save()).rejects.toThrow(/"passport"/);
      // Also where a handler does it.
      await expect(run(save)).rejects.toThrow(/"passport"/);
      expect(await content('passport')).toBeUndefined();
    });

    it('setAttribute(), a login is refused, because no other id can be sent', async () => {
      const { parts, run, stored, isIn, count } = await start(store, byAccount);
      await run(({ session }) => void (session.cart = 1));
      const { id } = await stored();
      for (const account of ['ann', 'bob']) {
        const session = await parts.repository.findById(id);
        await expect(saved(session, 'account', account, set)).rejects.toThrow(
          expect.objectContaining({
            name: 'SessionStateError',
            message: expect.stringContaining('Do it in an HTTP request'),
          }),
        );
      }
      expect([await count('ann'), await isIn()]).toEqual([0, false]);
    });

    it('removeAttribute(), a logout takes effect', async () => {
      const { parts, run, stored, isIn, count } = await start(store, byAccount);
      await run(({ session }) => void (session.account = 'ann'));
      const session = (await parts.repository.findById((await stored()).id))!;
      session.removeAttribute('account');
      await session.save();
      expect([await count('ann'), await isIn()]).toEqual([0, false]);
    });

    it('removeAttribute(), a logout from Passport takes effect', async () => {
      const { parts, run, stored, isIn, count } = await start(store, 'passport');
      await run((req) => logInByPassport(req, 'ann'));
      const session = (await parts.repository.findById((await stored()).id))!;
      session.removeAttribute('passport');
      await session.save();
      expect([await count('ann'), await isIn()]).toEqual([0, false]);
    });

    it('setAttribute(), all else is saved', async () => {
      const { parts, run, stored, isIn, content } = await start(store, byAccount);
      await run(({ session }) => void (session.account = 'ann'));
      await saved(await parts.repository.findById((await stored()).id), 'cart', 2, set);
      expect([await content('cart'), await isIn()]).toEqual([2, true]);
    });
  });

  it('a new session has the principal of its properties', async () => {
    const { parts, count } = await start(store, byAccount);
    const session = parts.repository.createSession();
    session.setAttribute('account', 'ann');
    await session.save();
    expect(await count('ann')).toBe(1);
  });
});

it('a session from before the option is saved outside of a request, without a principal', async () => {
  const before = await start('Redis', false, 'before');
  await before.run(({ session }) => void (session.account = 'eve'));
  const { id } = await before.stored();
  await closeApps();
  const { parts, count } = await start('Redis', byAccount, 'before');
  await saved(await parts.repository.findById(id), 'cart', 3, set);
  expect((await parts.repository.findById(id))!.getAttribute('cart')).toBe(3);
  expect(await count('eve')).toBe(0);
});
