/** As a rule of an ACL has it. */
export function ruleNameOf(command: string): string {
  const [name = '', sub = ''] = command.split(' ');
  return /^(client|xgroup|xinfo)$/.test(name) ? `${name}|${sub.toLowerCase()}` : name;
}

/**
 * The commands that every process sends, each so that it changes nothing: `<key>` does not exist, and `<meta>` is a
 * hash. The names are those of the block "every process" in the page "Securing Redis".
 */
export const RIGHTS: readonly string[] = [
  'client SETNAME doctor',
  'del <key>',
  'eval return 0',
  'evalsha 0000000000000000000000000000000000000000 0',
  'exists <key>',
  'get <key>',
  'hdel <key> field',
  'hexists <key> field',
  'hget <key> field',
  'hgetall <key>',
  'hincrby <key> field none',
  'hkeys <key>',
  'hlen <key>',
  'hmget <key> field',
  'mget <key>',
  'hset <key> field value without-value',
  'hsetnx <meta> version none',
  'hvals <key>',
  'info server',
  'persist <key>',
  'pexpire <key> 1',
  'pexpireat <key> 1',
  'pexpiretime <key>',
  'pttl <key>',
  'rename <key> <key>-renamed',
  'sadd <meta> member',
  'scan 0 COUNT 1',
  'scard <key>',
  'set <key> value XX',
  'sismember <key> member',
  'smembers <key>',
  'smismember <key> member',
  'srem <key> member',
  'sscan <key> 0',
  'time',
  'type <key>',
  'unlink <key>',
  'xack <key> group 1-1',
  'xadd <key> NOMKSTREAM * field value',
  'xdel <key> 1-1',
  'xgroup DELCONSUMER <key> group consumer',
  'xinfo CONSUMERS <key> group',
  'xinfo GROUPS <key>',
  'xinfo STREAM <key>',
  'xlen <key>',
  'xpending <key> group',
  'xrange <key> - + COUNT 1',
  'xreadgroup GROUP group consumer COUNT 1 STREAMS <key> >',
  'xtrim <key> MAXLEN 1',
  'zadd <key> XX 1 member',
  'zcard <key>',
  'zlexcount <key> - +',
  'zrange <key> 0 0',
  'zrangebyscore <key> 0 0',
  'zrem <key> member',
  'zscore <key> member',
];

export const RIGHTS_OF_HANDLERS: readonly string[] = [
  'xclaim <key> group consumer 0 1-1',
  'xgroup CREATE <key> group 0',
];

/** The commands of the block "partitions", but for the subscription. */
export const RIGHTS_WITH_PARTITIONS: readonly string[] = ['ping', 'spublish <key> doctor'];
