import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ManualClock } from '@nest-session/testing';
import { registerChecks, sessionRepositoryContract } from '@nest-session/testing/contracts';
import { FileSessionRepository } from '../src/file-session.repository.js';
import { RestartedRepository } from './restarted.repository.js';

describe.each([
  ['the store', FileSessionRepository],
  ['the store, restarted before each call', RestartedRepository],
])('%s', (_, Repository) => {
  const checks = sessionRepositoryContract({
    offers: ['indexes', 'revocations', 'outages'],
    slack: 0,
    async open(options) {
      const clock = new ManualClock();
      const folder = await mkdtemp(join(tmpdir(), 'sessions-'));
      const repository = new Repository({ ...options, folder, clock });
      return {
        repository,
        advance: (milliseconds) => clock.advance(milliseconds),
        reportExpired: () => repository.removeExpired(),
        async outage(step) {
          await rename(folder, `${folder}-away`);
          await writeFile(folder, 'no folder');
          await step();
          await rm(folder);
          await rename(`${folder}-away`, folder);
        },
        close: () => rm(folder, { recursive: true }),
      };
    },
  });
  registerChecks(checks, { describe, it });
});
