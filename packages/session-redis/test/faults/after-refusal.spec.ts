import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Injectable } from '@nestjs/common';
import { OnSessionEvent, SessionCreatedEvent, SessionExpiredEvent, SessionRepository } from '@nest-session/core';
import { deadline, type DeadlineEvent, DeadlineModule, Deadlines, OnDeadline } from '@nest-session/deadlines';
import { RedisDeadlineModule } from '@nest-session/deadlines/redis';
import { Gate, LeakGuard } from '@nest-session/test-infrastructure';
import { eventually, freePort, RedisServer } from '@nest-session/testing';
import { Redis } from 'ioredis';
import { Cleanup } from '../../../redis-events/src/cleanup/cleanup.job.js';
import { isFaultOfServer, untilSound } from '../../../redis-events/src/connection/server-faults.js';
import { ExpiredSessionListener } from '../../src/expiration/expired-session.listener.js';
import { EventInstance } from '../support/event-instance.fixture.js';

LeakGuard.install();

const NEVER = '0 0 0 29 2 *';
const MINUTE = 60_000;
/** Attempts of the instance that Redis refuses before the fault ends. With pauses that double they took minutes. */
const REFUSED = 30;
/** Milliseconds, for a machine with other work: what is due when the fault ends is done within about a second. */
const SOON = 5000;

const holdEnds = deadline('seat.hold-ends');

@Injectable()
class Handlers {
  /** What was handled, in the order of the ends of the handlers. */
  readonly handled: string[] = [];
  gate: Gate | undefined;

  @OnSessionEvent(SessionExpiredEvent)
  expired({ sessionId }: SessionExpiredEvent) {
    this.handled.push(`expired ${sessionId}`);
  }

  @OnSessionEvent(SessionCreatedEvent)
  async created({ sessionId }: SessionCreatedEvent) {
    await this.gate?.pass();
    this.handled.push(`created ${sessionId}`);
  }

  @OnDeadline(holdEnds)
  ended({ key }: DeadlineEvent<typeof holdEnds>) {
    this.handled.push(`deadline ${key}`);
  }
}

/** Ways in which a server that can be reached refuses to write, and how that ends. */
const REFUSALS = {
  NOREPLICAS: async (admin: Redis) => {
    await admin.config('SET', 'min-replicas-to-write', '1');
    return () => admin.config('SET', 'min-replicas-to-write', '0');
  },
  READONLY: async (admin: Redis) => {
    await admin.replicaof('127.0.0.1', await freePort());
    return () => admin.replicaof('NO', 'ONE');
  },
  MISCONF: async (admin: Redis) => {
    const lost = await mkdtemp(join(tmpdir(), 'lost-disk-'));
    await admin.config('SET', 'dir', lost, 'save', '3600 1000000');
    await rm(lost, { recursive: true });
    const saved = (status: string) =>
      eventually(async () => expect(await admin.info('persistence')).toContain(`rdb_last_bgsave_status:${status}`));
    await admin.bgsave();
    await saved('err');
    return async () => {
      await admin.config('SET', 'dir', tmpdir(), 'dbfilename', `${process.pid}.rdb`);
      await admin.bgsave();
      await saved('ok');
      await admin.config('SET', 'save', '');
      await rm(join(tmpdir(), `${process.pid}.rdb`), { force: true });
    };
  },
};

describe.each(Object.entries(REFUSALS))('an instance, after Redis has refused with %s for a while,', (word, refuse) => {
  let server: RedisServer;
  let admin: Redis;
  let instance: EventInstance;
  let handlers: Handlers;
  beforeAll(async () => {
    server = await RedisServer.start({ args: ['--enable-protected-configs', 'yes'] });
    admin = new Redis(server.url);
    instance = await EventInstance.start({
      redis: { url: server.url, cleanup: { cron: NEVER } },
      imports: [DeadlineModule.forRoot(), RedisDeadlineModule.forRoot()],
      providers: [Handlers],
    });
    handlers = instance.module.get(Handlers);
    const listener = instance.module.get(ExpiredSessionListener, { strict: false });
    await eventually(() => expect(listener.state).toBe('listening'));
  });
  afterAll(async () => {
    await instance.stop();
    admin.disconnect();
    await server.stop();
  });

  const refused = async () =>
    Number(new RegExp(`errorstat_${word}:count=(\\d+)`).exec(await admin.info('errorstats'))?.[1] ?? 0);
  const isHandled = (what: string) =>
    eventually(() => expect(handlers.handled.filter((each) => each === what)).toEqual([what]), { timeout: SOON });
  const create = async (seconds: number) => {
    const session = instance.module.get(SessionRepository).createSession();
    session.maxInactiveInterval = seconds;
    session.setAttribute('cart', 1);
    await session.save();
    return session.id;
  };

  it.each(['once', 'a second time'])(
    'does all at once that it could not do: %s',
    async (time) => {
      const deadlines = instance.module.get(Deadlines);
      handlers.gate = new Gate();
      const working = await create(600);
      await handlers.gate.reached();
      const expired = await create(1);
      await deadlines.schedule(holdEnds, `during, ${time}`, { in: '1s' });
      const end = await refuse(admin);
      handlers.gate.open();
      handlers.gate = undefined;
      const cleanup = instance.module.get(Cleanup, { strict: false });
      const errors: unknown[] = [];
      const cleaned = cleanup.run(MINUTE, new AbortController().signal, (error) => errors.push(error));
      const before = await refused();
      await eventually(async () => expect(await refused()).toBeGreaterThan(before + REFUSED));
      expect(errors).not.toEqual([]);
      await end();
      const begun = performance.now();
      await isHandled(`deadline during, ${time}`);
      await isHandled(`expired ${expired}`);
      await deadlines.schedule(holdEnds, `after, ${time}`, { in: '200ms' });
      await isHandled(`deadline after, ${time}`);
      expect(await cleaned).toBe(true);
      expect(performance.now() - begun).toBeLessThan(3 * SOON);
      // The handler that ended during the fault is not called again when its lease would have ended.
      await eventually(async () => {
        const [pending] = (await admin.xpending('nest:session:events', 'default')) as [number];
        expect(pending).toBe(0);
      });
      expect(handlers.handled.filter((each) => each === `created ${working}`)).toHaveLength(1);
    },
    120_000,
  );
});

it.each([
  ['NOREPLICAS Not enough good replicas to write.', true],
  ["READONLY You can't write against a read only replica.", true],
  ['WRONGPASS invalid username-password pair or user is disabled.', true],
  ['WRONGTYPE Operation against a key holding the wrong kind of value', false],
  ["NOPERM this user has no permissions to run the 'xack' command", false],
  ['BUSYGROUP Consumer Group name already exists', false],
])(
  'background work is repeated while Redis refuses everything, and not what is wrong with it alone: %s',
  async (message, isFault) => {
    const reply = Object.assign(new Error(message), { name: 'ReplyError' });
    expect(isFaultOfServer(reply)).toBe(isFault);
    let calls = 0;
    const work = async () => {
      if (++calls < 3) throw reply;
      return 'done';
    };
    const result = await untilSound(work, new AbortController().signal).catch((error: unknown) => error);
    expect([result, calls]).toEqual(isFault ? ['done', 3] : [reply, 1]);
    await expect(untilSound(() => Promise.reject(reply), AbortSignal.abort())).rejects.toBe(reply);
  },
);

it('an instance that starts while Redis refuses records its partitions when that is over', async () => {
  const port = await freePort();
  const instance = await EventInstance.start({
    redis: { url: `redis://127.0.0.1:${port}`, cleanup: { cron: NEVER }, commandTimeout: '200ms' },
  });
  const late = await RedisServer.start({ port, args: ['--min-replicas-to-write', '1'] });
  const client = new Redis(late.url);
  try {
    const count = async () =>
      Number(/errorstat_NOREPLICAS:count=(\d+)/.exec(await client.info('errorstats'))?.[1] ?? 0);
    await eventually(async () => expect(await count()).toBeGreaterThan(10));
    await client.config('SET', 'min-replicas-to-write', '0');
    await eventually(async () => expect(await client.hget('nest:session:meta', 'partitions')).toBe('1'), {
      timeout: SOON,
    });
    expect(await client.zcard('nest:session:instances')).toBe(1);
  } finally {
    await instance.stop();
    client.disconnect();
    await late.stop();
  }
});
