import { RememberMe } from '@nest-session/core';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { closeApps, startApp } from '../support/express-session.app.js';
import { request, runIn, StepController } from '../support/step.controller.js';

LeakGuard.install();
afterEach(closeApps);

const DAY = 86_400;

it.each(['express', 'fastify'] as const)(
  'RememberMe takes req.session, and the cookie and the idle timeout follow it, on %s',
  async (platform) => {
    const { app, agent } = await startApp({
      platform,
      controllers: [StepController],
      session: { cookie: { rememberMe: '30d' } },
    });
    const rememberMe = app.get(RememberMe);
    const ann = agent();
    await runIn(ann, ({ session }) => session.signIn('ann'));

    const remembered = await request(ann, ({ session }) => rememberMe.remember(session));
    expect(remembered.json()).toEqual({ result: null });
    expect(remembered.setCookies).toEqual([expect.stringContaining(`Max-Age=${30 * DAY};`)]);
    expect(await runIn(ann, ({ session }) => session.maxInactiveInterval)).toBe(30 * DAY);

    const forgotten = await request(ann, ({ session }) => rememberMe.forget(session));
    expect(forgotten.json()).toEqual({ result: null });
    expect(forgotten.setCookies).toEqual([expect.not.stringContaining('Max-Age')]);
    expect(await runIn(ann, ({ session }) => [session.maxInactiveInterval, session.principalName])).toEqual([
      1800,
      'ann',
    ]);
  },
);
