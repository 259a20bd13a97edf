import { Logger } from '@nestjs/common';
import { PRINCIPAL_NAME_INDEX_NAME, type Session } from '@nest-session/core';
import { PRINCIPAL_ATTRIBUTE } from '@nest-session/core/internal';
import { RedisSessionRepository, SessionEventGroups } from '@nest-session/redis';
import { jest } from '@jest/globals';
import { LeakGuard, SteppableRedisServer } from '@nest-session/test-infrastructure';
import { eventually } from '@nest-session/testing';
import { Redis } from 'ioredis';
import { SessionPartitions } from '../../src/keys/session-partitions.js';
import { App } from '../support/app.fixture.js';
import { hashOfValue } from '../support/hash-of-value.js';

LeakGuard.install();

const MINUTE = 60_000;
const TIMEOUT = 30 * MINUTE;
const GRACE = 5 * MINUTE;

// The state of a session after the outage, by its idle timeout: `outage` later, it is ...
const OUTAGE = TIMEOUT + GRACE + 60 * MINUTE;
const KINDS = {
  lost: { interval: TIMEOUT, count: 150 }, // ... over for so long that nothing but the member in the bucket is left
  kept: { interval: OUTAGE - 3 * MINUTE, count: 150 }, // ... over, with their data
  alive: { interval: OUTAGE + 10 * MINUTE, count: 50 }, // ... alive, although the minute of their first end is past
};
type Kind = keyof typeof KINDS;

describe.each([
  { notifications: 'auto', count: 4, expirations: 'buckets' },
  { notifications: 'off', count: 1, expirations: 'buckets' },
  { notifications: 'off', count: 4, expirations: 'sorted-set' },
] as const)(
  'an outage longer than idle timeout and grace period, notifications $notifications, $expirations, $count partitions,',
  ({ notifications, count, expirations }) => {
    const partitions = new SessionPartitions('nest:session', count);
    let server: SteppableRedisServer;
    let client: Redis;
    beforeAll(async () => {
      const args = ['--appendonly', 'yes', '--appendfsync', 'always'];
      server = await SteppableRedisServer.start({ args });
      client = new Redis(server.url);
      client.on('error', () => undefined);
    });
    afterAll(async () => {
      client.disconnect();
      await server.stop();
    });
    afterEach(() => {
      jest.restoreAllMocks();
    });

    const start = () => {
      // The test steps the clock of Redis by an hour at once, so the job runs every second.
      const cleanup = { cron: '* * * * * *' };
      const grace = `${GRACE}ms` as const;
      const redis = { url: server.url, notifications, expirations, partitions: count, cleanup, grace };
      // Redis writes each of hundreds of concurrent saves to disk.
      return App.start({ redis: { ...redis, commandTimeout: '30s' } });
    };

    const openSessions = async (app: App, kind: Kind) => {
      const repository = app.nest.get(RedisSessionRepository, { strict: false });
      return Promise.all(
        Array.from({ length: KINDS[kind].count }, async (_, i) => {
          const session = repository.createSession();
          session.principalName = `${kind}${i % 10}`;
          session.setAttribute('cart', i);
          session.maxInactiveInterval = KINDS[kind].interval / 1000;
          await session.save();
          return session;
        }),
      );
    };

    it('loses no session: each ended one is reported, each live one is found and ends later', async () => {
      const before = await start();
      const repository = before.nest.get(RedisSessionRepository, { strict: false });
      const [lost, kept, alive] = (await Promise.all(
        (['lost', 'kept', 'alive'] as const).map((kind) => openSessions(before, kind)),
      )) as [Session[], Session[], Session[]];
      // Renewed, half by a touch and half by a save: they stay in the bucket of an earlier end.
      await server.stepClock(20 * MINUTE);
      await Promise.all(
        [...lost, ...kept, ...alive].map(async (session, i) => {
          if (i % 2 === 0) return expect(await repository.touch(session)).toBe('touched');
          session.setAttribute('renewed', true);
          return expect(await session.save()).toBe('saved');
        }),
      );
      await before.stop();
      expect(before.events.count('expired')).toBe(0);

      await server.kill();
      await server.stepClock(OUTAGE);
      await server.restart();
      const logged = jest.spyOn(Logger.prototype, 'log');
      const after = await start();
      try {
        for (const { id } of lost) expect(await after.events.next('expired', id)).toMatchObject({ dataLost: true });
        for (const [i, { id }] of kept.entries()) {
          const { dataLost, session, principalName } = await after.events.next('expired', id);
          expect({ dataLost, cart: session.getAttribute('cart'), principalName }).toEqual({
            dataLost: false,
            cart: i,
            principalName: `kept${i % 10}`,
          });
        }
        const reported = lost.length + kept.length;
        expect(after.events.count('expired')).toBe(reported);
        // With notifications, some may have been claimed before the sweep found them.
        const caughtUp = () =>
          logged.mock.calls
            .map(([line]) => /^Caught up with (\d+) sessions/.exec(String(line))?.[1] ?? 0)
            .reduce((sum: number, count) => sum + Number(count), 0);
        await eventually(() => caughtUp() >= (notifications === 'off' ? reported : 1));

        for (const { id } of alive) await eventually(() => isInOrder(id));
        const found = await after.nest.get(RedisSessionRepository, { strict: false }).findByPrincipalName('alive3');
        expect(found.map(({ id }) => id).sort()).toEqual(
          alive
            .filter((_, i) => i % 10 === 3)
            .map(({ id }) => id)
            .sort(),
        );

        // The leases end with the step: an event that is being handled would be claimed and handled again.
        await eventually(async () => {
          const groups = await after.nest.get(SessionEventGroups, { strict: false }).list();
          for (const { pending, lag } of groups) expect([pending, lag]).toEqual([0, 0]);
        });
        await server.stepClock(KINDS.alive.interval - OUTAGE + 2 * MINUTE);
        for (const { id } of alive) expect(await after.events.next('expired', id)).toMatchObject({ dataLost: false });
        expect(after.events.count('expired')).toBe(reported + alive.length);
        expect(await client.exists(partitions.all.flatMap(({ bucketList, ends }) => [bucketList, ends]))).toBe(0);
      } finally {
        await after.stop();
      }
    });

    /**
     * Expects a live session in its index, and in its recorded bucket or the sorted set, neither past nor late there.
     */
    async function isInOrder(id: string): Promise<void> {
      const keys = partitions.of(id);
      const [bucket, name] = await client.hmget(keys.session(id), 'bucket', `sessionAttr:${PRINCIPAL_ATTRIBUTE}`);
      const due = bucket ?? (await client.zscore(keys.ends, id));
      if (expirations === 'buckets') {
        expect(await client.sismember(keys.bucket(bucket!), `expires:${id}`)).toBe(1);
        expect(await client.zscore(keys.bucketList, bucket!)).toBe(bucket);
      } else expect(bucket).toBeNull();
      expect(Number(due)).toBeGreaterThan(Number((await client.time())[0]) * 1000);
      const slack = expirations === 'buckets' ? MINUTE : 0;
      expect(Number(due)).toBeLessThanOrEqual((await client.pexpiretime(keys.shadow(id))) + slack);
      const index = keys.index(PRINCIPAL_NAME_INDEX_NAME, hashOfValue(JSON.parse(name!) as string));
      expect(await client.zscore(index, id)).not.toBeNull();
    }
  },
);
