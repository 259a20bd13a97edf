import { SessionBoundError } from '@nest-session/core';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { closeApps, startApp } from '../support/express-session.app.js';
import { logInByPassport } from '../support/passport-login.js';
import { request, runIn, StepController, type StepRequest } from '../support/step.controller.js';

LeakGuard.install();
afterEach(closeApps);

const MINUTE = 60;

describe.each(['express', 'fastify'] as const)('on %s, a property bag', (platform) => {
  async function start(saveUninitialized = false) {
    const { agent } = await startApp({
      platform,
      controllers: [StepController],
      session: { maxAttributes: 3, maxAttributeSize: 100, timeout: '8h', anonymousTimeout: '10m' },
      express: { saveUninitialized },
    });
    return agent();
  }

  it('refuses what exceeds a bound where a property is assigned, one attribute each', async () => {
    const agent = await start();
    const bounds = await runIn(agent, ({ session }) => {
      const boundOf = (change: () => void) => {
        try {
          change();
          return undefined;
        } catch (error) {
          return (error as SessionBoundError).bound;
        }
      };
      for (const name of ['a', 'b', 'c']) session[name] = 1;
      return [
        boundOf(() => (session.d = 1)),
        boundOf(() => (session.a = 'x'.repeat(100))),
        boundOf(() => session.set('n'.repeat(300), 1)),
        boundOf(() => Object.assign(session, { a: 2 })),
        boundOf(() => delete session.b && (session.d = 1)),
      ];
    });
    expect(bounds).toEqual(['maxAttributes', 'maxAttributeSize', 'maxAttributeNameSize', null, null]);
    expect(await runIn(agent, ({ session }) => Object.keys(session).toSorted())).toEqual(['a', 'c', 'cookie', 'd']);
  });

  it('is a 413 response where an object has become too large', async () => {
    const agent = await start();
    await runIn(agent, ({ session }) => void (session.list = []));
    const response = await request(agent, ({ session }) => void session.list.push('x'.repeat(100)));
    expect(response.status).toBe(413);
    expect(await runIn(agent, ({ session }) => session.list)).toEqual([]);
  });

  it('does not count what the library keeps in it', async () => {
    const agent = await start(true);
    await runIn(agent, ({ session }) => void Object.assign(session, { a: 1, b: 2, c: 3 }));
    await runIn(agent, ({ session }) => void (session.cookie.maxAge = 60_000));
    await runIn(agent, ({ session }) => void session.signIn('ann'));
    expect(await runIn(agent, ({ session }) => [session.principalName, session.a])).toEqual(['ann', 1]);
  });

  it('has the anonymous timeout until Passport has signed a user in', async () => {
    const agent = await start();
    const interval = ({ session }: StepRequest) => session.maxInactiveInterval;
    await runIn(agent, ({ session }) => void (session.a = 1));
    expect(await runIn(agent, interval)).toBe(10 * MINUTE);
    await runIn(agent, (request) => logInByPassport(request, 'ann'));
    expect(await runIn(agent, interval)).toBe(480 * MINUTE);
    await runIn(agent, ({ session }) => void (session.cookie.maxAge = 60_000));
    expect(await runIn(agent, interval)).toBe(60);
    await runIn(agent, ({ session }) => void (session.cookie.maxAge = null));
    expect(await runIn(agent, interval)).toBe(480 * MINUTE);
    await runIn(agent, ({ session }) => void (session.passport = {}));
    expect(await runIn(agent, interval)).toBe(10 * MINUTE);
  });

  it('has the timeout of users after a login that regenerates the session', async () => {
    const agent = await start();
    await runIn(agent, (request) => logInByPassport(request, 'ann'));
    await runIn(agent, (request) => logInByPassport(request, 'bob'));
    expect(await runIn(agent, ({ session }) => [session.principalName, session.maxInactiveInterval])).toEqual([
      'bob',
      480 * MINUTE,
    ]);
    await runIn(agent, async ({ session }) => void (await session.regenerate()));
    await runIn(agent, ({ session }) => void (session.a = 1));
    expect(await runIn(agent, ({ session }) => session.maxInactiveInterval)).toBe(10 * MINUTE);
  });
});
