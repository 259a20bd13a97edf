import { PRINCIPAL_NAME_INDEX_NAME } from '@nest-session/core';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually, RedisServer } from '@nest-session/testing';
import { Redis } from 'ioredis';
import { fileURLToPath } from 'node:url';
import { SessionPartitions } from '../../src/keys/session-partitions.js';
import { WorkerProcess } from '../support/worker.process.js';
import { hashOfValue } from '../support/hash-of-value.js';

LeakGuard.install();

const PROGRAM = fileURLToPath(new URL('../support/signing-in.mjs', import.meta.url));
const ROUNDS = 200;
const PROCESSES = 2;
const AT_ONCE = 50;
const KILLS = 5;
const MOST = 3;

// The live sessions of a principal, in all partitions at one moment.
const COUNT_LIVE = `
  local live = 0
  for _, prefix in ipairs(ARGV) do
    for _, id in ipairs(redis.call('ZRANGE', prefix .. KEYS[1], 0, -1)) do
      live = live + redis.call('EXISTS', prefix .. 'sessions:expires:' .. id)
    end
  end
  return live`;

/** Every request is a sign-in to a new session. */
const SIGN_INS = Array.from({ length: AT_ONCE / PROCESSES }, () => 'sign in');

/** Sessions of the principal also expire, sign out, are rotated and sign in again. */
const KINDS = [
  'sign in',
  'sign in for a second',
  'sign in to an anonymous session',
  'sign in',
  'sign in again',
  'rotate',
  'double click',
  'sign out',
];
const MIXED = SIGN_INS.map((_, i) => KINDS[i % KINDS.length]!);

type Answers = Record<string, number>;

describe.each([
  ['end-oldest', 1],
  ['end-oldest', 64],
  ['refuse', 1],
  ['refuse', 64],
] as const)('with whenReached: %s and %d partitions', (whenReached, count) => {
  let server: RedisServer;
  let client: Redis;
  let workers: WorkerProcess[];
  const partitions = new SessionPartitions('nest:session', count);
  const prefixes = partitions.all.map(({ prefix }) => prefix);
  beforeAll(async () => {
    server = await RedisServer.start();
    client = new Redis(server.url);
    workers = await Promise.all(Array.from({ length: PROCESSES }, () => startWorker('30s')));
  }, 60_000);
  afterAll(async () => {
    await Promise.all(workers.map((worker) => worker.end()));
    client.disconnect();
    await server.stop();
  });

  function startWorker(commandTimeout: string): Promise<WorkerProcess> {
    const environment = {
      REDIS_URL: server.url,
      PARTITIONS: String(count),
      MOST: String(MOST),
      WHEN_REACHED: whenReached,
      COMMAND_TIMEOUT: commandTimeout,
    };
    return WorkerProcess.start(environment, { program: PROGRAM });
  }

  const countLive = async (principal: string) =>
    (await client.eval(
      COUNT_LIVE,
      1,
      `index:${PRINCIPAL_NAME_INDEX_NAME}:${hashOfValue(principal)}`,
      ...prefixes,
    )) as number;

  /** Makes requests in all processes at once, and watches the number of live sessions meanwhile. */
  async function round(name: string, principal: string, requests: readonly string[]): Promise<Answers> {
    const line = new RegExp(`^answered ${name} (.*)$`);
    for (const worker of workers) worker.tell(JSON.stringify({ round: name, principal, requests }));
    const lineOf = (worker: WorkerProcess) => worker.lines.find((each) => line.test(each));
    let most = 0;
    while (!workers.every((worker) => lineOf(worker) !== undefined)) {
      most = Math.max(most, await countLive(principal));
    }
    expect(most).toBeLessThanOrEqual(MOST);
    const all: Answers = {};
    for (const worker of workers) {
      const answers = JSON.parse(line.exec(lineOf(worker)!)![1]!) as Answers;
      for (const [answer, times] of Object.entries(answers)) all[answer] = (all[answer] ?? 0) + times;
    }
    return all;
  }

  /** The ids of all recorded events of a type. */
  async function recorded(type: string): Promise<string[]> {
    const replies = await Promise.all(partitions.all.map(({ events }) => client.xrange(events, '-', '+')));
    const fields = replies.flat().map(([, each]) => each);
    return fields.filter(([, kind]) => kind === type).map(([, , , id]) => id!);
  }

  it(`${AT_ONCE} sign-ins at once leave exactly ${MOST} sessions, and the others end once`, async () => {
    for (let i = 0; i < ROUNDS; i++) {
      const answers = await round(`a${i}`, `user-${i}`, SIGN_INS);
      expect(await countLive(`user-${i}`)).toBe(MOST);
      const refused = whenReached === 'refuse' ? AT_ONCE - MOST : undefined;
      expect(answers).toEqual({ saved: AT_ONCE - (refused ?? 0), ...(refused === undefined ? {} : { refused }) });
    }
    const [created, deleted] = [await recorded('created'), await recorded('deleted')];
    const perRound = whenReached === 'refuse' ? 0 : AT_ONCE - MOST;
    expect(created).toHaveLength(ROUNDS * (perRound + MOST));
    expect(deleted).toHaveLength(ROUNDS * perRound);
    expect(new Set(deleted).size).toBe(deleted.length);
    expect(await recorded('expired')).toEqual([]);
  }, 600_000);

  it('never more, and exactly as many in the end, when a process is killed in the middle of its sign-ins', async () => {
    for (let i = 0; i < KILLS; i++) {
      const principal = `killed-${i}`;
      const [killed, other] = await Promise.all([startWorker('1s'), startWorker('1s')]);
      let isOver = false;
      let most = 0;
      const watch = (async () => {
        while (!isOver) most = Math.max(most, await countLive(principal));
      })();
      for (const worker of [killed, other]) worker.tell(JSON.stringify({ round: 'k', principal, requests: SIGN_INS }));
      await eventually(async () => expect(await countLive(principal)).toBe(MOST));
      await killed.end('SIGKILL');
      await other.saysLine(/^answered k /, { timeout: 60_000 });
      // Until its time has passed, the place of a sign-in of the killed process counts.
      for (let n = 0; (await countLive(principal)) < MOST; n++) {
        other.tell(JSON.stringify({ round: `n${n}`, principal, requests: ['sign in'] }));
        await other.saysLine(new RegExp(`^answered n${n} {"saved":1}$`), { timeout: 60_000 });
      }
      expect(other.lines.find((line) => line.startsWith('answered k '))).not.toContain('Error');
      isOver = true;
      await watch;
      expect(most).toBe(MOST);
      expect(await countLive(principal)).toBe(MOST);
      await other.end();
    }
  }, 600_000);

  it('never more, while sessions of the principal expire, sign out and are rotated', async () => {
    const all: Answers = {};
    for (let i = 0; i < ROUNDS; i++) {
      for (let n = 0; n < MOST; n++) await round(`s${i}-${n}`, `other-${i}`, ['sign in']);
      const answers = await round(`b${i}`, `other-${i}`, MIXED);
      for (const [answer, times] of Object.entries(answers)) all[answer] = (all[answer] ?? 0) + times;
      for (let n = 0; n < MOST; n++) await round(`c${i}-${n}`, `other-${i}`, ['sign in']);
      // With `refuse`, a session that lives for a second may still have been there.
      const live = await countLive(`other-${i}`);
      if (whenReached === 'end-oldest') expect(live).toBe(MOST);
      else expect(live).toBeGreaterThan(0);
    }
    process.stdout.write(`${whenReached}, ${count} partitions: ${JSON.stringify(all)}\n`);
    expect(Object.keys(all).filter((answer) => answer.includes('Error'))).toEqual([]);
    const ended = [...(await recorded('deleted')), ...(await recorded('expired'))];
    expect(new Set(ended).size).toBe(ended.length);
    expect(ended.length).toBeGreaterThan(0);
  }, 600_000);
});
