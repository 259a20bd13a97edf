import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { Injectable } from '@nestjs/common';
import {
  IndexedSessionRepository,
  OnSessionEvent,
  SessionDestroyedEvent,
  Sessions,
  SessionSignedInEvent,
} from '@nest-session/core';
import { SessionEventGroups } from '@nest-session/redis';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually, RedisServer } from '@nest-session/testing';
import { Redis } from 'ioredis';
import { resolveRedisSessionOptions } from '../../../session-redis/src/configuration/redis-session.options.js';
import { SessionPartitions } from '../../../session-redis/src/keys/session-partitions.js';
import { hashOfPrincipal } from '../../../session-redis/src/keys/session-keys.js';
import { verify } from '../../src/verification/verify.js';
import { EventInstance } from '../../../session-redis/test/support/event-instance.fixture.js';
import { everything } from '../../../session-redis/test/support/everything.js';

LeakGuard.install();

const COMMAND = fileURLToPath(new URL('../../bin/nest-session.mjs', import.meta.url));
const NAME = 'erika.mustermann@example.org';
const VALUE = 'planted-value-of-erika';

@Injectable()
class Handlers {
  readonly lost: string[] = [];
  fails = true;

  @OnSessionEvent(SessionSignedInEvent)
  @OnSessionEvent(SessionDestroyedEvent)
  handle({ dataLost, sessionId, session }: SessionDestroyedEvent | SessionSignedInEvent) {
    if (dataLost) this.lost.push(sessionId);
    if (this.fails) throw new Error(`The user ${session.principalName} cannot be mailed`);
  }
}

async function erase(url: string, ...args: string[]) {
  const child = spawn(process.execPath, [COMMAND, 'erase', '--url', url, '--user', NAME, ...args], {
    env: { ...process.env, NODE_OPTIONS: '' },
  });
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]);
  return { code: child.exitCode, stdout, stderr };
}

describe.each([1, 4])('nest-session erase, partitions: %i', (partitions) => {
  let server: RedisServer;
  let client: Redis;
  let instance: EventInstance;
  beforeEach(async () => {
    server = await RedisServer.start();
    client = new Redis(server.url);
    instance = await EventInstance.start({
      session: { devices: true, maxSessions: { perPrincipal: 10 } },
      redis: {
        url: server.url,
        partitions,
        notifications: 'off',
        cleanup: { cron: '0 0 0 29 2 *' },
        events: { attempts: 1 },
      },
      providers: [Handlers],
    });
  });
  afterEach(async () => {
    await instance.stop();
    client.disconnect();
    await server.stop();
  });

  async function signIn(name: string, value: string): Promise<string> {
    const repository = instance.module.get<IndexedSessionRepository>(IndexedSessionRepository, { strict: false });
    const session = repository.createSession();
    session.setAttribute('address', value);
    await session.save();
    session.signIn(name);
    await session.save();
    return session.id;
  }

  it('leaves no byte of a name or a value in Redis, and nothing that verify() finds', async () => {
    const sessions = instance.module.get(Sessions, { strict: false });
    const groups = instance.module.get(SessionEventGroups, { strict: false });
    const handlers = instance.module.get(Handlers);
    const others = [await signIn('otto', 'value of otto'), await signIn('otto', 'value of otto')];
    const ids: string[] = [];
    for (let i = 0; i < 4; i++) ids.push(await signIn(NAME, VALUE));
    await sessions.end(ids[0]!);
    // Two of otto's sign-ins, and five events of the user.
    await eventually(async () => expect(await groups.deadLetters()).toHaveLength(7));
    // A replayed one has its data in the event.
    await groups.replayAll();
    await eventually(async () => expect(await groups.deadLetters()).toHaveLength(7));
    handlers.fails = false;
    await groups.create('absent', { from: 'oldest' });
    for (const planted of [NAME, VALUE]) expect(await everything(client)).toContain(planted);

    const counted = await erase(server.url, '--json');
    expect([counted.code, counted.stderr]).toEqual([2, '']);
    const found = JSON.parse(counted.stdout) as Record<string, number>;
    expect(found).toEqual({
      live: 3,
      ended: 1,
      events: expect.any(Number),
      deadLetters: 5,
      ledgers: partitions === 1 ? 0 : 1,
      erased: false,
    });
    expect(found['events']).toBeGreaterThanOrEqual(4);
    expect(await everything(client)).toContain(VALUE);

    const { code, stdout } = await erase(server.url, '--yes', '--json');
    expect([code, JSON.parse(stdout)]).toEqual([0, { ...found, erased: true }]);
    const left = await everything(client);
    expect([NAME, VALUE].filter((planted) => left.includes(planted))).toEqual([]);
    expect(left).toContain('value of otto');
    await eventually(() => expect(handlers.lost.toSorted()).toEqual(ids.slice(1).toSorted()));
    const store = { client, partitions: new SessionPartitions('nest:session', partitions) };
    expect(await sessions.count(NAME)).toBe(0);
    expect(await sessions.count('otto')).toBe(2);
    for (const id of others) expect(await client.hget(store.partitions.of(id).session(id), 'ended')).toBeNull();
    expect((await verify({ ...store, options: resolveRedisSessionOptions({}) })).findings).toEqual([]);
    expect((await erase(server.url)).code).toBe(0);
    if (partitions === 1) return;
    // As a former erasure that was interrupted leaves it: nothing else of the user is there.
    const ledger = store.partitions.all[0]!.ledger(hashOfPrincipal(NAME));
    await client.hset(ledger, ids[0]!, Date.now());
    const alone = { live: 0, ended: 0, events: 0, deadLetters: 0, ledgers: 1 };
    const rehearsal = await erase(server.url, '--json');
    expect([rehearsal.code, JSON.parse(rehearsal.stdout)]).toEqual([2, { ...alone, erased: false }]);
    expect(await client.exists(ledger)).toBe(1);
    const again = await erase(server.url, '--yes', '--json');
    expect([again.code, JSON.parse(again.stdout)]).toEqual([0, { ...alone, erased: true }]);
    expect(await client.exists(ledger)).toBe(0);
  });
});
