import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually, RedisServer } from '@nest-session/testing';
import { Redis } from 'ioredis';
import {
  checkStore,
  type Connection,
  FORMAT,
  LIMITED_SINCE,
  settledPartitions,
  type StoreFormat,
} from '../../src/namespace/store-format.js';
import { redisTime } from '../../src/connection/node-with.js';
import { SessionPartitions } from '../../../session-redis/src/keys/session-partitions.js';

LeakGuard.install();

const partitions = new SessionPartitions('nest:session');
/** A change that old instances can ignore, and one after which they can read and not write. */
const ADDITIVE: StoreFormat = { version: 4, oldest: 3, minReader: 3, minWriter: 3 };
const READABLE: StoreFormat = { version: 5, oldest: 3, minReader: 3, minWriter: 5 };
const BREAKING: StoreFormat = { version: 6, oldest: 6, minReader: 6, minWriter: 6 };

let server: RedisServer;
let client: Redis;
let connection: Connection;
beforeAll(async () => {
  server = await RedisServer.start();
  client = new Redis(server.url);
  connection = { run: (command) => command(client) };
});
beforeEach(() => client.flushall());
afterAll(async () => {
  client.disconnect();
  await server.stop();
});

const starts = (format?: StoreFormat) => checkStore(connection, partitions, format);
const recorded = () => client.hmget(partitions.meta, 'version', 'minReader', 'minWriter');

it('the first instance records its format, and what others have to know', async () => {
  await starts();
  expect(await recorded()).toEqual(['3', '3', '3']);
  expect(FORMAT).toEqual({ version: 3, oldest: 3, minReader: 3, minWriter: 3 });
});

it('an additive change stops no old instance, and a rollback is as good as an upgrade', async () => {
  await starts();
  await starts(ADDITIVE);
  expect(await recorded()).toEqual(['4', '3', '3']);
  await starts();
  expect(await recorded()).toEqual(['4', '3', '3']);
  await starts(ADDITIVE);
});

it('after a change that old versions can only read, their commands read, and their instances do not start', async () => {
  await starts(READABLE);
  expect(await recorded()).toEqual(['5', '3', '5']);
  await expect(starts()).rejects.toMatchObject({
    problems: [
      expect.stringContaining(
        'have format 5, and only versions of the library that know format 5 may write it: this one knows format 3. Use a newer version',
      ),
    ],
  });
  expect(await settledPartitions(connection, partitions, { writes: false })).toBe(1);
  await expect(settledPartitions(connection, partitions, { writes: true })).rejects.toThrow('may write it');
});

it('a version that does not understand the data changes nothing', async () => {
  await starts();
  await expect(starts(BREAKING)).rejects.toThrow('understands format 6 and later');
  expect(await recorded()).toEqual(['3', '3', '3']);
  await client.flushall();
  await starts(BREAKING);
  await expect(starts()).rejects.toThrow('only versions of the library that know format 6 may write it');
  await expect(settledPartitions(connection, partitions, { writes: false })).rejects.toThrow('may read it');
  expect(await recorded()).toEqual(['6', '6', '6']);
});

it('where the lowest formats are not recorded, that of the data counts', async () => {
  await client.hset(partitions.meta, { version: '4', partitions: '1', holds: 'sessions' });
  await expect(starts()).rejects.toThrow('have format 4');
  await starts(ADDITIVE);
  await client.hset(partitions.meta, 'version', 'garbage');
  await expect(starts(ADDITIVE)).rejects.toThrow('have format garbage');
});

it('nothing is written at a start that changes nothing, so that a full Redis stops nobody', async () => {
  await starts();
  await client.config('SET', 'maxmemory', '1');
  try {
    await starts();
    await expect(starts(ADDITIVE)).rejects.toThrow('OOM');
  } finally {
    await client.config('SET', 'maxmemory', '0');
  }
});

describe('the form of session ids', () => {
  const startWith = (ids: 'hashed' | 'plain') =>
    checkStore(connection, new SessionPartitions('nest:session', 1, { ids }));
  const form = () => client.hget(partitions.meta, 'ids');

  it('is recorded by the first instance, and instances of the same form start again', async () => {
    for (const ids of ['hashed', 'plain'] as const) {
      await client.flushall();
      await Promise.all([startWith(ids), startWith(ids)]);
      await startWith(ids);
      // A command knows of no form.
      await starts();
      expect(await form()).toBe(ids);
    }
  });

  it('never becomes that of tokens, because ids that were none may stand in logs', async () => {
    await startWith('hashed');
    await expect(startWith('plain')).rejects.toMatchObject({
      problems: [
        'The sessions in namespace "nest:session" have ids that are no secrets, because option `sessionIds` is or was ' +
          "'hashed': with 'plain', whoever has read one of them in a log could open its session. Set it to 'hashed', " +
          'or use another namespace.',
      ],
    });
    expect(await form()).toBe('hashed');
    await startWith('hashed');
  });

  it('may become that of hashes, and is not taken back then', async () => {
    await startWith('plain');
    for (let again = 0; again < 2; again++) await startWith('hashed');
    // For commands, an id may still be a token.
    expect(await form()).toBe('both');
    await expect(startWith('plain')).rejects.toThrow('have ids that are no secrets');
    await startWith('hashed');
  });
});

describe('since when there is a limit of sessions', () => {
  const startWith = (owner: { readonly limits?: boolean }, count = 4) =>
    checkStore(connection, new SessionPartitions('nest:session', count, owner));
  const since = () => client.hget(partitions.meta, LIMITED_SINCE);

  it('is recorded by the first instance that has one, and by the first one after any that has none', async () => {
    await startWith({ limits: false });
    expect(await since()).toBeNull();
    await startWith({ limits: true });
    const first = await since();
    expect(Math.abs(Number(first) - (await redisTime(client)))).toBeLessThan(60_000);
    await eventually(async () => expect(await redisTime(client)).toBeGreaterThan(Number(first)));
    // A command knows of no limit.
    for (const owner of [{ limits: true }, {}]) await startWith(owner);
    expect(await since()).toBe(first);
    await startWith({ limits: false });
    expect(await since()).toBeNull();
    await startWith({ limits: true });
    expect(Number(await since())).toBeGreaterThan(Number(first));
  });

  it('is not recorded with one partition, whose sign-ins see all sessions', async () => {
    await startWith({ limits: true }, 1);
    expect(await since()).toBeNull();
  });
});
