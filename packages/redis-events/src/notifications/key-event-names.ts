/** The key events of Redis 7.0, by the flag of `notify-keyspace-events` that enables them. */
export const KEY_EVENTS = {
  x: ['expired'],
  e: ['evicted'],
  g: ['del', 'expire', 'persist', 'rename_from', 'rename_to', 'move_from', 'move_to', 'copy_to', 'restore'],
  $: ['set', 'setrange', 'setbit', 'append', 'incrby', 'incrbyfloat', 'pfadd'],
  h: ['hset', 'hdel', 'hincrby', 'hincrbyfloat'],
  l: ['lpush', 'rpush', 'lpop', 'rpop', 'linsert', 'lset', 'lrem', 'ltrim', 'sortstore'],
  s: ['sadd', 'srem', 'spop', 'sinterstore', 'sunionstore', 'sdiffstore'],
  z: [
    'zadd',
    'zincr',
    'zrem',
    'zpopmin',
    'zpopmax',
    'zremrangebyrank',
    'zremrangebyscore',
    'zremrangebylex',
    'zrangestore',
    'zinterstore',
    'zunionstore',
    'zdiffstore',
    'geosearchstore',
    'georadiusstore',
  ],
  t: [
    'xadd',
    'xdel',
    'xtrim',
    'xsetid',
    'xgroup-create',
    'xgroup-setid',
    'xgroup-destroy',
    'xgroup-createconsumer',
    'xgroup-delconsumer',
  ],
  m: ['keymiss'],
  n: ['new'],
} as const;

/** Redis' name of a key event, such as `'expired'` or `'set'`. Other names are accepted as well. */
export type KeyEventName = (typeof KEY_EVENTS)[keyof typeof KEY_EVENTS][number] | (string & {});

/** What Redis calls the events of commands that have none of their own name. */
const EVENTS_OF_COMMANDS: ReadonlyMap<string, KeyEventName> = new Map(
  Object.entries({
    del: ['delete', 'unlink'],
    evicted: ['evict'],
    expire: ['expireat', 'pexpire', 'pexpireat', 'getex'],
    hset: ['hmset', 'hsetnx'],
    incrby: ['incr', 'decr', 'decrby'],
    copy_to: ['copy'],
    move_to: ['move'],
    rename_to: ['rename'],
    set: ['getset', 'mset', 'msetnx', 'psetex', 'setex', 'setnx'],
  }).flatMap(([event, commands]) => commands.map((command) => [command, event] as const)),
);

/** The event that somebody may mean: by another spelling, a command or a channel. */
export function eventLike(name: string): KeyEventName | undefined {
  const [, event = ''] = /^(?:__key\w+@[^:]*__:)?(.*)$/s.exec(name.trim().toLowerCase()) ?? [];
  const known = Object.values(KEY_EVENTS).flat<readonly (readonly string[])[]>();
  return known.includes(event) ? event : EVENTS_OF_COMMANDS.get(event);
}

/** The flags that `A` stands for: all except `m` (misses) and `n` (new keys). */
export const ALL_CLASSES = 'g$lshzxetd';

/** The flags that enable these events. For an event that is not listed, all flags. */
export function classesOf(events: readonly KeyEventName[]): string {
  const flags = events.map((event) => {
    const known = Object.entries(KEY_EVENTS).find(([, names]) => (names as readonly string[]).includes(event));
    return known?.[0] ?? ALL_CLASSES;
  });
  return [...new Set(flags.join('').split(''))].join('');
}
