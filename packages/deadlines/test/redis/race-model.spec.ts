import { LeakGuard } from '@nest-session/test-infrastructure';
import { RedisServer } from '@nest-session/testing';
import { checkRace, plannedRaces, startRacer } from '../support/deadline-race.js';

LeakGuard.install();

it.each([1, 4])(
  'answers of calls that race with each other and with their times agree with what is heard, partitions: %i',
  async (partitions) => {
    const server = await RedisServer.start();
    const racers = [
      await startRacer({ url: server.url, partitions }),
      await startRacer({ url: server.url, partitions }),
    ];
    try {
      const size = { racers: racers.length, keys: 8, clientsOfEach: 4, operationsOfEach: 100 };
      for (const plan of plannedRaces(2, size)) {
        const { answers, heard } = await checkRace(racers, plan, racers[0]!.app);
        // Each call is answered in all its ways.
        expect(Object.keys(answers)).toHaveLength(11);
        expect(heard).toBeGreaterThan(50);
      }
    } finally {
      for (const racer of racers) await racer.stop();
      await server.stop();
    }
  },
);
