import { Sessions } from '@nest-session/core';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { closeApps, startApp } from '../support/express-session.app.js';
import { runIn, type Step, StepController } from '../support/step.controller.js';

LeakGuard.install();
afterEach(closeApps);

// In a file of its own, because the warning comes once in a process.
it('an application that lists the sessions of a user is not warned of the ids that it compares', async () => {
  const { app, agent, log } = await startApp({ controllers: [StepController], express: { secret: 's' } });
  const browser = agent();
  const devicePage: Step<unknown> = async ({ session }) => {
    // Before it lists them, and in a request that may be the first of the process.
    const { id, principalName } = session;
    const devices: boolean[] = [];
    for await (const device of app.get(Sessions).ofPrincipal(principalName as string)) devices.push(device.id === id);
    return devices;
  };
  await runIn(browser, ({ session }) => session.signIn('ann'));
  expect(await runIn(browser, devicePage)).toEqual([true]);
  await runIn(browser, ({ sessionID }) => sessionID);
  const warnings = () => log.lines.filter((line) => line.includes('reads req.sessionID'));
  expect(warnings()).toEqual([]);

  // Another application of the process, which lists none, and ends some.
  const other = await startApp({ controllers: [StepController], express: { secret: 's' } });
  await other.app.get(Sessions).endAll('ann');
  await runIn(other.agent(), ({ sessionID }) => sessionID);
  expect(other.log.lines.filter((line) => line.includes('reads req.sessionID'))).toHaveLength(1);
});
