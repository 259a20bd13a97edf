import { readFile } from 'node:fs/promises';
import { Injectable } from '@nestjs/common';
import {
  IndexedSessionRepository,
  OnSessionEvent,
  PRINCIPAL_NAME_INDEX_NAME,
  SessionCreatedEvent,
  SessionEvent,
} from '@nest-session/core';
import { ForeignSessions, generateSessionKey, marksOf, SessionExtension } from '@nest-session/core/internal';
import type { RedisSessionModuleOptions } from '@nest-session/redis';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually, RedisServer } from '@nest-session/testing';
import { Redis } from 'ioredis';
import { KEYS, patternsOfKeys } from '../support/documented.keys.js';
import { EventInstance } from '../support/event-instance.fixture.js';
import { hashOfValue } from '../support/hash-of-value.js';

LeakGuard.install();

const PLACEHOLDERS = {
  '<index name>': 'principal',
  '<hash>': hashOfValue('ann'),
  '<group>': '(retrying|giving-up)',
  '<type>': 'created',
};

/** Only with several partitions. */
const LEDGER = 'nest:session:ledger:<hash>';

/** Live for a millisecond, or until the next run of the job: seen only in the notifications of their writes. */
const BRIEF = [
  'nest:session:sessions:expires:canary:<uuid>',
  'nest:session:events:dead:unreported',
  'nest:session:cleanup',
];

@Injectable()
class FailingHandler {
  @OnSessionEvent(SessionEvent)
  fail(): void {
    throw new Error('This handler always fails');
  }

  @OnSessionEvent(SessionCreatedEvent, { broadcast: true })
  hear(): void {}
}

it('the keys of this test equal the table of docs/evidence/redis-data-model.md', async () => {
  const text = await readFile(new URL('../../../../docs/evidence/redis-data-model.md', import.meta.url), 'utf8');
  const [, section = ''] = text.split(/^## Keys$/m);
  const [table = ''] = section.split(/^#/m);
  const rows = [...table.matchAll(/^\| `([^`]+)` +\| ([A-Z]+) /gm)].map(([, key, type]) => [key, type!.toLowerCase()]);
  expect(Object.fromEntries(rows)).toEqual(KEYS);
});

describe.each([
  { partitions: 1, tag: '' },
  { partitions: 4, tag: '\\{(0-0|1-2|2-0|3-2)\\}:' },
])('with $partitions partition(s)', ({ partitions, tag }) => {
  let server: RedisServer;
  let client: Redis;
  let witness: Redis;
  const instances: EventInstance[] = [];
  /** Every key that was written, from the notifications of Redis. */
  const written = new Set<string>();
  const patterns = patternsOfKeys(tag, PLACEHOLDERS);

  beforeAll(async () => {
    server = await RedisServer.start();
    client = new Redis(server.url);
    await client.config('SET', 'notify-keyspace-events', 'KA');
    witness = new Redis(server.url);
    witness.on('pmessage', (_, channel: string) => written.add(channel.replace('__keyspace@0__:', '')));
    await witness.psubscribe('__keyspace@0__:*');
    await start({ group: 'retrying' });
    await start({ group: 'giving-up', attempts: 1 }, 'sorted-set');
  });

  afterAll(async () => {
    for (const instance of instances) await instance.stop();
    witness?.disconnect();
    client?.disconnect();
    await server?.stop();
  });

  async function start(
    events: RedisSessionModuleOptions['events'],
    expirations: RedisSessionModuleOptions['expirations'] = 'buckets',
  ): Promise<void> {
    // One event and a dead letter or two are kept, and the job runs every second: it removes an event that was not
    // handled.
    const redis = {
      url: server.url,
      partitions,
      expirations,
      cleanup: { cron: '* * * * * *' },
      events: { maxLength: 1, ...events },
    };
    const pace = { firstBackOff: 60_000, longestBackOff: 60_000 };
    const session = { maxSessions: { perPrincipal: 5 } };
    const deadLetterBytes = 1024 * partitions;
    instances.push(await EventInstance.start({ redis, session, pace, deadLetterBytes, providers: [FailingHandler] }));
  }

  it('the store writes each of these keys, and no other', async () => {
    const repository = instances[0]!.module.get(IndexedSessionRepository, { strict: false });
    // Before the epoch, from which on nothing is taken over.
    const old = 'sess:old';
    await client.set(old, '{}', 'EX', 600);
    const foreign = instances[0]!.module.get(ForeignSessions, { strict: false });
    await foreign.move(old, generateSessionKey().id, () => ({
      attributes: new Map(),
      principalName: undefined,
    }));
    instances[0]!.module.get(SessionExtension, { strict: false }).takeover = {
      find: () => [],
      named: () => ({}) as never,
    };
    await marksOf(repository)!.leave(hashOfValue('ann'), 1, 600_000);
    await repository.deleteByIndex(PRINCIPAL_NAME_INDEX_NAME, 'ann');
    await repository.endEverySession();
    const epochs = (await client.keys('*')).filter((key) => documented(key) === 'nest:session:epoch');
    const latest = Math.max(...(await Promise.all(epochs.map(async (key) => Number(await client.hget(key, 'at'))))));
    await eventually(async () => expect(Number((await client.time())[0]) * 1000).toBeGreaterThan(latest));
    const session = repository.createSession();
    session.principalName = 'ann';
    await repository.save(session);
    const inSet = instances[1]!.module.get(IndexedSessionRepository, { strict: false }).createSession();
    inSet.setAttribute('cart', 'apple');
    await instances[1]!.module.get(IndexedSessionRepository, { strict: false }).save(inSet);
    // The creation makes room.
    session.changeSessionId();
    await repository.save(session);
    // Two in the same partition at least: the first end is trimmed.
    for (let i = 0; i <= partitions; i++) {
      const ended = repository.createSession();
      ended.setAttribute('cart', 'apple');
      await repository.save(ended);
      await repository.deleteById(ended.id);
    }
    const { [LEDGER]: ledger, ...others } = KEYS;
    const all: Record<string, string> = partitions === 1 ? others : { ...others, [LEDGER]: ledger };
    const lasting = Object.fromEntries(Object.entries(all).filter(([key]) => !BRIEF.includes(key)));
    await eventually(async () => expect(await typesInRedis()).toEqual(lasting));
    await eventually(() =>
      expect(new Set([...written].filter((key) => key !== old).map(documented))).toEqual(new Set(Object.keys(all))),
    );
  });

  /** The type of each key in Redis, under its name in the document. */
  async function typesInRedis(): Promise<Record<string, string>> {
    const keys = (await client.keys('*')).filter((key) => !BRIEF.includes(documented(key)));
    return Object.fromEntries(await Promise.all(keys.map(async (key) => [documented(key), await client.type(key)])));
  }

  /** The name of this key in the document; the key itself where the document has none. */
  function documented(key: string): string {
    return patterns.find(({ pattern }) => pattern.test(key))?.key ?? key;
  }
});
