import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { LeakGuard, TcpProxy } from '@nest-session/test-infrastructure';
import { RedisCluster } from '@nest-session/testing';
import { Cluster } from 'ioredis';
import { SessionPartitions } from '../../../session-redis/src/keys/session-partitions.js';
import { SessionScripts } from '../../../session-redis/src/scripts/session/session.scripts.js';
import { KEEPING_RULES, Store } from '../../../session-redis/test/support/store.fixture.js';

LeakGuard.install();

const COMMAND = fileURLToPath(new URL('../../bin/nest-session.mjs', import.meta.url));

async function run(...args: string[]) {
  const child = spawn(process.execPath, [COMMAND, 'verify', ...args], { env: { ...process.env, NODE_OPTIONS: '' } });
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]);
  return { code: child.exitCode, stdout, stderr };
}

describe('nest-session verify', () => {
  let store: Store;
  let url: string;
  beforeEach(async () => {
    store = await Store.open({ partitions: 2 });
    url = store.server.url;
    await store.client.hset(store.partitions.meta, { version: '3', partitions: 2, holds: 'sessions', ids: 'hashed' });
  });
  afterEach(() => store.close());

  it('says what it finds and exits with 2, mends it with --repair, and then finds nothing', async () => {
    const id = await store.create({ a: '1' });
    await store.client.persist(store.keysOf(id).session(id));
    const shown = id;
    const found = await run('--url', url);
    expect(found).toMatchObject({ code: 2, stderr: '' });
    const [rule, examples, mending, summary, advice] = found.stdout.split('\n');
    expect([rule, examples, mending, advice]).toEqual([
      'session-hash-expiry: 1. A session hash goes before its session, or never.',
      `  such as ${shown}`,
      '  --repair: goes the grace period after the session',
      'To mend it, run the command again with --repair.',
    ]);
    expect(summary).toMatch(/^1 of the \d+ rules is broken\. \d+ keys and entries were looked at\.$/);
    const { code, stdout } = await run('--url', url, '--json');
    expect([code, JSON.parse(stdout)]).toEqual([
      2,
      { findings: [{ rule: 'session-hash-expiry', count: 1, examples: [shown] }], looked: expect.any(Number) },
    ]);
    const repaired = await run('--url', url, '--repair', '--json');
    expect([repaired.code, JSON.parse(repaired.stdout)]).toEqual([
      0,
      {
        findings: [{ rule: 'session-hash-expiry', count: 1, examples: [shown] }],
        left: [],
        looked: expect.any(Number),
      },
    ]);
    const healthy = await run('--url', url);
    expect(healthy).toMatchObject({ code: 0, stderr: '' });
    expect(healthy.stdout).toMatch(/^None of the \d+ rules is broken\. \d+ keys and entries were looked at\.\n$/);
    expect(await store.client.pttl(store.keysOf(id).session(id))).toBeGreaterThan(0);
  });

  // With plain ids, the id is the token.
  it.each(['hashed', 'plain'])(
    'says that something is left after the repair, and exits with 3: %s ids',
    async (ids) => {
      await store.client.hset(store.partitions.meta, 'ids', ids);
      const id = await store.create({ a: '1' });
      const proxy = await TcpProxy.start(store.server);
      const repaired = run('--url', proxy.url, '--repair', ...(ids === 'plain' ? ['--json'] : []));
      let isOver = false;
      void repaired.finally(() => (isOver = true));
      // Broken again before each look at the keys: also after the last repair.
      for (;;) {
        proxy.hold('request', 'scan');
        await Promise.race([proxy.untilHeld('request'), repaired]);
        if (isOver) break;
        await store.client.persist(store.keysOf(id).session(id));
        proxy.release();
      }
      const { code, stdout } = await repaired;
      await proxy.stop();
      expect(code).toBe(3);
      if (ids === 'hashed') return expect(stdout).toContain('\nStill there after the repair: session-hash-expiry 1.\n');
      const found = [
        { rule: 'session-hash-expiry', count: 1, examples: [expect.stringMatching(/^sha256:[\w-]{16}$/)] },
      ];
      expect(JSON.parse(stdout)).toEqual({ findings: found, left: found, looked: expect.any(Number) });
      expect(stdout).not.toContain(id);
    },
  );

  it('refuses a rate of nothing', async () => {
    expect(await run('--url', url, '--rate', '0')).toEqual({
      code: 1,
      stdout: '',
      stderr: '--rate must be at least 1.\n',
    });
  });

  it('refuses a namespace in which no application has started', async () => {
    const { code, stderr } = await run('--url', url, '--namespace', 'other');
    expect(code).toBe(1);
    expect(stderr).toContain('o application has started in namespace "other"');
  });

  it('exits with 1 when Redis does not reply', async () => {
    store.server.freeze();
    const { code, stderr } = await run('--url', url);
    store.server.thaw();
    expect(code).toBe(1);
    expect(stderr).toContain('cannot be reached');
  });
});

it('nest-session verify looks at all nodes of a Cluster', async () => {
  const servers = await RedisCluster.start();
  const client = new Cluster(servers.nodes.map(({ port }) => ({ host: '127.0.0.1', port })));
  try {
    const partitions = new SessionPartitions('nest:session', 64);
    await client.hset(partitions.meta, { version: '3', partitions: 64, holds: 'sessions' });
    const scripts = new SessionScripts(client as never, partitions, KEEPING_RULES);
    const ids = Array.from({ length: 30 }, (_, i) => `${i}`.padStart(43, 'a'));
    for (const id of ids) {
      const session = { kind: 'create', id, presentedIds: [], maxInactiveInterval: 1800, absoluteTimeout: -1 } as const;
      await scripts.create({ ...session, attributes: new Map(), indexes: new Map() });
      await client.persist(partitions.of(id).session(id));
    }
    const address = servers.nodes.map(({ port }) => `127.0.0.1:${port}`).join(',');
    const { code, stdout } = await run('--cluster', address, '--json');
    expect([code, JSON.parse(stdout)]).toEqual([
      2,
      {
        findings: [{ rule: 'session-hash-expiry', count: 30, examples: expect.any(Array) }],
        looked: expect.any(Number),
      },
    ]);
    expect((await run('--cluster', address, '--repair')).code).toBe(0);
    expect((await run('--cluster', address)).code).toBe(0);
  } finally {
    client.disconnect();
    await servers.stop();
  }
});
