import { randomBytes } from 'node:crypto';
import type { Cluster, Redis } from 'ioredis';
import type { ExpirationStoreName } from '../../src/configuration/expirations.options.js';
import { isCluster } from '../../../redis-events/src/connection/node-with.js';
import type { SessionKeys } from '../../src/keys/session-keys.js';
import { SessionPartitions } from '../../src/keys/session-partitions.js';
import { EventStreamScripts } from '../../../redis-events/src/scripts/event-stream.scripts.js';
import { SessionScripts } from '../../src/scripts/session/session.scripts.js';
import { hashOfValue } from './hash-of-value.js';
import { DEAD_LETTERS, KEEPING_RULES, updateOf } from './store.fixture.js';
import { entryOf, SESSION_ENTRIES } from './event-scripts.js';

const HOUR = 3_600_000;
const RETRIES = { firstBackOff: HOUR, longestBackOff: HOUR, retention: HOUR, deadLetters: DEAD_LETTERS };
const GROUPS = ['mails', 'audit'] as const;
/** Of the principal who has a ledger. */
export const HASH = 'h'.repeat(43);

const newId = () => randomBytes(32).toString('base64url');

/** Puts some of everything that there can be into the partitions of a namespace. `times`: how many of most of it. */
export async function fill(
  client: Redis,
  partitions: SessionPartitions,
  store: ExpirationStoreName,
  times = 1,
): Promise<void> {
  const scripts = new SessionScripts(client, partitions, { ...KEEPING_RULES, store });
  const streams = new EventStreamScripts(client, SESSION_ENTRIES);
  const create = async (interval = 1800, principal = 'ann') => {
    const id = newId();
    const times = { maxInactiveInterval: interval, absoluteTimeout: -1 };
    const indexes = new Map([['principal', hashOfValue(principal)]]);
    const { outcome } = await scripts.create({
      kind: 'create',
      id,
      presentedIds: [],
      ...times,
      attributes: new Map([['cart', JSON.stringify(id)]]),
      indexes,
    });
    expect(outcome).toBe('created');
    return id;
  };
  await client.hset(partitions.meta, 'version', '3', 'partitions', partitions.count);
  for (const keys of partitions.all) for (const group of GROUPS) await streams.createGroup(keys, group, 'oldest');
  for (let i = 0; i < times; i++) await scripts.delete(await create());
  for (const keys of partitions.all) {
    const [mail, audit] = GROUPS.map((group) => ({ group, consumer: 'me' }));
    await streams.registerHandlers(
      keys,
      mail!,
      { names: ['A.handle'], types: ['created', 'deleted', 'expired'] },
      HOUR,
    );
    await streams.registerHandlers(keys, audit!, { names: ['B.handle'], types: ['expired'] }, HOUR);
    await streams.wantBroadcast(keys, ['expired'], HOUR);
    await client.hincrby(keys.dropped, 'mails', 2);
    await client.hincrby(keys.lostDeadLetters, 'audit', 3);
    // The first group has begun with everything until now: it has handled one, one failed, and one is dead.
    // In the last partition it has read nothing, although there are earlier events than in others.
    if (partitions.count > 1 && keys === partitions.all.at(-1)) continue;
    const read = (await client.xreadgroup('GROUP', 'mails', 'me', 'STREAMS', keys.events, '>')) as
      [string, [string, string[]][]][] | null;
    const positions = (read ?? []).flatMap(([, entries]) => entries.map(([position]) => position));
    const [handled, failed, dead] = positions;
    const failure = { done: ['A.handle'], reason: 'no', handler: 'A.other' };
    if (handled) await streams.acknowledge(keys, mail!, [handled]);
    if (failed) await streams.fail(entryOf(keys, failed, ''), mail!, { attempts: 5, ...failure }, RETRIES);
    if (dead) await streams.fail(entryOf(keys, dead, ''), mail!, { attempts: 1, ...failure }, RETRIES);
  }
  for (let i = 0; i < times; i++) {
    await scripts.delete(await create());
    const rotated = await create(3600, 'bob');
    let next = newId();
    while (partitions.of(next) !== partitions.of(rotated)) next = newId();
    expect(await scripts.save(updateOf(rotated, { newId: next }))).toMatchObject({ outcome: 'saved' });
    // A test may take longer than a minute.
    await client.expire(partitions.of(rotated).forwardingMark(rotated), 1000);
    // One without an end, and one that has run out.
    await create(-1);
    const over = await create();
    await client.del(partitions.of(over).shadow(over));
    await client.set(partitions.of(over).takeoverMark(over), '', 'EX', 1000);
  }
  // With one partition there are none.
  if (partitions.count > 1) await client.hset(partitions.of(HASH).ledger(HASH), 'a', '1');
  await client.set(partitions.all[0]!.revocationMark('principal', HASH), '', 'EX', 1000);
  await client.hset(partitions.all.at(-1)!.epoch, 'at', 5, 'ended', 5);
}

function nodesOf(client: Redis | Cluster): Redis[] {
  return isCluster(client) ? client.nodes('master') : [client];
}

/**
 * Everything that is there, wherever it is, but for the keys of others. Fails when something is not in its partition.
 */
export async function contentOf(
  client: Redis,
  partitions: SessionPartitions,
  others: readonly string[] = [],
): Promise<unknown> {
  const names = (await Promise.all(nodesOf(client).map((node) => node.keys(`${partitions.namespace}:*`)))).flat();
  const found: string[] = [];
  for (const key of names.filter((name) => ![partitions.meta, partitions.instances, ...others].includes(name))) {
    const keys = partitions.all.find(({ prefix }) => prefix.includes('{') && key.startsWith(prefix));
    const partition = partitions.count === 1 ? partitions.all[0]! : keys;
    // Nothing is left in partitions of another number.
    expect([key, partition !== undefined && !key.slice(partition.prefix.length).startsWith('{')]).toEqual([key, true]);
    found.push(...(await entriesOf(client, partitions, partition!, key.slice(partition!.prefix.length))));
  }
  const groups = await Promise.all(GROUPS.map((group) => eventsOf(client, partitions, group)));
  return {
    found: [...new Set(found)].sort(),
    groups,
    letters: await lettersOf(client, partitions),
    ...(await sums(client, partitions)),
  };
}

async function entriesOf(
  client: Redis,
  partitions: SessionPartitions,
  keys: SessionKeys,
  name: string,
): Promise<string[]> {
  const key = `${keys.prefix}${name}`;
  const [kind] = name.split(':') as [string];
  const isIn = (id: string, what: string) => {
    expect([what, partitions.of(id).prefix]).toEqual([what, keys.prefix]);
    return what;
  };
  if (kind === 'ledger') {
    isIn(name.slice('ledger:'.length), name);
    expect(partitions.count).toBeGreaterThan(1);
    return [];
  }
  if (kind === 'sessions') {
    const content =
      (await client.type(key)) === 'hash'
        ? Object.entries(await client.hgetall(key))
            .map(String)
            .sort()
        : await client.get(key);
    return [
      isIn(name.slice(name.lastIndexOf(':') + 1), JSON.stringify([name, content, await client.pexpiretime(key)])),
    ];
  }
  if (kind === 'index' || kind === 'ends') {
    const entries = await client.zrange(key, '0', '-1', 'WITHSCORES');
    return entries.flatMap((id, i) => (i % 2 === 0 ? [isIn(id, JSON.stringify([name, id, entries[i + 1]]))] : []));
  }
  if (name === 'expirations') {
    // Each minute of the list has a bucket.
    const minutes = await client.zrange(key, '0', '-1');
    for (const minute of minutes) expect(await client.exists(keys.bucket(minute))).toBe(1);
    return minutes.map((minute) => `${name} ${minute}`);
  }
  if (kind === 'expirations') {
    return (await client.smembers(key)).map((member) => isIn(keys.idOfMember(member), `${name} ${member}`));
  }
  if (kind === 'revoked') return [JSON.stringify([name, await client.pexpiretime(key)])];
  if (name === 'events:handlers' || name === 'events:wanted')
    return [
      JSON.stringify([
        name,
        Object.entries(await client.hgetall(key))
          .map(String)
          .sort(),
      ]),
    ];
  // What is compared otherwise, and nothing else.
  expect(name).toMatch(/^(epoch|events(:(dead(:\w+)?|dropped|failing:.*|retries:.*|wanted:broadcast:expired))?)$/);
  return [];
}

/** The events as a group sees them. */
async function eventsOf(client: Redis, { all, of }: SessionPartitions, group: string): Promise<unknown[]> {
  void of;
  const events = await Promise.all(
    all.map(async (keys) => {
      const infos = (await client.xinfo('GROUPS', keys.events).catch(() => [])) as string[][];
      const info = infos.find(([, name]) => name === group);
      if (!info) return [];
      const read = info[info.indexOf('last-delivered-id') + 1]!;
      const pending = (await client.xpending(keys.events, group, '-', '+', 1000)) as [string, string, number, number][];
      const entries = await client.xrange(keys.events, '-', '+');
      const isRead = (position: string) => before(position, read);
      return Promise.all(
        entries.map(async ([position, fields]) => {
          const [, , , deliveries] = pending.find(([each]) => each === position) ?? [];
          if (deliveries === undefined) return JSON.stringify([fields, isRead(position) ? 'handled' : 'unread']);
          // What an instance has that is not alive is to be handled again at once.
          const due = (await client.zscore(keys.retries(group), position)) ?? '0';
          if (deliveries === 0) return JSON.stringify([fields, due === '0' ? 'unread' : 'lost']);
          return JSON.stringify([fields, deliveries, due, await client.hget(keys.failing(group), position)]);
        }),
      );
    }),
  );
  return events.flat().sort();
}

async function lettersOf(client: Redis, { all }: SessionPartitions): Promise<unknown> {
  const letters = await Promise.all(
    all.map(async ({ deadLetters }) => {
      const entries = await client.xrange(deadLetters, '-', '+');
      const members = await client.zrange(`${deadLetters}:index`, '0', '-1');
      const known = members.map((member) => member.replace(/^[\s\S]*\n(\d+)-0*(\d+)\n\d+$/, '$1-$2')).sort();
      expect(known).toEqual(entries.map(([position]) => position).sort());
      return entries.map(([, fields]) => JSON.stringify(fields));
    }),
  );
  return letters.flat().sort();
}

async function sums(client: Redis, { all }: SessionPartitions): Promise<Record<string, unknown>> {
  const sum = async (keyIn: (keys: SessionKeys) => string) => {
    const total: Record<string, number> = {};
    for (const keys of all) {
      for (const [name, count] of Object.entries(await client.hgetall(keyIn(keys))))
        total[name] = (total[name] ?? 0) + Number(count);
    }
    return total;
  };
  return {
    dropped: await sum(({ dropped }) => dropped),
    lost: await sum(({ lostDeadLetters }) => lostDeadLetters),
    bytes: await sum(({ deadLetters }) => `${deadLetters}:sizes`),
    epoch: Math.max(...(await Promise.all(all.map(async ({ epoch }) => Number(await client.hget(epoch, 'at')))))),
    wishes: (await Promise.all(all.map((keys) => client.exists(keys.broadcastWanted('expired'))))).every(
      (n) => n === 1,
    ),
  };
}

function before(one: string, other: string): boolean {
  const [[ms, sequence], [otherMs, otherSequence]] = [one, other].map((each) => each.split('-').map(Number)) as [
    number[],
    number[],
  ];
  return ms! < otherMs! || (ms === otherMs && sequence! <= otherSequence!);
}
