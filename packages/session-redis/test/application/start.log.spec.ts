import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { type LoggerService, type LogLevel } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { SessionModule, type SessionModuleOptions } from '@nest-session/core';
import { RedisSessionModule, type RedisSessionModuleOptions } from '@nest-session/redis';
import { LeakGuard, Sentinel } from '@nest-session/test-infrastructure';
import { eventually, freePort, RedisCluster, RedisServer } from '@nest-session/testing';
import { Redis } from 'ioredis';
import { HandTimer } from '../support/hand.timer.js';
import { ALL_RIGHTS, withAllRights } from '../support/with-all-rights.js';
import { monitorOf } from '../support/monitor-of.js';

LeakGuard.install();

const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
  version: string;
};

const KEY = randomBytes(32).toString('base64');
const SIGNING_KEY = 'the-signing-key-of-this-application';

/** The lines of an application, each with its level before it. */
class Lines implements LoggerService {
  readonly all: string[] = [];
  readonly log = this.#at('log');
  readonly verbose = this.#at('verbose');
  readonly warn = this.#at('warn');
  readonly error = this.#at('error');

  /** The lines about the start; those that an application has at most one of. */
  get start(): string[] {
    return this.all.filter((line) => /keeps sessions in/.test(line));
  }

  get details(): string[] {
    return this.all.filter((line) => /Options that are in effect/.test(line));
  }

  #at(level: LogLevel): (message: unknown) => void {
    return (message) => void this.all.push(`${level} ${String(message)}`);
  }
}

class FailingTimer extends HandTimer {
  override start(): never {
    throw new Error('on purpose');
  }
}

interface Options {
  readonly redis: RedisSessionModuleOptions;
  readonly session?: SessionModuleOptions;
}

/** Starts an application, and stops it when it has logged its start. */
async function linesOf({ redis, session }: Options): Promise<Lines> {
  const lines = new Lines();
  const imports = [SessionModule.forRoot(session), RedisSessionModule.forRoot({ commandTimeout: '5s', ...redis })];
  const app = await Test.createTestingModule({ imports }).setLogger(lines).compile();
  try {
    await app.init();
    await eventually(() => expect(lines.details).toHaveLength(1));
  } finally {
    await app.close();
  }
  return lines;
}

let server: RedisServer;
let client: Redis;
let running: string;
beforeAll(async () => {
  server = await RedisServer.start();
  client = new Redis(server.url);
  const info = await client.info('server');
  const valkey = /^valkey_version:(\S+)/m.exec(info)?.[1];
  running = valkey === undefined ? `Redis ${/^redis_version:(\S+)/m.exec(info)![1]}` : `Valkey ${valkey}`;
});
afterAll(async () => {
  client.disconnect();
  await server.stop();
});

describe('the line at the start', () => {
  it('says what runs, in one line', async () => {
    const { start } = await linesOf({ redis: { url: withAllRights(server.url) } });
    expect(start).toEqual([
      `log nest-session ${version} keeps sessions in ${running}, standalone: 127.0.0.1:${server.port}; ` +
        'namespace "nest:session"; partitions 1; expirations buckets; notifications listening; group "default"; ' +
        'serializer JsonAttributeSerializer; security standard',
    ]);
  });

  it('says what the options have changed', async () => {
    const { start } = await linesOf({
      redis: {
        url: `${server.url}/3`,
        namespace: 'shop',
        partitions: 4,
        expirations: 'sorted-set',
        notifications: 'off',
        events: { group: 'mails', consume: false },
      },
      session: { security: 'strict' },
    });
    expect(start).toEqual([
      expect.stringMatching(
        /: \S+, database 3; namespace "shop"; partitions 4; expirations sorted-set; notifications off; group "mails" \(not handled here\); serializer JsonAttributeSerializer; security strict$/,
      ),
    ]);
  });

  it('says that a timer helps', async () => {
    const { start } = await linesOf({ redis: { url: server.url, expirations: new HandTimer() } });
    expect(start.join()).toContain('; expirations buckets with a timer; ');
  });

  it.each([
    ['silent', 'when CONFIG is forbidden and off', ['allchannels', '-config']],
    ['refused', 'when the channels are forbidden, too', ['resetchannels', '-config']],
  ])('says that notifications are %s %s', async (state, _, rights) => {
    const own = await RedisServer.start();
    const admin = new Redis(own.url);
    await admin.call('acl', 'setuser', 'limited', 'on', '>secret', '~*', '+@all', ...rights);
    try {
      const { start, all } = await linesOf({ redis: { url: own.url.replace('//', '//limited:secret@') } });
      expect(start.join()).toContain(`; notifications ${state}; `);
      // Redis after 7.0 and Valkey name the user in the reply that a line quotes: an operator sees who lacks the right.
      const lines = all.join().replace('NOPERM User limited has no permissions', 'NOPERM');
      expect(lines).not.toMatch(/limited|secret/);
    } finally {
      admin.disconnect();
      await own.stop();
    }
  });

  it('says that it has no version where INFO is forbidden', async () => {
    await client.call('acl', 'setuser', 'uninformed', 'on', '>secret', '~*', '&*', '+@all', '-info');
    const { start } = await linesOf({ redis: { url: server.url.replace('//', '//uninformed:secret@') } });
    expect(start.join()).toContain('keeps sessions in Redis of unknown version, standalone: ');
  });

  it('names the number of primaries of a Cluster', async () => {
    const cluster = await RedisCluster.start();
    try {
      const nodes = [cluster.addresses[0]!];
      const { start } = await linesOf({ redis: { cluster: { nodes }, partitions: 3, ...ALL_RIGHTS } });
      expect(start).toEqual([
        expect.stringContaining(
          `keeps sessions in ${running}, Cluster with 3 primaries: Cluster of 127.0.0.1:${cluster.addresses[0]!.port}; `,
        ),
      ]);
    } finally {
      await cluster.stop();
    }
  });

  it('names the Sentinels', async () => {
    const replica = await RedisServer.start({ args: ['--replicaof', `127.0.0.1 ${server.port}`] });
    const sentinel = await Sentinel.start('main', server);
    try {
      const sentinels = [{ host: '127.0.0.1', port: sentinel.port }];
      const { start } = await linesOf({ redis: { sentinels, name: 'main' } });
      expect(start.join()).toContain(
        `${running}, Sentinel: master main of the Sentinels 127.0.0.1:${sentinel.port}; namespace`,
      );
    } finally {
      await sentinel.stop();
      await replica.stop();
    }
  });

  it('is there when Redis cannot be reached, without user and password', async () => {
    const port = await freePort();
    const lines = await linesOf({
      redis: { url: `redis://a-user:secret@127.0.0.1:${port}/2`, commandTimeout: '100ms' },
    });
    expect(lines.start.join()).toContain(
      `Redis of unknown version, standalone: 127.0.0.1:${port}, database 2; namespace "nest:session"; partitions 1; ` +
        'expirations buckets; notifications connecting; ',
    );
    expect(lines.all.join()).not.toMatch(/a-user|secret/);
  });

  it('is there when a Cluster cannot be reached', async () => {
    const nodes = [{ host: '127.0.0.1', port: await freePort() }];
    const { start } = await linesOf({ redis: { cluster: { nodes }, commandTimeout: '100ms' } });
    expect(start.join()).toContain(
      `keeps sessions in Redis of unknown version, Cluster: Cluster of 127.0.0.1:${nodes[0]!.port}; `,
    );
  });

  it.each<{ why: string; redis: () => Promise<RedisSessionModuleOptions>; message: string }>([
    {
      why: 'sessions in other partitions',
      redis: async () => {
        await client.hset('other:meta', 'version', '3', 'partitions', '2');
        return { url: server.url, namespace: 'other' };
      },
      message: 'are in 2 partitions',
    },
    {
      why: 'no right to the keys',
      redis: async () => {
        await client.call('acl', 'setuser', 'elsewhere', 'on', '>secret', '~others:*', '&*', '+@all');
        return { url: server.url.replace('//', '//elsewhere:secret@') };
      },
      message: 'RedisSessionModule cannot start: Redis failed: NOPERM',
    },
    {
      why: 'no Redis, with `requireAtStart`',
      redis: async () => ({ url: `redis://127.0.0.1:${await freePort()}`, requireAtStart: true }),
      message: 'Redis cannot be reached, and option `requireAtStart` is set',
    },
    {
      why: 'a timer that fails',
      redis: () => Promise.resolve({ url: server.url, expirations: new FailingTimer() }),
      message: 'on purpose',
    },
  ])('is not there when the start is refused: $why', async ({ redis, message }) => {
    const lines = new Lines();
    const imports = [SessionModule.forRoot(), RedisSessionModule.forRoot(await redis())];
    const app = await Test.createTestingModule({ imports }).setLogger(lines).compile();
    await expect(app.init()).rejects.toThrow(message);
    expect(lines.start).toEqual([]);
    await app.close();
  });

  it('costs one command, besides the check of the version', async () => {
    const monitor = await monitorOf(new Redis(server.url, { lazyConnect: true }));
    const sent: string[] = [];
    monitor.on('monitor', (_, args: string[]) => sent.push(args.join(' ').toLowerCase()));
    try {
      await linesOf({ redis: { url: server.url } });
      await client.echo('all were sent');
      await eventually(() => expect(sent).toContain('echo all were sent'));
    } finally {
      monitor.disconnect();
    }
    expect(sent.filter((command) => command === 'info server')).toHaveLength(2);
  });
});

describe('the details at the start', () => {
  it('are a line of level verbose with the other options, and no secret', async () => {
    const { all, details } = await linesOf({
      redis: {
        url: server.url,
        grace: '10m',
        encryption: { keys: [{ id: 'k1', key: KEY }] },
        events: { lease: '45s' },
      },
      session: { timeout: '20m', cookie: { signingKeys: [SIGNING_KEY] } },
    });
    expect(details).toEqual([
      `verbose Options that are in effect, on Node.js ${process.version}: timeout 1200 s; anonymousTimeout 1200 s; ` +
        'absoluteTimeout none; grace 600 s; commandTimeout 5 s; replicas 0; requireAtStart false; encryption on; ' +
        'cleanup.cron "0 * * * * *"; cleanup.batchSize 50; events.retention 3600 s; events.maxLength 1000000; ' +
        'events.lease 45 s; events.attempts 10; events.deadLetters.retention 2592000 s; events.shutdownTimeout 10 s; ' +
        'events.concurrency 32',
    ]);
    for (const secret of [KEY, SIGNING_KEY]) expect(all.join()).not.toContain(secret);
  });
});
