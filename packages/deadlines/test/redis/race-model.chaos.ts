import { LeakGuard } from '@nest-session/test-infrastructure';
import { RedisServer } from '@nest-session/testing';
import { checkRace, plannedRaces, startProcess, startRacer } from '../support/deadline-race.js';
import { print } from '../../../session-redis/test/support/figures.js';

LeakGuard.install();

const RACES = 5;

describe.each([
  { partitions: 1, keys: 1, clientsOfEach: 2, operationsOfEach: 1000 },
  { partitions: 1, keys: 12, clientsOfEach: 8, operationsOfEach: 300 },
  { partitions: 4, keys: 12, clientsOfEach: 8, operationsOfEach: 300 },
])('from three processes, partitions: $partitions, keys: $keys', (size) => {
  it('answers of tens of thousands of calls that race with each other and with their times agree with what is heard', async () => {
    const server = await RedisServer.start();
    const { partitions } = size;
    const where = { url: server.url, partitions };
    const watcher = await startRacer({ ...where, isHandling: false });
    const racers = await Promise.all(Array.from({ length: 3 }, () => startProcess(where)));
    try {
      const begun = performance.now();
      const totals = { operations: 0, heard: 0 };
      const answers: Record<string, number> = {};
      for (const plan of plannedRaces(RACES, { ...size, racers: racers.length })) {
        const found = await checkRace(racers, plan, watcher.app);
        totals.operations += found.operations;
        totals.heard += found.heard;
        for (const [name, count] of Object.entries(found.answers)) answers[name] = (answers[name] ?? 0) + count;
      }
      expect(Object.keys(answers)).toHaveLength(11);
      expect(totals.heard).toBeGreaterThan(totals.operations / 100);
      const seconds = Math.round((performance.now() - begun) / 1000);
      print(
        `${totals.operations} operations in ${seconds} s, ${totals.heard} deadlines heard: ${JSON.stringify(answers)}`,
      );
    } finally {
      for (const racer of [...racers, watcher]) await racer.stop();
      await server.stop();
    }
  });
});
