import { repartition } from '@nest-session/redis';
import { Redis } from 'ioredis';
import type { ExpirationStoreName } from '../../src/configuration/expirations.options.js';
import { SessionPartitions } from '../../src/keys/session-partitions.js';
import { RepartitionRun } from '../../src/repartitioning/repartition-run.js';
import { contentOf, fill } from './filled.store.js';
import { Store } from './store.fixture.js';

/** From how many partitions to how many. */
type Move = readonly [from: number, to: number];

export interface RepartitionMoves {
  readonly moves: readonly Move[];
  /** The ones that are interrupted after ever more commands. @default none */
  readonly interrupted?: readonly Move[];
}

/** A connection on which the command fails that comes after so many, and all others then. */
class FailingRedis extends Redis {
  left = Infinity;

  override sendCommand(...args: Parameters<Redis['sendCommand']>) {
    if (this.left-- <= 0) {
      args[0].reject(new Error('interrupted'));
      return args[0].promise;
    }
    return super.sendCommand(...args);
  }
}

/** Moves a store that has some of everything, on a Redis of its own. `ends`: where it notes the ends of sessions. */
export function describeMoves(ends: ExpirationStoreName, { moves, interrupted = [] }: RepartitionMoves): void {
  describe(`with the ends of sessions in ${ends}`, () => {
    let store: Store;
    beforeAll(async () => {
      store = await Store.open();
    });
    beforeEach(() => store.client.flushall());
    afterAll(() => store.close());

    const url = () => store.server.url;
    const partitionsOf = (count: number) => new SessionPartitions('nest:session', count);

    it.each(moves)('everything moves from %d to %d partitions, and back', async (from, to) => {
      const [old, next] = [partitionsOf(from), partitionsOf(to)];
      await fill(store.client, old, ends, 20);
      const content = await contentOf(store.client, old);
      const progress: string[] = [];
      const onProgress = ({ step }: { step: string }) => progress.push(step);
      // Live ones, those without an end, those that have run out, and ended ones.
      expect((await repartition({ url: url() }, { from, to, onProgress })).moved).toBeGreaterThan(20);
      expect([...new Set(progress)]).toEqual(['events', 'sessions', 'done']);
      expect(await contentOf(store.client, next)).toEqual(content);
      expect(await store.client.hget(next.meta, 'partitions')).toBe(`${to}`);
      expect(await repartition({ url: url() }, { from, to })).toEqual({ moved: 0 });
      await repartition({ url: url() }, { to: from });
      expect(await contentOf(store.client, old)).toEqual(content);
    });

    // Jest refuses an empty table.
    if (interrupted.length === 0) return;
    it.each(interrupted)(
      'from %d to %d partitions, it continues wherever it was interrupted',
      async (from, to) => {
        const [old, next] = [partitionsOf(from), partitionsOf(to)];
        await fill(store.client, old, ends, 2);
        const content = await contentOf(store.client, old);
        const names = await store.client.keys('*');
        const saved = await Promise.all(
          names.map(
            async (key) => [key, await store.client.pexpiretime(key), await store.client.dumpBuffer(key)] as const,
          ),
        );
        const client = new FailingRedis(url());
        await client.ping();
        let interruptions = 0;
        try {
          // At places further and further apart, others in each run: the first ones decide what is begun anew.
          for (let commands = 1, isDone = false; !isDone; commands += 1 + Math.floor((Math.random() * commands) / 2)) {
            await store.client.flushall();
            await Promise.all(
              saved.map(([key, end, data]) => store.client.restore(key, Math.max(end, 0), data, 'ABSTTL')),
            );
            client.left = commands;
            isDone = await new RepartitionRun(client, next, 'one').run({}).then(
              () => true,
              (error: Error) => {
                expect(error.message).toBe('interrupted');
                return false;
              },
            );
            client.left = Infinity;
            if (isDone) break;
            interruptions++;
            // As 30 seconds later.
            await store.client.del(next.instances);
            await new RepartitionRun(client, next, 'other').run({ from: undefined });
            expect({ commands, content: await contentOf(store.client, next) }).toEqual({ commands, content });
          }
        } finally {
          client.disconnect();
        }
        expect(interruptions).toBeGreaterThan(10);
      },
      120_000,
    );
  });
}
