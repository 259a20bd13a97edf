import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { HttpAgent } from '@nest-session/testing';
import session from 'express-session';
import { closeApps, startApp } from '../support/express-session.app.js';
import { request, type Step, StepController } from '../support/step.controller.js';

LeakGuard.install();
afterEach(closeApps);

/** What a callback is called with, without undefined. */
const called = (call: (done: (...args: unknown[]) => void) => unknown) =>
  new Promise<unknown[]>((resolve) =>
    call((...args) => resolve(args.filter((each) => each !== undefined).map((each) => (each as Error).message))),
  );
const data = (bag: object) => ({ ...bag, cookie: undefined });

/** By what the documentation of express-session speaks of: requests of one browser, one after the other. */
const CASES: Record<string, Step<unknown>[]> = {
  'properties of req.session': [
    (req) => data(req.session),
    (req) => void Object.assign(req.session, { a: 1, b: 'x', c: { d: [1, { e: true }] }, f: false, g: 0, h: '' }),
    (req) => data(req.session),
    (req) => [Object.keys(req.session), 'a' in req.session, 'z' in req.session, typeof req.session.z],
    ({ session: { a, ...rest } }) => [a, Object.keys(rest)],
    (req) => Object.entries(req.session).filter(([name]) => name !== 'cookie'),
    (req) => [Object.hasOwn(req.session, 'a'), 'save' in req.session],
    (req) => delete req.session.a && delete req.session.missing,
    (req) => data(JSON.parse(JSON.stringify(req.session)) as object),
  ],
  'the view counter of the documentation': [
    (req) => (req.session.views = 1),
    (req) => ++req.session.views,
    (req) => ++req.session.views,
  ],
  'objects that are changed in place': [
    (req) => void (req.session.cart = { items: [] }),
    (req) => req.session.cart.items.push('a'),
    (req) => delete req.session.cart.items && (req.session.cart.total = 1),
    (req) => req.session.cart as unknown,
    (req) => {
      const list = (req.session.list = req.session.list || []);
      list.push(1);
    },
    (req) => req.session.list as unknown,
  ],
  'Session.regenerate(callback)': [
    (req) => void (req.session.a = 1),
    async (req) => {
      const previous = req.session;
      const { id } = previous;
      const args = await called((done) => previous.regenerate(done));
      return [args, previous === req.session, id === req.session.id, data(req.session), previous.a];
    },
    (req) => data(req.session),
    async (req) => {
      req.session.keep = 1;
      const previous = req.session;
      await called((done) => previous.regenerate(done));
      // As utils-merge does for Passport.
      for (const name in previous) req.session[name] = previous[name];
      req.session.added = 2;
    },
    (req) => data(req.session),
  ],
  'Session.destroy(callback)': [
    (req) => void (req.session.a = 1),
    async (req) => {
      const previous = req.session;
      return [await called((done) => previous.destroy(done)), req.session === undefined, previous.a];
    },
    (req) => data(req.session),
  ],
  'Session.reload(callback)': [
    (req) => void (req.session.a = { n: 1 }),
    async (req) => {
      const previous = req.session;
      previous.a.n = 2;
      previous.b = 1;
      const args = await called((done) => previous.reload(done));
      return [args, previous === req.session, data(req.session), previous.b];
    },
    (req) => data(req.session),
  ],
  'Session.reload(callback) without a session in the store': [(req) => called((done) => req.session.reload(done))],
  'Session.save(callback)': [
    async (req) => {
      req.session.a = 1;
      return called((done) => req.session.save(done));
    },
    (req) => data(req.session),
    async (req) => {
      req.session.a = 2;
      await called((done) => req.session.save(done));
      req.session.b = 3;
      return called((done) => req.session.save(done));
    },
    (req) => data(req.session),
  ],
  'Session.touch()': [
    (req) => [req.session.touch().id === req.session.id, req.session.resetMaxAge().id === req.session.id],
  ],
  'req.session.id and req.sessionID': [
    (req) => [typeof req.sessionID, req.sessionID === req.session.id],
    (req) => void (req.session.a = 1),
    (req) => req.sessionID === req.session.id,
  ],
  'req.session.cookie': [
    (req) => {
      const { path, httpOnly, originalMaxAge, maxAge, expires } = req.session.cookie;
      return { path, httpOnly, originalMaxAge, maxAge, expires };
    },
    (req) => Object.keys(req.session.cookie.toJSON() as object).includes('originalMaxAge'),
  ],
  'Cookie.maxAge and Cookie.originalMaxAge': [
    (req) => {
      req.session.a = 1;
      req.session.cookie.maxAge = 3_600_000;
      return [minutes(req.session.cookie.originalMaxAge), req.session.cookie.expires instanceof Date];
    },
    (req) => {
      const { maxAge, originalMaxAge } = req.session.cookie;
      return [maxAge > 3_540_000, maxAge <= 3_600_000, minutes(originalMaxAge)];
    },
    (req) => {
      req.session.cookie.expires = new Date(Date.now() + 7_200_000);
      req.session.a = 2;
      return minutes(req.session.cookie.maxAge);
    },
    (req) => minutes(req.session.cookie.originalMaxAge),
  ],
  'unset: keep': [
    (req) => void (req.session.a = 1),
    (req) => {
      req.session.a = 2;
      req.session = null;
      return req.session;
    },
    (req) => data(req.session),
  ],
};

/** express-session computes both from the clock, which goes on meanwhile. */
function minutes(milliseconds: number): number {
  return Math.round(milliseconds / 60_000);
}

@Module({})
class OldAppModule {}

async function startOld() {
  const app = await NestFactory.create({ module: OldAppModule, controllers: [StepController] }, new ExpressAdapter(), {
    logger: false,
  });
  app.use(session({ name: 'SESSION', secret: 'x', resave: false, saveUninitialized: false }));
  await app.listen(0, '127.0.0.1');
  return { app, agent: new HttpAgent(await app.getUrl()) };
}

/** What each request returns, and whether its response sets a cookie. */
async function outcomes(agent: HttpAgent, steps: readonly Step<unknown>[]) {
  const all = [];
  for (const step of steps) {
    const response = await request(agent, step);
    all.push({
      ...response.json<object>(),
      setsCookie: response.setCookies.some((each) => !each.includes('Max-Age=0')),
    });
  }
  return all;
}

describe('beside express-session itself', () => {
  it.each(Object.keys(CASES))('%s: each request has the same result, and a cookie when that has one', async (name) => {
    const [old, { agent }] = [await startOld(), await startApp({ controllers: [StepController] })];
    try {
      const expected = await outcomes(old.agent, CASES[name]!);
      for (const each of expected) expect(each).not.toHaveProperty('error');
      expect(await outcomes(agent(), CASES[name]!)).toEqual(expected);
    } finally {
      await old.app.close();
    }
  });
});
