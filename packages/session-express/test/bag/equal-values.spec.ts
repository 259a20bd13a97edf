import { randomBytes } from 'node:crypto';
import { MapSessionModule } from '@nest-session/core';
import { RedisSessionModule, type RedisSessionModuleOptions } from '@nest-session/redis';
import { Gate, LeakGuard } from '@nest-session/test-infrastructure';
import { type HttpAgent, RedisServer } from '@nest-session/testing';
import { ExpressSessionSerializer } from '../../src/index.js';
import { closeApps, startApp } from '../support/express-session.app.js';
import { runIn, type Step, StepController } from '../support/step.controller.js';

LeakGuard.install();

let server: RedisServer;
beforeAll(async () => {
  server = await RedisServer.start();
});
afterAll(() => server.stop());
afterEach(closeApps);

const redis = (options?: RedisSessionModuleOptions) =>
  RedisSessionModule.forRoot({ url: server.url, commandTimeout: '1m', ...options });
const keys = [{ id: 'a', key: randomBytes(32).toString('base64') }];

const STORES = {
  'in memory': () => MapSessionModule.forRoot(),
  'in Redis': () => redis(),
  'in Redis, encrypted': () => redis({ encryption: { keys } }),
  'in Redis, by ExpressSessionSerializer': () => redis({ serializer: new ExpressSessionSerializer() }),
};

/** Runs `slow` in a request that has loaded the session before `fast` runs in another one. */
async function during(agent: HttpAgent, slow: Step<void>, fast: Step<void>): Promise<void> {
  const gate = new Gate();
  const slowly = runIn(agent, async (request) => {
    await gate.pass();
    slow(request);
  });
  await gate.reached();
  await runIn(agent, fast);
  gate.open();
  await slowly;
}

describe.each(Object.entries(STORES))('a property of a session %s', (_, store) => {
  let agent: HttpAgent;
  beforeEach(async () => {
    agent = (await startApp({ controllers: [StepController], store: store() })).agent();
  });

  it('keeps the change of a faster request when a slower one assigns the value that it has loaded', async () => {
    await runIn(
      agent,
      ({ session }) => void Object.assign(session, { lang: 'de', list: [1], object: { a: { b: 1 } } }),
    );
    await during(
      agent,
      ({ session }) => {
        const { lang } = session;
        session.lang = lang;
        session.set('list', [1]);
        Object.assign(session, JSON.parse(JSON.stringify({ object: session.object })));
        session.missing = undefined;
        delete session.absent;
      },
      ({ session }) => void Object.assign(session, { lang: 'fr', list: [2], object: {}, missing: 1, absent: 1 }),
    );
    const now = await runIn(agent, ({ session: { cookie: _cookie, ...properties } }) => properties as object);
    expect(now).toEqual({ lang: 'fr', list: [2], object: {}, missing: 1, absent: 1 });
  });

  it('has the value of the slower request when that changes it, in place as well', async () => {
    await runIn(agent, ({ session }) => void Object.assign(session, { lang: 'de', cart: [1], later: [1] }));
    await during(
      agent,
      ({ session }) => {
        session.lang = 'it';
        const { cart } = session;
        cart.push(2);
        session.cart = cart;
        const later = (session.later = [1]);
        later.push(2);
      },
      ({ session }) => void Object.assign(session, { lang: 'fr', cart: [], later: [] }),
    );
    expect(await runIn(agent, ({ session: { lang, cart, later } }) => [lang, cart, later] as unknown[])).toEqual([
      'it',
      [1, 2],
      [1, 2],
    ]);
  });

  it('is written by setAttribute(), whatever value it had', async () => {
    await runIn(agent, ({ session }) => void (session.lang = 'de'));
    await during(
      agent,
      ({ session }) => session.setAttribute('lang', 'de'),
      ({ session }) => void (session.lang = 'fr'),
    );
    expect(await runIn(agent, ({ session }) => session.lang as string)).toBe('de');
  });
});

it('a Date that ExpressSessionSerializer stored as its text, and NaN, which it stored as null, are equal to these', async () => {
  const store = redis({ serializer: new ExpressSessionSerializer() });
  const agent = (await startApp({ controllers: [StepController], store })).agent();
  const assign: Step<void> = ({ session }) => void Object.assign(session, { at: new Date(0), number: NaN });
  await runIn(agent, assign);
  await during(agent, assign, ({ session }) => void Object.assign(session, { at: 'later', number: 1 }));
  expect(await runIn(agent, ({ session: { at, number } }) => [at, number] as unknown[])).toEqual(['later', 1]);
});
