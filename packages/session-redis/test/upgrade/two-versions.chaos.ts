import { fileURLToPath } from 'node:url';
import { LeakGuard, SteppableRedisServer } from '@nest-session/test-infrastructure';
import { eventually } from '@nest-session/testing';
import { Redis } from 'ioredis';
import { resolveRedisSessionOptions } from '../../src/configuration/redis-session.options.js';
import { DeadlinePartitions } from '../../../deadlines/src/redis/deadline-keys.js';
import { SessionPartitions } from '../../src/keys/session-partitions.js';
import { verify } from '../../../session-cli/src/verification/verify.js';
import { print } from '../support/figures.js';
import { MINUTE } from '../support/store.fixture.js';
import { DeadlineLedger, type DeadlineOperation, type HeardDeadline } from './deadline-ledger.js';
import { Fleet } from './fleet.js';
import { buildFormerVersion, type FormerVersion } from './former-version.js';
import type { Instance } from './instance.js';
import { type HeardEvent, SessionLedger, type SessionOperation } from './session-ledger.js';

LeakGuard.install();

const THIS_VERSION = fileURLToPath(new URL('instance.worker.mjs', import.meta.url));
const SESSIONS = 20_000;
const ORDERS = 3000;
const INSTANCES = 4;
const BATCH = 25;
const PATIENT = { timeout: 120_000, interval: 500 };

let former: FormerVersion;
beforeAll(async () => {
  former = await buildFormerVersion(THIS_VERSION);
}, 5 * MINUTE);
afterAll(() => former.remove());

describe.each([1, 4])('partitions: %i,', (partitions) => {
  let server: SteppableRedisServer;
  let client: Redis;
  let effects: Redis;
  let fleet: Fleet;
  let sessions: SessionLedger;
  let deadlines: DeadlineLedger;
  let wrong: string[];
  beforeEach(async () => {
    // What was acknowledged is not lost when Redis is killed.
    server = await SteppableRedisServer.start({ args: ['--appendonly', 'yes', '--appendfsync', 'always'] });
    [client, effects] = [new Redis(server.url), new Redis(server.url, { db: 1 })];
    fleet = new Fleet({ REDIS_URL: server.url, PARTITIONS: String(partitions) }, (instance) =>
      perform(instance, nextBatch()),
    );
    [sessions, deadlines, wrong] = [new SessionLedger(SESSIONS), new DeadlineLedger(ORDERS), []];
  });
  afterEach(async () => {
    while (fleet.instances.length > 0) await fleet.remove('killed');
    client.disconnect();
    effects.disconnect();
    await server.stop();
  });

  function nextBatch() {
    const all = Array.from({ length: BATCH }, (_, i) => (i % 5 === 0 ? deadlines.next() : sessions.next()));
    return all.filter((each) => each !== undefined);
  }

  async function perform(instance: Instance, operations: readonly (SessionOperation | DeadlineOperation)[]) {
    const answers = await instance.perform(operations);
    for (const [i, operation] of operations.entries()) {
      const answer = answers[i]!;
      const problem = 'key' in operation ? deadlines.note(operation, answer) : sessions.note(operation, answer);
      if (problem !== undefined) wrong.push(problem);
    }
  }

  /** Instances are replaced by some of a version, one after the other. The second one is killed. */
  async function deploy(program: string, count: number): Promise<void> {
    for (let i = 0; i < count; i++) {
      const enough = Math.min(SESSIONS, sessions.size + SESSIONS / 20);
      await eventually(() => expect(sessions.size).toBeGreaterThanOrEqual(enough), PATIENT);
      await fleet.remove(i === 1 ? 'killed' : 'finished');
      await fleet.add(program);
    }
  }

  /** Both versions find each session, as it was saved last. */
  async function readAll(): Promise<number> {
    const reads = sessions.reads();
    for (let i = 0; i < reads.length; i += BATCH)
      await perform(fleet.instances[(i / BATCH) % INSTANCES]!, reads.slice(i, i + BATCH));
    return reads.length;
  }

  /** All that handlers of both versions have heard of a kind. */
  async function heard<T>(kind: string): Promise<T[]> {
    const keys = await effects.keys(`${kind}:*`);
    const texts = keys.length > 0 ? await effects.mget(keys) : [];
    return texts.map((text) => JSON.parse(text!) as T);
  }

  it('20,000 sessions, with events and deadlines, outlive deployments of this version and back, with kills', async () => {
    for (let i = 0; i < INSTANCES; i++) await fleet.add(former.program);
    await deploy(THIS_VERSION, INSTANCES);
    await deploy(former.program, INSTANCES);
    await deploy(THIS_VERSION, INSTANCES / 2);
    expect(new Set(fleet.instances.map(({ packages }) => packages)).size).toBe(2);
    await server.kill();
    await server.restart();
    await eventually(() => expect(sessions.size).toBe(SESSIONS), PATIENT);
    await fleet.rest();
    const read = await readAll();
    expect(wrong).toEqual([]);

    // No step is longer than the time for which the data of a session outlive it.
    for (const [which, minutes] of [
      ['short', 1],
      ['all', 30],
    ] as const) {
      await server.stepClock(minutes * MINUTE);
      await eventually(async () => {
        expect(sessions.problems(await heard<HeardEvent>('session'), which).slice(0, 5)).toEqual([]);
      }, PATIENT);
    }
    await server.stepClock(31 * MINUTE);
    await eventually(async () => {
      expect(deadlines.problems(await heard<HeardDeadline>('deadline')).slice(0, 5)).toEqual([]);
    }, PATIENT);
    const [ofSessions, ofDeadlines] = [
      new SessionPartitions('nest:session', partitions),
      new DeadlinePartitions('nest:deadlines', partitions),
    ];
    const options = resolveRedisSessionOptions({});
    await eventually(async () => {
      for (const each of [ofSessions, ofDeadlines])
        expect((await verify({ client, partitions: each, options })).findings).toEqual([]);
    }, PATIENT);
    print(
      `partitions: ${partitions}: ${SESSIONS} sessions and ${deadlines.size} deadlines, ${3 * INSTANCES - 2} instances ` +
        `replaced, ${read} sessions read at the end, ${(await heard('session')).length} events heard`,
    );
  }, 600_000);
});
