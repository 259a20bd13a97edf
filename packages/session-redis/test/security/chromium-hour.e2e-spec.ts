import { LeakGuard } from '@nest-session/test-infrastructure';
import { ChromiumHour } from './chromium-hour.js';

LeakGuard.install();

// Of this seed, two of the first sign-ins lose the answer to the registration.
const SEED = Number(process.env['SEED'] ?? 111);
const MINUTES = Number(process.env['MINUTES'] ?? 90);

it(
  `a Chromium keeps its session and its binding over ${MINUTES} minutes of use with faults`,
  async () => {
    // At times it is not about to end before the next sign-in.
    expect(await ChromiumHour.live(SEED, MINUTES)).toBeGreaterThan(MINUTES / 60);
  },
  10 * 60_000,
);
