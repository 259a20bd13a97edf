import { LeakGuard } from '@nest-session/test-infrastructure';
import { registerChecks, sessionTimerContract } from '@nest-session/testing/contracts';
import { TIMER_SERVERS } from '../support/timer.servers.js';

// A worker of BullMQ whose server is away leaves a timer of six seconds.
LeakGuard.install({ grace: 10_000 });

describe.each(TIMER_SERVERS)('%s', (name, open) => {
  // At the same time: each has a server of its own, and waits for its clock.
  const passes = (title: string, check: () => Promise<void>) =>
    it.concurrent(title, () => expect(check()).resolves.toBeUndefined());
  const checks = sessionTimerContract({ open, cancels: name === 'BullMqSessionTimer' });
  registerChecks(checks, { describe, it: Object.assign(passes, { skip: it.skip }) });
});
