import { LeakGuard } from '@nest-session/test-infrastructure';
import { Store } from '../support/store.fixture.js';
import { TimedApplication, untilEnded } from '../support/timed.application.js';
import { TIMER_SERVERS } from '../support/timer.servers.js';

LeakGuard.install();

it.each(TIMER_SERVERS)('with a %s alone, each end is reported once and none early', async (_name, open) => {
  const [store, server] = [await Store.open(), await open()];
  const applications = [await TimedApplication.on(store, server.timer())];
  try {
    applications.push(await TimedApplication.on(store, server.timer()));
    const created = applications.flatMap((application) => [application.create(20, 1), application.create(20, 2)]);
    await untilEnded(store, applications, (await Promise.all(created)).flat());
  } finally {
    await Promise.all(applications.map((application) => application.stop()));
    await server.close();
    await store.close();
  }
});
