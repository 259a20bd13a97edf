import { once } from 'node:events';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually, RedisServer } from '@nest-session/testing';
import { Redis } from 'ioredis';
import { DeadlinePartitions, memberOf } from '../../../deadlines/src/redis/deadline-keys.js';
import { SessionPartitions } from '../../../session-redis/src/keys/session-partitions.js';
import { DeadlineScripts } from '../../../deadlines/src/scripts/deadlines/deadline.scripts.js';
import { jsonOf, runCommand, startCommand } from '../support/command.process.js';
import { commandStats } from '../../../session-redis/test/support/command.stats.js';
import { documentedCommands, documentedLines } from '../../../session-redis/test/support/documented.rights.js';
import { fill } from '../../../session-redis/test/support/filled.store.js';

LeakGuard.install();

/** Commands that need no right, or that show what was sent. */
const ALWAYS = ['auth', 'client|setinfo', 'hello', 'quit'];
const DEADLINES = 'nest:session:deadlines';

let server: RedisServer;
let client: Redis;
let live: string;
beforeAll(async () => {
  server = await RedisServer.start();
  client = new Redis(server.url);
  const sessions = new SessionPartitions('nest:session', 2);
  await fill(client, sessions, 'buckets', 3);
  await client.hset(sessions.meta, 'holds', 'sessions', 'ids', 'hashed');
  const deadlines = new DeadlinePartitions(DEADLINES);
  await client.hset(deadlines.meta, 'version', '3', 'partitions', '1', 'holds', 'deadlines');
  const data = { text: '"planted-value"', dataKey: undefined };
  const its = { id: 'a', key: 'order-1', member: memberOf('unpaid', 'order-1'), due: { in: 3_600_000 }, data } as const;
  await new DeadlineScripts(client).schedule(
    deadlines.all[0]!,
    'unpaid',
    [{ ...its, name: 'unpaid', ifExists: 'replace', traceparent: undefined } as never],
    100,
  );
  const [hash] = (await client.keys('nest:session:{*}:sessions:*')).filter((key) => /sessions:[\w-]{43}$/.test(key));
  live = hash!.slice(-43);
});
afterAll(async () => {
  client.disconnect();
  await server.stop();
});

/** Everything, with its end. */
async function contents(): Promise<Record<string, string>> {
  const keys = (await client.keys('*')).sort();
  const dumps = await Promise.all(
    keys.map(async (key) => [
      key,
      `${await client.pexpiretime(key)} ${(await client.dumpBuffer(key))!.toString('hex')}`,
    ]),
  );
  return Object.fromEntries(dumps) as Record<string, string>;
}

async function settings(): Promise<unknown> {
  return client.config('GET', '*');
}

/** How many scripts Redis has run: `watch` looks for events with one. */
async function scriptsRun(): Promise<number> {
  const stats = await commandStats(client);
  return ['eval', 'evalsha'].reduce((sum, name) => sum + (stats.get(name)?.calls ?? 0), 0);
}

/** Runs every command that reads, each in both namespaces that it can look into. Returns their exit codes. */
async function readEverything(url: string, doctor: string): Promise<(number | null)[]> {
  const env = { REDIS_URL: url };
  const lines = [
    doctor,
    `${doctor} --namespace ${DEADLINES}`,
    'stats',
    `stats --namespace ${DEADLINES}`,
    'list --user ann',
    `show ${live}`,
    'groups',
    `groups --namespace ${DEADLINES}`,
    'dead-letters',
    `dead-letters --namespace ${DEADLINES}`,
  ];
  const codes: (number | null)[] = [];
  for (const line of lines) codes.push((await runCommand(line, env)).code);
  const before = await scriptsRun();
  const watch = startCommand('watch', env);
  await once(watch.stderr, 'data');
  await eventually(async () => expect(await scriptsRun()).toBeGreaterThan(before));
  watch.kill('SIGTERM');
  await once(watch, 'close');
  return [...codes, watch.exitCode];
}

it('commands that read change no key, no end of a key, and no setting', async () => {
  const before = [await contents(), await settings(), await client.script('EXISTS', 'a')];
  expect(Object.keys(before[0] as object).length).toBeGreaterThan(30);
  const codes = await readEverything(server.url, 'doctor --ignore cleanup');
  // The doctor finds that nobody runs.
  expect(codes).toEqual([2, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
  expect([await contents(), await settings(), await client.script('EXISTS', 'a')]).toEqual(before);
});

it('commands that read need the documented rights, and no others', async () => {
  for (const line of documentedLines(['reading commands'])) await client.acl('SETUSER', 'reader', ...line);
  const url = `redis://reader:another-secret@127.0.0.1:${server.port}`;
  await client.acl('LOG', 'RESET');
  await client.config('RESETSTAT');
  // The rights of applications are not those of a reader: it tries all of them.
  const codes = await readEverything(url, 'doctor --ignore rights');
  const denied = (await client.acl('LOG')) as string[][];
  expect(denied.map((entry) => entry[entry.indexOf('object') + 1])).toEqual([]);
  expect(codes).toEqual([2, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
  const stats = await commandStats(client);
  const used = [...stats].filter(([name, { calls }]) => calls > 0 && !ALWAYS.includes(name)).map(([name]) => name);
  const own = ['acl|log', 'config|resetstat'];
  expect(used.filter((name) => !own.includes(name)).sort()).toEqual(documentedCommands(['reading commands']).sort());
  const { json } = await jsonOf<{ checks: { check: string; message: string }[] }>('doctor', { REDIS_URL: url });
  expect(json.checks.find(({ check }) => check === 'rights')!.message).toMatch(/^This user may only read\./);
});

it.each(['verify', 'erase --user ann --yes', 'spring'])('without its rights, %s says what to do', async (line) => {
  for (const rights of documentedLines(['reading commands'])) await client.acl('SETUSER', 'reader', ...rights);
  const url = `redis://reader:another-secret@127.0.0.1:${server.port}`;
  expect(await runCommand(line, { REDIS_URL: url })).toEqual({
    code: 1,
    stdout: '',
    stderr: expect.stringMatching(
      /^Redis failed: .*\. Grant this user of Redis the rights of the page "Securing Redis"/,
    ),
  });
});

it('commands that change something refuse data that only a newer version may write, and change nothing', async () => {
  const sessions = new SessionPartitions('nest:session', 2);
  const env = { REDIS_URL: server.url };
  await client.hset(sessions.meta, 'version', '4', 'minReader', '3', 'minWriter', '4');
  await client.xgroup('CREATE', sessions.all[0]!.events, 'left', '$', 'MKSTREAM');
  const letter = '1-1-0';
  try {
    const before = await contents();
    const lines = [
      `end ${live}`,
      'end --user ann --yes',
      'end --begun-before now --yes',
      'erase --user ann --yes',
      'groups --remove left --yes',
      `dead-letters --replay ${letter}`,
      'dead-letters --replay all',
      `dead-letters --discard ${letter} --yes`,
      'dead-letters --discard all --yes',
      'verify --repair',
      'repartition --from 2 --to 4',
    ];
    for (const line of lines) {
      const { code, stdout, stderr } = await runCommand(line, env);
      expect([line, code, stdout, stderr]).toEqual([line, 1, '', expect.stringMatching(/format 4 may write it/)]);
    }
    // Whoever only looks need not know it.
    for (const line of ['stats', 'list --user ann', `show ${live}`, 'groups', 'dead-letters']) {
      expect([line, (await runCommand(line, env)).code]).toEqual([line, 0]);
    }
    expect(await contents()).toEqual(before);
  } finally {
    await client.hset(sessions.meta, 'version', '3');
    await client.hdel(sessions.meta, 'minReader', 'minWriter');
    await client.xgroup('DESTROY', sessions.all[0]!.events, 'left');
  }
});
