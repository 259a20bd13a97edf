import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { Injectable } from '@nestjs/common';
import { IndexedSessionRepository, OnSessionEvent, SessionDeletedEvent } from '@nest-session/core';
import { LeakGuard, SteppableRedisServer, TcpProxy } from '@nest-session/test-infrastructure';
import { eventually, RedisServer } from '@nest-session/testing';
import { Redis } from 'ioredis';
import { CHECK_NAMES } from '../../src/doctor/diagnosis.js';
import { SessionPartitions } from '../../../session-redis/src/keys/session-partitions.js';
import { jsonOf, runCommand, startCommand } from '../support/command.process.js';
import { documentedLines } from '../../../session-redis/test/support/documented.rights.js';
import { EventInstance } from '../../../session-redis/test/support/event-instance.fixture.js';

LeakGuard.install();

@Injectable()
class Handlers {
  @OnSessionEvent(SessionDeletedEvent)
  handle() {
    throw new Error('on purpose');
  }
}

interface Checked {
  readonly check: string;
  readonly status: string;
  readonly message: string;
  readonly advice?: string;
}

const { meta, instances, all } = new SessionPartitions('nest:session');
const [keys] = all as [(typeof all)[number]];

let server: SteppableRedisServer;
let client: Redis;
let app: EventInstance;
let env: { REDIS_URL: string };
beforeAll(async () => {
  // The application sets nothing: otherwise it would mend a setting of a test, once a minute.
  const args = ['--appendonly', 'yes', '--notify-keyspace-events', 'Kx'];
  server = await SteppableRedisServer.start({ args });
  client = new Redis(server.url);
  env = { REDIS_URL: server.url };
  app = await EventInstance.start({
    redis: { url: server.url, notifications: 'off', cleanup: { cron: '* * * * * *' }, events: { attempts: 1 } },
    providers: [Handlers],
  });
});
afterAll(async () => {
  await app.stop();
  client.disconnect();
  await server.stop();
});

/** The findings of a doctor that is called like this. */
async function findings(line = '', environment = env) {
  const { code, json } = await jsonOf<{ checks: Checked[] }>(`doctor ${line}`.trim(), environment);
  const found = json.checks.filter(({ status }) => status !== 'ok');
  expect(code).toBe(found.length === 0 ? 0 : 2);
  // Each says what to do.
  expect(found.filter(({ advice }) => !advice)).toEqual([]);
  // This machine may be busy.
  return found
    .filter(({ check }) => check !== 'latency')
    .map(({ check, status, message }) => `${status} ${check}: ${message}`);
}

describe('doctor', () => {
  it('finds nothing where all is well, and says what it has looked at', async () => {
    const { json } = await jsonOf<{ checks: Checked[] }>('doctor', env);
    expect(await findings()).toEqual([]);
    expect([...new Set(json.checks.map(({ check }) => check))].join(' ')).toBe(
      'server format rights clock latency memory clients persistence notifications instances cleanup overdue groups dead-letters',
    );
    const { stdout } = await runCommand('doctor --ignore latency', env);
    expect(stdout).toMatch(/^ok +server +127\.0\.0\.1:\d+ is (Redis|Valkey) [^]*\nEverything is fine\.\n$/);
  });

  it.each([
    ['maxmemory-policy', 'allkeys-lru', 'error memory: ...may evict sessions'],
    ['maxmemory', '1mb', 'error memory: ...is full'],
    ['notify-keyspace-events', 'E', 'warning notifications: ...does not announce expired sessions'],
    ['appendonly', 'no', 'warning persistence: ...keeps nothing on disk'],
  ])('finds the setting %s %s', async (name, value, finding) => {
    const [, before] = (await client.config('GET', name)) as [string, string];
    await client.config('SET', name, value);
    try {
      const [begin = '', end = ''] = finding.split('...');
      expect(await findings()).toContainEqual(expect.stringMatching(new RegExp(`^${begin}.*${end}`)));
      if (name === 'notify-keyspace-events') expect(await findings('--ignore notifications')).toEqual([]);
    } finally {
      await client.config('SET', name, before);
    }
  });

  it.each([
    ['sorted-set', 'sorted-set', []],
    // As a move that was interrupted leaves it.
    ['sorted-set', 'buckets', ['warning']],
    ['buckets', 'sorted-set', ['warning']],
    ['buckets', 'buckets', ['warning']],
  ])('needs key events unless the ends of all partitions are in sorted sets: %s, %s', async (...states) => {
    const layout = new SessionPartitions('moving', 2);
    const expected = states.pop() as string[];
    await client.hset(layout.meta, 'version', '3', 'partitions', '2', 'holds', 'sessions', 'ids', 'hashed');
    for (const [i, { ends, bucketList }] of layout.all.entries()) {
      const later = Date.now() + 3_600_000;
      await (states[i] === 'buckets'
        ? client.zadd(bucketList, later, later)
        : client.zadd(ends, later, 'a'.repeat(43)));
    }
    const [, before] = (await client.config('GET', 'notify-keyspace-events')) as [string, string];
    await client.config('SET', 'notify-keyspace-events', '');
    try {
      const others = CHECK_NAMES.filter((name) => name !== 'notifications').join(',');
      const found = await findings(`--namespace moving --ignore ${others}`);
      expect(found.map((each) => each.split(' ')[0])).toEqual(expected);
    } finally {
      await client.config('SET', 'notify-keyspace-events', before);
      await client.del(layout.meta, ...layout.all.flatMap(({ ends, bucketList }) => [ends, bucketList]));
    }
  });

  it('recommends the compact form of hashes where sessions of the namespace would gain by it', async () => {
    const session = (bytes: number) => ['creationTime', '1', 'sessionAttr:cart', 'x'.repeat(bytes)];
    const advised = async () => {
      const { json } = await jsonOf<{ checks: Checked[] }>('doctor --ignore latency', env);
      expect(json.checks.filter(({ status }) => status !== 'ok')).toEqual([]);
      return json.checks.filter(({ check, advice }) => check === 'memory' && advice !== undefined);
    };
    const ids = Array.from({ length: 10 }, (_, n) => `${n}`.repeat(43));
    const fill = async (bytes: number) => {
      for (const id of ids) await client.del(keys.session(id));
      for (const id of ids) await client.hset(keys.session(id), ...session(bytes));
    };
    try {
      // Compact by default, and not even with the setting.
      for (const bytes of [64, 513]) {
        await fill(bytes);
        expect(await advised()).toEqual([]);
      }
      await fill(100);
      expect(await client.object('ENCODING', keys.session(ids[0]!))).toBe('hashtable');
      const [advice] = await advised();
      expect(advice).toMatchObject({
        message: expect.stringMatching(
          /^10 of 10 sampled sessions of 127\.0\.0\.1:\d+ would take less memory/,
        ) as string,
        advice: expect.stringMatching(
          /^CONFIG SET hash-max-listpack-value 512, also in its configuration file\./,
        ) as string,
      });
      await client.config('SET', 'hash-max-listpack-value', 512);
      await fill(100);
      expect(await client.object('ENCODING', keys.session(ids[0]!))).toBe('listpack');
      expect(await advised()).toEqual([]);
    } finally {
      await client.config('SET', 'hash-max-listpack-value', 64);
      await client.del(...ids.map((id) => keys.session(id)));
    }
  });

  it('finds nothing where Redis announces the expired keys of all applications', async () => {
    const [, before] = (await client.config('GET', 'notify-keyspace-events')) as [string, string];
    await client.config('SET', 'notify-keyspace-events', 'Ex');
    try {
      expect(await findings()).toEqual([]);
    } finally {
      await client.config('SET', 'notify-keyspace-events', before);
    }
  });

  it('finds a Redis that replies late', async () => {
    const proxy = await TcpProxy.start(server);
    proxy.delayReplies(30);
    try {
      const { json } = await jsonOf<{ checks: Checked[] }>('doctor --ignore rights,cleanup', { REDIS_URL: proxy.url });
      const late = json.checks.filter(({ check, status }) => check === 'latency' && status !== 'ok');
      expect(late).toEqual([
        expect.objectContaining({ message: expect.stringMatching(/replies within \d+ ms, at worst \d+ ms/) }),
      ]);
    } finally {
      await proxy.stop();
    }
  });

  it('finds that Redis will soon refuse connections', async () => {
    const [, before] = (await client.config('GET', 'maxclients')) as [string, string];
    const connected = /connected_clients:(\d+)/.exec(await client.info('clients'))![1];
    const most = Number(connected) + 2;
    await client.config('SET', 'maxclients', most);
    try {
      const found = await findings();
      expect(found).toEqual([expect.stringMatching(new RegExp(`^warning clients: .* of ${most} connections$`))]);
    } finally {
      await client.config('SET', 'maxclients', before);
    }
  });

  it.each([
    ['ahead of', 30_000],
    ['behind', -30_000],
  ])('finds clocks that differ: that of Redis is %s ours', async (where, step) => {
    await server.stepClock(step);
    try {
      expect(await findings('--ignore instances,cleanup,overdue,groups')).toEqual([
        expect.stringMatching(
          new RegExp(`^warning clock: The clock of .* is (29|30)\\d{3} ms ${where} that of this machine$`),
        ),
      ]);
    } finally {
      await server.stepClock(-step);
    }
  });

  it('finds rights that are missing, its own and those of another user', async () => {
    for (const line of documentedLines(['every process', 'handlers'])) await client.acl('SETUSER', 'app', ...line);
    const own = { REDIS_URL: `redis://app:a-long-secret@127.0.0.1:${server.port}` };
    const others = 'latency,notifications,persistence';
    // PING is no right of an application with one partition.
    const ofRights = (found: readonly string[]) => found.filter((each) => each.includes(' rights: '));
    await client.acl('SETUSER', 'app', '+ping');
    expect(ofRights(await findings(`--ignore ${others}`, own))).toEqual([]);
    expect(ofRights(await findings('--acl-user app'))).toEqual([]);
    await client.acl('SETUSER', 'app', '-xadd', '-xgroup|create', '-hincrby');
    const names = 'HINCRBY, XADD, XGROUP CREATE';
    expect(ofRights(await findings(`--ignore ${others}`, own))).toEqual([
      `error rights: This user may not send ${names}, or not for these keys`,
    ]);
    expect(ofRights(await findings('--acl-user app'))).toEqual([
      `error rights: User "app" may not send ${names}, or not for these keys`,
    ]);
    await client.acl('SETUSER', 'app', 'resetkeys', '~other:*');
    expect(ofRights(await findings('--acl-user app'))[0]).toContain('DEL, EXISTS, GET');
    expect(ofRights(await findings('--acl-user nobody'))[0]).toContain('The rights of user "nobody" cannot be read');
  });

  it('finds another format, an unused namespace, and a move that has not finished', async () => {
    const unused = await findings('--namespace nest:sesion');
    expect(unused).toEqual(['warning format: No application has started in namespace "nest:sesion" yet.']);
    for (const [field, value, problem] of [
      ['version', '1', 'have format 1'],
      ['partitions', '1>4>copy', 'are being moved from 1 to 4 partitions'],
    ] as const) {
      const before = (await client.hget(meta, field))!;
      await client.hset(meta, field, value);
      const found = await findings();
      await client.hset(meta, field, before);
      expect(found).toEqual([
        expect.stringContaining('error format: The sessions in namespace "nest:session" ' + problem),
      ]);
    }
  });

  it('finds dead letters, late groups, and groups that nobody reads', async () => {
    const session = app.module.get(IndexedSessionRepository, { strict: false }).createSession();
    session.setAttribute('a', 1);
    await session.save();
    session.invalidate();
    await session.save();
    await eventually(async () => expect(await client.xlen(keys.deadLetters)).toBe(1));
    await client.xgroup('CREATE', keys.events, 'left', '0');
    const letter = 'warning dead-letters: 1 dead letter waits to be replayed or discarded';
    const unread = 'warning groups: Nobody reads the events of group "left", and they are kept for it';
    expect(await findings()).toEqual([unread, letter]);
    await server.stepClock(400_000);
    try {
      const others = 'clock,instances,cleanup,overdue,dead-letters';
      expect(await findings(`--ignore ${others}`)).toContainEqual(
        expect.stringMatching(
          /^warning groups: Group "left" is late: it has not read \d+ events?, the oldest of them from 6m ago$/,
        ),
      );
    } finally {
      await server.stepClock(-400_000);
    }
    await client.xgroup('DESTROY', keys.events, 'left');
    await client.del(keys.deadLetters, keys.deadLetterIndex);
  });

  it('finds that no instance is alive, that nobody cleans up, and what is overdue', async () => {
    const other = await RedisServer.start({ args: ['--appendonly', 'yes', '--notify-keyspace-events', 'Kx'] });
    const own = new Redis(other.url);
    try {
      // What Redis evicted before it had the right setting is no finding: nothing could mend that.
      await own.set('evicted', '1');
      await own.config('SET', 'maxmemory-policy', 'allkeys-random', 'maxmemory', '1');
      await eventually(async () => expect(await own.info('stats')).toMatch(/evicted_keys:[1-9]/));
      await own.config('SET', 'maxmemory-policy', 'noeviction', 'maxmemory', '0');
      await own.hset(meta, 'version', '3', 'partitions', '1', 'holds', 'sessions', 'ids', 'hashed');
      await own.zadd(instances, Date.now() - 60_000, 'host:1:killed');
      await own.zadd(keys.bucketList, 60_000, '60000');
      await own.sadd(keys.bucket('60000'), `expires:${'a'.repeat(43)}`);
      expect(await findings('', { REDIS_URL: other.url })).toEqual([
        'warning instances: No instance is alive; 1 was killed within a day, or does not reach Redis',
        'warning cleanup: Nobody has taken the turn for the cleanup',
        expect.stringMatching(/^error overdue: The oldest end of a session that nobody has noticed was due \d+d ago$/),
      ]);
    } finally {
      own.disconnect();
      await other.stop();
    }
  });

  it('finds that it looks at a replica', async () => {
    const replica = await RedisServer.start({
      args: ['--replicaof', `127.0.0.1 ${server.port}`, '--appendonly', 'yes'],
    });
    const own = new Redis(replica.url);
    try {
      await eventually(async () => expect(await own.exists(meta)).toBe(1));
      const found = await findings('--ignore cleanup', { REDIS_URL: replica.url });
      expect(found[0]).toMatch(/^error server: .* is a replica, which accepts no writes$/);
    } finally {
      own.disconnect();
      await replica.stop();
    }
  });

  it('gives calls that a shell runs as they are, for the namespace that it has looked at', async () => {
    const [{ meta: record }, others] = [new SessionPartitions('shop:2'), new SessionPartitions('shop:2').all[0]!];
    await client.hset(record, 'version', '3', 'partitions', '1', 'holds', 'sessions', 'ids', 'hashed');
    await client.xgroup('CREATE', others.events, "-it's `id`", '$', 'MKSTREAM');
    const { json } = await jsonOf<{ checks: Checked[] }>('doctor --namespace shop:2 --ignore cleanup', env);
    const { advice = '' } = json.checks.find(({ check }) => check === 'groups')!;
    const [, words] = advice.split('nest-session ');
    const { stdout } = spawnSync('sh', ['-c', `printf '%s\\n' ${words}`], { encoding: 'utf8' });
    expect(stdout).toBe("groups\n--remove=-it's `id`\n--yes\n--namespace=shop:2\n");
    await client.del(record, others.events);
  });

  it('names the record of the store that is no hash: no other command could', async () => {
    await client.set('odd:meta', 'stray');
    for (const command of ['doctor --ignore cleanup', 'verify', 'stats']) {
      const { stdout, stderr } = await runCommand(`${command} --namespace odd`, env);
      expect(stdout + stderr).toContain('odd:meta is no hash: something else has written it');
    }
    await client.del('odd:meta');
  });

  it('shows all other findings where one thing cannot be looked at', async () => {
    const [{ meta: record }, stray] = [new SessionPartitions('stray'), new SessionPartitions('stray').all[0]!];
    await client.hset(record, 'version', '3', 'partitions', '1');
    await client.set(stray.deadLetters, 'stray');
    const found = await findings('--namespace stray --ignore instances,cleanup');
    expect(found).toEqual([
      expect.stringMatching(
        /^error dead-letters: This could not be checked: Redis failed: WRONGTYPE.*run `nest-session verify`/,
      ),
    ]);
    await client.acl(
      'SETUSER',
      'app',
      'reset',
      'on',
      '>a-long-secret',
      '~*',
      '&*',
      '+@all',
      '-ping',
      '-time',
      '-config|get',
    );
    const own = { REDIS_URL: `redis://app:a-long-secret@127.0.0.1:${server.port}` };
    const { json } = await jsonOf<{ checks: Checked[] }>('doctor --ignore rights', own);
    const unknown = json.checks
      .filter(({ message }) => /is unknown|cannot be read/.test(message))
      .map(({ check }) => check);
    expect(unknown).toEqual(['clock', 'latency', 'notifications']);
  });

  it('tells that it could not look at the sessions, also where the check that says so is ignored', async () => {
    await client.acl('SETUSER', 'blind', 'on', '>a-long-secret', '~*', '&*', '+@all', '-hmget');
    const own = { REDIS_URL: `redis://blind:a-long-secret@127.0.0.1:${server.port}` };
    const others = CHECK_NAMES.filter((name) => name !== 'notifications').join(',');
    expect(await findings(`--ignore ${others}`, own)).toEqual([expect.stringMatching(/^error format: .*NOPERM/)]);
  });

  it('ends with Ctrl+C while it waits for the next cleanup', async () => {
    const { meta: record, instances: alive } = new SessionPartitions('young');
    await client.hset(record, 'version', '3', 'partitions', '1');
    await client.zadd(alive, Date.now(), 'host:1:young');
    const child = startCommand('doctor --json --namespace young', env);
    const told = [text(child.stdout), text(child.stderr)];
    await eventually(async () => expect(await client.info('commandstats')).toMatch(/cmdstat_xlen/));
    const asked = async () => Number(/cmdstat_exists:calls=(\d+)/.exec(await client.info('commandstats'))?.[1] ?? 0);
    const before = await asked();
    await eventually(async () => expect(await asked()).toBeGreaterThan(before + 5));
    child.kill('SIGINT');
    await once(child, 'close');
    expect([child.exitCode, ...(await Promise.all(told))]).toEqual([
      1,
      '',
      'Interrupted. Run the command again to continue.\n',
    ]);
  });

  it('refuses a check that does not exist', async () => {
    const { code, stdout, stderr } = await runCommand('doctor --ignore clocks', env);
    expect([code, stdout, stderr]).toEqual([
      1,
      '',
      expect.stringContaining('There is no check "clocks". The checks are server, '),
    ]);
  });
});
