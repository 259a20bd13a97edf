import { execFile } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { eventually } from '@nest-session/testing';
import { Redis } from 'ioredis';
import type { ExpirationStoreName } from '../../src/configuration/expirations.options.js';
import { SessionScripts } from '../../src/scripts/session/session.scripts.js';
import { print } from '../support/figures.js';
import { KEEPING_RULES, Store, updateOf } from '../support/store.fixture.js';
import { WorkerProcess } from '../support/worker.process.js';

const COMMAND = fileURLToPath(new URL('../../../session-cli/bin/nest-session.mjs', import.meta.url));
const PATIENCE = 120_000;
const LOOPS = 16;
/** Of each phase, in seconds by the clock of Redis. */
const PHASE = 4;

const run = promisify(execFile);

/** The requests of an application: sessions are created, used, rotated and deleted, and most expire within seconds. */
class Load {
  /** Those with which sessions were created. */
  readonly ids = new Set<string>();
  readonly #open: string[] = [];
  readonly #loops: Promise<void>[] = [];
  #isOver = false;

  constructor(
    private readonly store: Store,
    /** Those of the instances that are deployed now. */
    public deployed: readonly SessionScripts[],
  ) {
    for (let i = 0; i < LOOPS; i++) this.#loops.push(this.#loop());
  }

  async stop(): Promise<void> {
    this.#isOver = true;
    await Promise.all(this.#loops);
  }

  async #loop(): Promise<void> {
    while (!this.#isOver) await this.#step(this.deployed[randomInt(this.deployed.length)]!);
  }

  async #step(scripts: SessionScripts): Promise<void> {
    const n = randomInt(this.#open.length + 1);
    const id = this.#open[n];
    const dice = randomInt(10);
    if (id === undefined || dice < 2) return this.#create(scripts);
    if (dice < 5) await scripts.touch(id);
    else if (dice < 7) await scripts.save(updateOf(id, { attributes: [['a', `${dice}`]] }));
    else if (dice < 8) await scripts.save(updateOf(id, { maxInactiveInterval: randomInt(1, 5) }));
    else if (dice < 9) {
      const newId = this.store.id(id);
      const { outcome } = await scripts.save(updateOf(id, { newId }));
      if (outcome !== 'saved') return void this.#open.splice(n, 1);
      this.#open[this.#open.indexOf(id)] = newId;
    } else {
      await scripts.delete(id);
      this.#open.splice(this.#open.indexOf(id), 1);
    }
  }

  async #create(scripts: SessionScripts): Promise<void> {
    const id = this.store.id();
    const times = { presentedIds: [], maxInactiveInterval: randomInt(1, 6), absoluteTimeout: randomInt(5, 12) };
    const attributes = new Map([['cart', '["apple"]']]);
    await scripts.create({ kind: 'create', id, ...times, attributes, indexes: new Map() });
    this.ids.add(id);
    this.#open.push(id);
    if (this.#open.length > 3000) this.#open.splice(0, 500);
  }
}

describe.each<{ from: ExpirationStoreName; to: ExpirationStoreName; partitions: number }>([
  { from: 'buckets', to: 'sorted-set', partitions: 1 },
  { from: 'sorted-set', to: 'buckets', partitions: 4 },
])('from $from to $to, $partitions partition(s)', ({ from, to, partitions }) => {
  let store: Store;
  let client: Redis;
  const workers: WorkerProcess[] = [];
  beforeAll(async () => {
    store = await Store.open({ partitions, expirations: from });
    client = new Redis(store.server.url);
  });
  afterAll(async () => {
    await Promise.all(workers.map((worker) => worker.end()));
    client.disconnect();
    await store.close();
  });

  async function start(expirations: ExpirationStoreName): Promise<WorkerProcess> {
    const worker = await WorkerProcess.start({
      REDIS_URL: store.server.url,
      CRON: '* * * * * *',
      NOTIFICATIONS: 'off',
      PARTITIONS: `${partitions}`,
      EXPIRATIONS: expirations,
      LEASE: '5s',
    });
    workers.push(worker);
    return worker;
  }

  async function phase(): Promise<void> {
    const end = (await store.now()) + PHASE * 1000;
    await eventually(async () => expect(await store.now()).toBeGreaterThan(end), { timeout: PATIENCE, interval: 100 });
  }

  it('a switch under load, one instance after the other, loses and doubles no end', async () => {
    const next = new SessionScripts(client, store.partitions, { ...KEEPING_RULES, store: to });
    const before = [await start(from), await start(from)];
    const load = new Load(store, [store.scripts]);
    await phase();
    load.deployed = [store.scripts, next];
    for (const worker of before) {
      await start(to);
      await worker.end('SIGTERM');
    }
    await phase();
    load.deployed = [next];
    const args = ['expirations', '--to', to, '--url', store.server.url];
    const { stdout } = await run(process.execPath, [COMMAND, ...args], { env: { ...process.env, NODE_OPTIONS: '' } });
    expect(stdout).toMatch(/^\d+ sessions? moved, \d+ had ended\n$/);
    const old = store.partitions.all.map((keys) => (to === 'buckets' ? keys.ends : keys.bucketList));
    expect(await client.exists(...old)).toBe(0);
    await phase();
    await load.stop();
    expect(await client.exists(...old)).toBe(0);

    // The minute of the last bucket passes.
    const left = store.partitions.all.flatMap((keys) => [keys.ends, keys.bucketList]);
    await eventually(async () => expect(await client.exists(...left)).toBe(0), { timeout: PATIENCE, interval: 250 });
    const ends = new Map([...load.ids].map((id) => [id, [] as string[]]));
    const lost: string[] = [];
    for (const { events } of store.partitions.all) {
      // In the recorded order: a later id stands for the first one.
      const first = new Map<string, string>();
      for (const [, fields] of await client.xrange(events, '-', '+')) {
        const event = Object.fromEntries(fields.flatMap((field, i) => (i % 2 === 0 ? [[field, fields[i + 1]!]] : [])));
        const id = first.get(event['previous'] ?? event['session']!) ?? event['previous'] ?? event['session']!;
        if (event['type'] === 'id-changed') first.set(event['session']!, id);
        if (event['type'] === 'expired' || event['type'] === 'deleted') ends.get(id)?.push(event['type']);
        if (event['dataLost']) lost.push(id);
      }
    }
    const wrong = [...ends].filter(([, types]) => types.length !== 1);
    expect(wrong).toEqual([]);
    expect(lost).toEqual([]);
    print(`from ${from} to ${to}: ${ends.size} sessions, each with one end; ${stdout.trim()} by the command`);
  });
});
