import { LeakGuard } from '@nest-session/test-infrastructure';
import { ChromiumHour } from './chromium-hour.js';

LeakGuard.install();

const SEED = Number(process.env['SEED'] ?? Date.now() % 2 ** 31);
const MINUTES = Number(process.env['MINUTES'] ?? 900);

it(
  `a Chromium keeps its session and its binding over ${MINUTES} minutes of use with faults`,
  async () => {
    // At times it is not about to end before the next sign-in.
    expect(await ChromiumHour.live(SEED, MINUTES)).toBeGreaterThan(MINUTES / 60);
  },
  40 * 60_000,
);
