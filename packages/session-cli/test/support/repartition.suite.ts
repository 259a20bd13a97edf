import { repartition } from '@nest-session/cli';
import { Redis } from 'ioredis';
import type { ExpirationStoreName } from '../../../session-redis/src/configuration/expirations.options.js';
import { SessionPartitions } from '../../../session-redis/src/keys/session-partitions.js';
import { RepartitionRun } from '../../src/repartitioning/repartition-run.js';
import { contentOf, fill } from '../../../session-redis/test/support/filled.store.js';
import { Store } from '../../../session-redis/test/support/store.fixture.js';

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
  /** Each command that was sent, by its name and its step. */
  readonly sent: string[] = [];
  #steps = 0;

  override sendCommand(...args: Parameters<Redis['sendCommand']>) {
    const { name, args: words } = args[0];
    if (name === 'hset' && String(words[0]).endsWith(':meta')) this.#steps++;
    this.sent.push(`${this.#steps} ${name}`);
    if (this.left-- <= 0) {
      args[0].reject(new Error('interrupted'));
      return args[0].promise;
    }
    return super.sendCommand(...args);
  }
}

// A run that is interrupted after another command has left what it had left before it.
const WRITES = /^\d+ (?:eval|hdel|hset|rename|restore|sadd|set|srem|unlink|xadd|xclaim|xgroup|zadd|zrem)$/;

/**
 * After how many commands to interrupt a run: right after the first and the last one of each kind in each step, so that
 * each of them has been made for some keys and not for others, and at some other places.
 */
function interruptionsOf(sent: readonly string[]): number[] {
  const kinds = [...new Set(sent)].filter((kind) => WRITES.test(kind));
  const ends = kinds.flatMap((kind) => [sent.indexOf(kind) + 1, sent.lastIndexOf(kind) + 1]);
  const others = Array.from({ length: 5 }, () => Math.ceil(Math.random() * sent.length));
  return [...new Set([...ends, ...others])];
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
        const restart = async () => {
          await store.client.flushall();
          await Promise.all(
            saved.map(([key, end, data]) => store.client.restore(key, Math.max(end, 0), data, 'ABSTTL')),
          );
          const client = new FailingRedis(url());
          await client.ping();
          client.sent.length = 0;
          return client;
        };
        const whole = await restart();
        await new RepartitionRun(whole, next, 'one').run({});
        whole.disconnect();
        let completed = 0;
        const interruptions = interruptionsOf(whole.sent);
        for (const commands of interruptions) {
          const client = await restart();
          try {
            client.left = commands;
            // Not every run takes as many commands.
            await new RepartitionRun(client, next, 'one').run({}).then(
              () => completed++,
              (error: Error) => expect(error.message).toBe('interrupted'),
            );
            client.left = Infinity;
            // As 30 seconds later.
            await store.client.del(next.instances);
            await new RepartitionRun(client, next, 'other').run({ from: undefined });
            const last = whole.sent[commands - 1];
            expect({ last, content: await contentOf(store.client, next) }).toEqual({ last, content });
          } finally {
            client.disconnect();
          }
        }
        expect(interruptions.length - completed).toBeGreaterThan(20);
      },
      120_000,
    );
  });
}
