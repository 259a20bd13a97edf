import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { eventually } from '@nest-session/testing';
import { SessionPartitions } from '../../src/keys/session-partitions.js';
import { figures, print } from '../support/figures.js';
import { Store } from '../support/store.fixture.js';
import { WorkerProcess } from '../support/worker.process.js';

const SESSIONS = Number(process.env['SESSIONS'] ?? 50_000);
const PARTITIONS = { from: 1, to: 64 };
const LOOPS = 8;
/** Milliseconds: the command timeout of the instances. */
const LONGEST = 1000;
const PROGRAM = fileURLToPath(new URL('../support/repartitioned.worker.mjs', import.meta.url));
const COMMAND = fileURLToPath(new URL('../../bin/nest-session-redis.mjs', import.meta.url));

interface Result {
  readonly slots: readonly { readonly id: string; readonly n: number }[];
  readonly ends: readonly [type: string, id: string, n: number][];
  readonly events: readonly [type: string, id: string, n: number, dataLost: boolean][];
  readonly problems: readonly string[];
  readonly times: readonly number[];
}

let store: Store;
let folder: string;
beforeAll(async () => {
  store = await Store.open();
  folder = await mkdtemp(join(tmpdir(), 'repartition-'));
});
afterAll(async () => {
  await store.close();
  await rm(folder, { recursive: true });
});

/** `nest-session-redis repartition` in a process of its own. */
class Repartition {
  readonly lines: string[] = [];
  private readonly child: ChildProcess;

  constructor() {
    const { from, to } = PARTITIONS;
    const args = ['repartition', '--from', `${from}`, '--to', `${to}`, '--url', store.server.url];
    this.child = spawn(process.execPath, [COMMAND, ...args], { env: { ...process.env, NODE_OPTIONS: '' } });
    for (const output of [this.child.stdout!, this.child.stderr!]) {
      createInterface({ input: output }).on('line', (line) => this.lines.push(line));
    }
  }

  /** How many sessions it has moved. */
  get moved(): number {
    return Math.max(0, ...this.lines.map((line) => Number(/^moving: (\d+) /.exec(line)?.[1] ?? 0)));
  }

  async killed(): Promise<void> {
    this.child.kill('SIGKILL');
    await once(this.child, 'exit');
  }

  async finished(): Promise<void> {
    if (this.child.exitCode === null) await once(this.child, 'exit');
    if (this.child.exitCode !== 0) throw new Error(this.lines.join('\n'));
  }
}

async function startWorker(ids: readonly string[], name: string) {
  const [file, result] = [join(folder, `${name}.ids`), join(folder, `${name}.json`)];
  await writeFile(file, ids.join('\n'));
  const environment = { REDIS_URL: store.server.url, IDS: file, RESULT: result, LOOPS: `${LOOPS}` };
  const worker = await WorkerProcess.start(
    { ...environment, PARTITIONS: JSON.stringify(PARTITIONS) },
    { program: PROGRAM },
  );
  const results = async () => {
    worker.lines.length = 0;
    worker.tell('write');
    await worker.saysLine(/^written$/, { timeout: 30_000 });
    return JSON.parse(await readFile(result, 'utf8')) as Result;
  };
  return { worker, results };
}

it(`moves ${SESSIONS} sessions that two instances use, through a crash of the command, and loses no session and no event`, async () => {
  await store.client.hset(store.partitions.meta, 'version', '2', 'partitions', '1');
  const ids: string[] = [];
  while (ids.length < SESSIONS) {
    ids.push(...(await Promise.all(Array.from({ length: 1000 }, () => store.create({ n: '0' }, { interval: 3600 })))));
  }
  const halves = [ids.filter((_, i) => i % 2 === 0), ids.filter((_, i) => i % 2 === 1)];
  const workers = await Promise.all(halves.map((half, i) => startWorker(half, `worker-${i}`)));
  try {
    await store.client.config('RESETSTAT');
    const first = new Repartition();
    await eventually(() => expect(first.moved).toBeGreaterThan(SESSIONS / 10), { timeout: 120_000 });
    await first.killed();
    expect(await store.client.hget(store.partitions.meta, 'partitions')).toBe('1>64');
    const second = new Repartition();
    await second.finished();
    expect(second.moved).toBeGreaterThan(SESSIONS / 10);
    print(`moved ${first.moved} before the crash, ${second.moved} after it; of ${SESSIONS}, the rest by the instances`);
    print(second.lines.join('\n  '));
    const move = await figures(store.client, 'evalsha');
    print(
      `evalsha: ${move.calls} calls, ${(move.microseconds / move.calls).toFixed(1)} us each, longest ${move.longest}`,
    );
    const scan = await figures(store.client, 'scan');
    print(`scan: ${scan.calls} calls, ${(scan.microseconds / scan.calls).toFixed(1)} us each, longest ${scan.longest}`);

    for (const { worker } of workers) worker.tell('stop');
    for (const { worker } of workers) await worker.saysLine(/^stopped$/, { timeout: 30_000 });
    const all = async (): Promise<Result[]> => Promise.all(workers.map(({ results }) => results()));
    // Sessions live up to 20 s after their creation, and a sweep may find them 65 s later.
    await eventually(
      async () => {
        const results = await all();
        const [events, ends] = [results.flatMap((each) => each.events), results.flatMap((each) => each.ends)];
        expect(events.length).toBe(ends.length);
      },
      { timeout: 150_000, interval: 1000 },
    );
    const results = await all();
    expect(results.flatMap(({ problems }) => problems)).toEqual([]);
    const inOrder = (list: readonly (readonly unknown[])[]) =>
      list.map((each) => each.slice(0, 3).join(' ')).toSorted();
    const events = results.flatMap((each) => each.events);
    expect(inOrder(events)).toEqual(inOrder(results.flatMap((each) => each.ends)));
    expect(events.filter(([, , , dataLost]) => dataLost)).toEqual([]);
    const times = results.flatMap((each) => each.times).toSorted((a, b) => a - b);
    const at = (share: number) => times[Math.floor(times.length * share)]!.toFixed(1);
    print(`${times.length} calls: p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, longest ${times.at(-1)!.toFixed(1)} ms`);
    expect(times.at(-1)).toBeLessThan(LONGEST);
    print(`${events.length} ends, each reported once`);

    // The next version of the application has only the new partitions.
    const partitions = new SessionPartitions('nest:session', PARTITIONS.to);
    let found = 0;
    for (const { id, n } of results.flatMap(({ slots }) => slots)) {
      const keys = partitions.of(id);
      const [number, left] = await Promise.all([
        store.client.hget(keys.session(id), 'sessionAttr:n'),
        store.client.pttl(keys.shadow(id)),
      ]);
      expect([number, left > 0]).toEqual([`${n}`, true]);
      found++;
    }
    print(`${found} sessions are alive in the new partitions`);
    expect(await store.client.keys('nest:session:sessions:expires:*')).toEqual([]);
    expect(await store.client.exists(store.keys.bucketList)).toBe(0);
    expect(await store.client.xlen(store.keys.events)).toBe(0);
  } finally {
    await Promise.all(workers.map(({ worker }) => worker.end()));
  }
}, 900_000);
