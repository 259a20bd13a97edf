import { eventually } from '@nest-session/testing';
import fc from 'fast-check';
import { print } from '../../support/figures.js';
import { repeated } from '../../support/repeated.js';
import { type Adapter, type Counts, FuzzedApplication } from './fuzzed.application.js';
import { visit, type VisitPlan } from './fuzzed.plans.js';
import { FuzzedVisits, OWNER } from './fuzzed.visits.js';
import { foreignIn, keysByName, liveSessions } from './stored-sessions.js';

const TIMEOUT = 600_000;
const HOUR = 3_600_000;
const MB = 1024 * 1024;

const CONFIGURATIONS = ['cookies and headers', 'aliases', 'signed cookies, strict', 'CSRF'] as const;
const ADAPTERS: readonly Adapter[] = ['express', 'fastify'];
const PAIRS = CONFIGURATIONS.flatMap((configuration) => ADAPTERS.map((adapter) => ({ configuration, adapter })));
// No two share a seed of a visit.
const APPLICATIONS = PAIRS.map((pair, i) => ({ ...pair, offset: 100_000 * i }));

/** Bytes per request that the heap may grow in the second half. One request that is kept takes more. */
const MOST_PER_REQUEST = 512;
/** Beside the caches of Node.js and of the platform, which grow with what they have seen. */
const HEAP_NOISE = MB;
/** Bytes of the keys that last, which do not grow with the requests. */
const MOST_LEFT = 8 * 1024;

/** What is left when every session has ended, and its events are handled and trimmed. */
const LASTING = [
  'nest:session:epoch',
  'nest:session:events',
  'nest:session:events:handlers',
  'nest:session:events:trimmed',
  'nest:session:events:wanted',
  'nest:session:instances',
  'nest:session:meta',
];

/** A failure is made shorter for two minutes at most. */
const SHRINKING = { interruptAfterTimeLimit: 120_000, markInterruptAsFailure: true };

/** Nest logs that a client has left while its body was read or, on Fastify, before a stream for it had begun. */
const PLATFORM_ERRORS =
  /ERROR \[ExceptionsHandler\] Error(: aborted| \[ERR_STREAM_PREMATURE_CLOSE\]: Premature close)$/;

/**
 * Sends so many requests to each application. The environment variable `RUNS` overrides the number; `REPEAT`, from the
 * message of a failure, repeats that one.
 */
export function describeFuzzedRequests(count: number, givenSeed = Date.now() % 2 ** 31): void {
  const requests = Number(process.env['RUNS'] ?? count);

  describe.each(APPLICATIONS)(
    'fuzzed requests, with $configuration on $adapter,',
    ({ configuration, adapter, offset }) => {
      const { seed = givenSeed + offset, path } = repeated();
      const kind = configuration === 'cookies and headers' ? 'both' : 'cookies';
      let app: FuzzedApplication;
      let visits: FuzzedVisits;
      let bytesAtStart: number;
      let counts: Counts;
      beforeAll(async () => {
        app = await FuzzedApplication.start(adapter, configuration);
        visits = new FuzzedVisits(app.url, kind, configuration === 'CSRF' ? 'GET /form' : undefined);
        bytesAtStart = await app.storedBytes();
      });
      afterAll(() => app.stop());

      async function fuzz(until: number): Promise<void> {
        while (visits.requests < until) {
          const property = fc.asyncProperty(visit, (plan) => visits.run(plan));
          const firstSeed = seed + visits.visits;
          const details = await fc.check(property, {
            seed: firstSeed,
            numRuns: 5,
            ...SHRINKING,
            ...(path !== undefined && { path }),
          });
          if (details.failed) throw new Error(reportOf(details));
          if (path !== undefined) return;
        }
      }

      it(
        'get documented responses only, and leave the memory level',
        async () => {
          const begin = Date.now();
          await fuzz(requests / 2);
          const [half, atHalf] = [await app.heap(), visits.requests];
          await fuzz(requests);
          const growth = (await app.heap()) - half;
          counts = await app.counts();
          const figures = { seed, requests: visits.requests, ms: Date.now() - begin, heap: half, growth };
          print(
            `${configuration}, ${adapter}: ${JSON.stringify({ ...figures, statuses: visits.statuses, ...counts })}`,
          );
          expect(growth).toBeLessThan(HEAP_NOISE + MOST_PER_REQUEST * (visits.requests - atHalf));
        },
        TIMEOUT,
      );

      it('reach every kind of handler and outcome, so that they test something', () => {
        const succeeded = (path: string) =>
          (counts.responses[`${path} 200`] ?? 0) + (counts.responses[`${path} 201`] ?? 0);
        const enough = requests / 500;
        for (const path of ['read', 'set', 'login', 'rotate', 'logout', 'invalidate', 'push', 'save', 'form']) {
          expect({ path, succeeded: Math.min(succeeded(path), enough) }).toEqual({ path, succeeded: enough });
        }
        const { events } = counts;
        for (const type of ['created', 'id-changed', 'signed-in', 'deleted'] as const) {
          expect({ type, events: Math.min(events[type], enough) }).toEqual({ type, events: enough });
        }
        const refused = {
          'cookies and headers': [401],
          aliases: [401],
          'signed cookies, strict': [409, 429],
          CSRF: [403],
        };
        for (const status of [400, 404, 413, ...refused[configuration]]) {
          expect([status, visits.statuses[status]]).toEqual([status, expect.any(Number)]);
        }
      });

      it('store only documented keys and fields, for tokens that were issued', async () => {
        expect(await foreignIn(app.client)).toEqual([]);
        expect(await liveSessions(app.client)).toBeGreaterThan(0);
        expect(await liveSessions(app.client)).toBeLessThanOrEqual(counts.events.created);
      });

      it('leave an application that serves the next visitor', async () => {
        const { status } = await fetch(`${app.url}/read`, { headers: { connection: 'close' } });
        expect(status).toBe(200);
      });

      it(
        'leave nothing in Redis once their sessions have ended',
        async () => {
          const { expired: before } = (await app.counts()).events;
          await app.redis.stepClock(HOUR);
          await eventually(async () => expect((await app.counts()).events.expired).toBeGreaterThan(before));
          await app.endEverySession();
          await eventually(async () => expect(await liveSessions(app.client)).toBe(0));
          await areHandled();
          // As long as the ledger of a principal lives.
          await app.redis.stepClock(7 * 24 * HOUR);
          await eventually(async () =>
            expect([...(await keysByName(app.client)).keys()].filter((name) => !LASTING.includes(name))).toEqual([]),
          );
          await eventually(async () => expect(await app.storedBytes()).toBeLessThan(bytesAtStart + MOST_LEFT));
          const { created, deleted, expired } = (await app.counts()).events;
          expect(deleted + expired).toBe(created);
        },
        TIMEOUT,
      );

      it('leave no token and no value of an attribute in the log, and no error', () => {
        const log = app.log.join('\n');
        expect(visits.issued.size).toBeGreaterThan(requests / 50);
        expect([...visits.issued].filter((token) => log.includes(token))).toEqual([]);
        expect(log).not.toContain(OWNER);
        expect(log).not.toMatch(/unhandled|uncaught/i);
        expect(app.log.filter((line) => / (ERROR|FATAL) /.test(line) && !PLATFORM_ERRORS.test(line))).toEqual([]);
        // Each warning once.
        expect(app.log.filter((line) => / WARN /.test(line)).length).toBeLessThan(20);
      });

      /** Resolves when every event is handled: what is under way when the clock is stepped would be handled again. */
      async function areHandled(): Promise<void> {
        await eventually(async () => {
          for (const stream of (await keysByName(app.client)).get('nest:session:events') ?? []) {
            const [group] = (await app.client.xinfo('GROUPS', stream)) as unknown[][];
            const { pending, lag } = Object.fromEntries(pairsOf(group!)) as { pending: number; lag: number };
            expect([pending, lag]).toEqual([0, 0]);
          }
        });
      }
    },
  );
}

function pairsOf(flat: readonly unknown[]): [string, unknown][] {
  return Array.from({ length: flat.length / 2 }, (_, i) => [String(flat[2 * i]), flat[2 * i + 1]]);
}

function reportOf({
  seed,
  counterexamplePath,
  numShrinks,
  counterexample,
  errorInstance,
}: fc.RunDetails<[VisitPlan]>): string {
  const message = errorInstance instanceof Error ? errorInstance.message : String(errorInstance);
  const test = expect.getState().currentTestName!;
  const again = `REPEAT=${seed}/${counterexamplePath} npm run chaos -- fuzzed-requests -t ${JSON.stringify(test)}`;
  return `${message}\n\nMade shorter ${numShrinks} times: ${fc.stringify(counterexample)}\n\nOnce more: ${again}`;
}
