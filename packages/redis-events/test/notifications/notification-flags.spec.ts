import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually, RedisServer } from '@nest-session/testing';
import { Redis } from 'ioredis';
import { classesOf, KEY_EVENTS } from '../../src/notifications/keyspace-subscription.options.js';
import { requireFlags } from '../../src/notifications/keyspace-notification.listener.js';

LeakGuard.install();

let server: RedisServer;
let client: Redis;
let subscriber: Redis;
const heard = new Set<string>();

beforeAll(async () => {
  server = await RedisServer.start();
  client = new Redis(server.url);
  subscriber = new Redis(server.url, { autoResubscribe: false });
  await subscriber.psubscribe('__keyevent@*__:*');
  subscriber.on('pmessage', (_pattern, channel: string) => heard.add(channel.replace(/^.*?:/, '')));
});
afterAll(async () => {
  client.disconnect();
  subscriber.disconnect();
  await server.stop();
});
beforeEach(async () => {
  await client.config('SET', 'maxmemory', '0', 'maxmemory-policy', 'noeviction', 'notify-keyspace-events', '');
  await client.flushall();
  // After all earlier notifications.
  await subscriber.ping();
  heard.clear();
});

const flags = async () => new Set(((await client.config('GET', 'notify-keyspace-events')) as string[])[1]);

it.each([
  ['', 'Ex', 'xE', true],
  ['E', 'Ex', 'xE', true],
  ['x', 'Kx', 'xK', true],
  ['Eg', 'Kx', 'gxKE', true],
  ['Ex', 'Ex', 'xE', false],
  ['AKE', 'Kgx', 'AKE', false],
  ['AK', 'Ex', 'AKE', true],
  ['E', 'En', 'nE', true],
  ['gx', `K${classesOf(['*'])}`, 'AK', true],
])('requireFlags adds to %p the missing flags of %p', async (before, needed, after, wereMissing) => {
  await client.config('SET', 'notify-keyspace-events', before);
  expect(await requireFlags(client, needed)).toBe(wereMissing);
  expect(await flags()).toEqual(new Set(after));
});

it('requireFlags keeps the flags of another connection of the process that needs others at the same time', async () => {
  const other = client.duplicate();
  for (let round = 0; round < 20; round++) {
    await client.config('SET', 'notify-keyspace-events', '');
    await Promise.all([requireFlags(client, 'Kx'), requireFlags(other, 'Eg')]);
    expect(await flags()).toEqual(new Set('KxEg'));
  }
  other.disconnect();
});

it('requireFlags reports no change where Redis does not show a flag that is set', async () => {
  await client.config('SET', 'notify-keyspace-events', 'AEn');
  expect(await requireFlags(client, 'En')).toBe(false);
});

/** The last of these commands makes Redis publish the event. */
const CAUSES: Record<string, string[]> = {
  expired: ['SET k v PX 1'],
  evicted: ['CONFIG SET maxmemory-policy allkeys-random', 'SET k v', 'CONFIG SET maxmemory 1'],
  del: ['SET k v', 'DEL k'],
  expire: ['SET k v', 'EXPIRE k 100'],
  persist: ['SET k v EX 100', 'PERSIST k'],
  rename_from: ['SET k v', 'RENAME k l'],
  rename_to: ['SET k v', 'RENAME k l'],
  move_from: ['SET k v', 'MOVE k 1'],
  move_to: ['SET k v', 'MOVE k 1'],
  copy_to: ['SET k v', 'COPY k l'],
  restore: ['SET k v', 'RESTORE l 0 <dump>'],
  set: ['SET k v'],
  setrange: ['SETRANGE k 1 v'],
  setbit: ['SETBIT k 1 1'],
  append: ['APPEND k v'],
  incrby: ['INCR k'],
  incrbyfloat: ['INCRBYFLOAT k 0.5'],
  pfadd: ['PFADD k v'],
  hset: ['HSET k f v'],
  hdel: ['HSET k f v', 'HDEL k f'],
  hincrby: ['HINCRBY k f 1'],
  hincrbyfloat: ['HINCRBYFLOAT k f 0.5'],
  lpush: ['LPUSH k v'],
  rpush: ['RPUSH k v'],
  lpop: ['LPUSH k v w', 'LPOP k'],
  rpop: ['LPUSH k v w', 'RPOP k'],
  linsert: ['LPUSH k v', 'LINSERT k BEFORE v w'],
  lset: ['LPUSH k v', 'LSET k 0 w'],
  lrem: ['LPUSH k v w', 'LREM k 0 v'],
  ltrim: ['LPUSH k v w', 'LTRIM k 0 0'],
  sortstore: ['LPUSH k 1', 'SORT k STORE l'],
  sadd: ['SADD k v'],
  srem: ['SADD k v w', 'SREM k v'],
  spop: ['SADD k v w', 'SPOP k'],
  sinterstore: ['SADD k v', 'SINTERSTORE l k'],
  sunionstore: ['SADD k v', 'SUNIONSTORE l k'],
  sdiffstore: ['SADD k v', 'SDIFFSTORE l k'],
  zadd: ['ZADD k 1 v'],
  zincr: ['ZINCRBY k 1 v'],
  zrem: ['ZADD k 1 v 2 w', 'ZREM k v'],
  zpopmin: ['ZADD k 1 v 2 w', 'ZPOPMIN k'],
  zpopmax: ['ZADD k 1 v 2 w', 'ZPOPMAX k'],
  zremrangebyrank: ['ZADD k 1 v 2 w', 'ZREMRANGEBYRANK k 0 0'],
  zremrangebyscore: ['ZADD k 1 v 2 w', 'ZREMRANGEBYSCORE k 1 1'],
  zremrangebylex: ['ZADD k 1 v 1 w', 'ZREMRANGEBYLEX k [v [v'],
  zrangestore: ['ZADD k 1 v', 'ZRANGESTORE l k 0 -1'],
  zinterstore: ['ZADD k 1 v', 'ZINTERSTORE l 1 k'],
  zunionstore: ['ZADD k 1 v', 'ZUNIONSTORE l 1 k'],
  zdiffstore: ['ZADD k 1 v', 'ZDIFFSTORE l 1 k'],
  geosearchstore: ['GEOADD k 1 1 v', 'GEOSEARCHSTORE l k FROMLONLAT 1 1 BYRADIUS 1 m'],
  georadiusstore: ['GEOADD k 1 1 v', 'GEORADIUS k 1 1 1 m STORE l'],
  xadd: ['XADD k 1 f v'],
  xdel: ['XADD k 1 f v', 'XDEL k 1'],
  xtrim: ['XADD k 1 f v', 'XTRIM k MAXLEN 0'],
  xsetid: ['XADD k 1 f v', 'XSETID k 2'],
  'xgroup-create': ['XGROUP CREATE k g 0 MKSTREAM'],
  'xgroup-setid': ['XGROUP CREATE k g 0 MKSTREAM', 'XGROUP SETID k g 0'],
  'xgroup-destroy': ['XGROUP CREATE k g 0 MKSTREAM', 'XGROUP DESTROY k g'],
  'xgroup-createconsumer': ['XGROUP CREATE k g 0 MKSTREAM', 'XGROUP CREATECONSUMER k g c'],
  'xgroup-delconsumer': ['XGROUP CREATE k g 0 MKSTREAM', 'XGROUP CREATECONSUMER k g c', 'XGROUP DELCONSUMER k g c'],
  keymiss: ['GET k'],
  new: ['SET k v'],
};

describe('the flags of an event', () => {
  it('are tested for each known event', () => {
    expect(new Set(Object.values(KEY_EVENTS).flat())).toEqual(new Set(Object.keys(CAUSES)));
  });

  it.each(Object.entries(CAUSES))('make Redis publish "%s"', async (event, causes) => {
    await requireFlags(client, `E${classesOf([event])}`);
    for (const cause of causes) {
      const [command = '', ...args] = cause.split(' ');
      const dump = await client.dumpBuffer('k');
      await client.call(command, ...args.map((arg) => (arg === '<dump>' ? dump : arg)));
    }
    // Redis expires a key when it is read, and evicts before the next command.
    await eventually(async () => {
      await client.exists('k');
      await subscriber.ping();
      return heard.has(event);
    });
    expect(await flags()).toEqual(new Set(`E${classesOf([event])}`));
  });

  it('that is unknown are the flags of all events', () => {
    expect(classesOf(['expired', 'something-new'])).toBe('xg$lshzetd');
    expect(classesOf(['*'])).toBe('g$lshzxetd');
    expect(classesOf(['expired', 'del', 'expire'])).toBe('xg');
  });
});
