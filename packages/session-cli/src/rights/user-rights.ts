import { ruleNameOf, RIGHTS, RIGHTS_OF_HANDLERS, RIGHTS_WITH_PARTITIONS } from './tried-commands.js';

/** The blocks of the page "Securing Redis", in which `nest:session` stands for the namespace. */
export const RIGHTS_BLOCKS = {
  'every process': ['~nest:session:*', ...RIGHTS.map(ruleOf)],
  handlers: RIGHTS_OF_HANDLERS.map(ruleOf),
  'broadcast handlers': ['+xread'],
  groups: ['+xgroup|destroy', '+xrevrange'],
  partitions: [...RIGHTS_WITH_PARTITIONS.map(ruleOf), '+ssubscribe', '&nest:session:*'],
  cluster: ['+asking', '+cluster|slots'],
  notifications: ['+ping', '+psubscribe', '&__keyspace@0__:nest:session:sessions:expires:*'],
  flags: ['+config|get', '+config|set'],
  'all keys': ['+subscribe', '+unsubscribe', '&__keyevent@0__:expired'],
  deadlines: ['~nest:deadlines:*', '&nest:deadlines:*', '+zcount'],
  takeover: ['(~sess:* +get +pttl +unlink)'],
  database: ['+select'],
  repartitioning: ['+dump', '+restore', '+zscan'],
  verification: ['+hscan', '+zscan'],
  replicas: ['+wait'],
  'reading commands': rules(`~nest:session:* +client|setname +config|get +eval +evalsha +exists +get +hget +hgetall
    +hmget +info +ping +pttl +scan +scard +time +xinfo|consumers +xinfo|groups +xinfo|stream +xlen +xrange
    +zcard +zlexcount +zrange`),
  'spring renewal': rules(`~spring:session:* +client|setname +hgetall +info +smembers +time +eval +evalsha +get +hmget
    +hset +pexpire +pexpireat +pttl +sadd +set +sismember +srem +zadd +zcard +zscore`),
  'spring shared': rules(`~spring:session:* &__keyevent@0__:del &__keyevent@0__:expired &__keyevent@0__:rename_from
    &__keyevent@0__:rename_to &spring:session:event:0:created:* +client|setname +config|get +del +eval +evalsha +exists
    +get +hdel +hexists +hget +hgetall +hincrby +hkeys +hlen +hmget +hset +hsetnx +hstrlen +hvals +info +pexpire
    +pexpiretime +ping +psubscribe +pttl +publish +rename +sadd +scan +set +sismember +smembers +srem +sscan +subscribe
    +time +type +unlink +xack +xadd +xdel +xgroup|delconsumer +xinfo|consumers +xinfo|groups +xinfo|stream +xlen
    +xpending +xrange +xreadgroup +xtrim +zadd +zcard +zlexcount +zrange +zrangebyscore +zrem +zscan +zscore`),
  spring: rules('~spring:session:* +client|setname +hget +hgetall +info +pttl +scan +time'),
} as const satisfies Readonly<Record<string, readonly string[]>>;

type Block = keyof typeof RIGHTS_BLOCKS;

/** What a process may be told to be used for, and the blocks that this needs. */
const BLOCKS_OF_USES: Readonly<Record<string, readonly Block[]>> = {
  sessions: ['every process', 'handlers', 'broadcast handlers', 'notifications'],
  requests: ['every process'],
  deadlines: ['every process', 'deadlines', 'handlers', 'broadcast handlers'],
  admin: ['handlers', 'groups'],
  partitions: ['partitions'],
  cluster: ['cluster'],
  replicas: ['replicas'],
  flags: ['flags'],
  takeover: ['takeover'],
  repartition: ['every process', 'handlers', 'repartitioning'],
  verify: ['every process', 'verification'],
  read: ['reading commands'],
  spring: ['spring shared', 'handlers', 'broadcast handlers'],
  'spring-read': ['spring renewal'],
};

export const USES = Object.keys(BLOCKS_OF_USES);

/** The rules of a user of Redis without any other rights: keys, channels, then commands. */
export function userRights(uses: readonly string[], namespace: string | undefined, database: number): string[] {
  const has = (use: string) => uses.includes(use);
  const own = uses.flatMap((use) => BLOCKS_OF_USES[use]!.flatMap((block): readonly string[] => RIGHTS_BLOCKS[block]));
  const isForDeadlinesAlone =
    has('deadlines') && !uses.some((use) => /^(?:sessions|requests|repartition|verify)$/.test(use));
  const all = [...own, ...(database > 0 ? RIGHTS_BLOCKS.database : [])].filter(
    (rule) => !(isForDeadlinesAlone && rule.includes('nest:session')),
  );
  const placed = all.map((rule) =>
    rule
      .replace('@0__:nest:session:', has('partitions') ? '@0__:nest:session:{*}:' : '$&')
      .replace(isForDeadlinesAlone ? 'nest:deadlines' : /(?:nest|spring):session/, (prefix) => namespace ?? prefix)
      .replace('@0__', `@${database}__`)
      .replace(':event:0:', `:event:${database}:`),
  );
  return [...new Set(placed)].toSorted((a, b) => rankOf(a) - rankOf(b) || (a < b ? -1 : 1));
}

function ruleOf(command: string): string {
  return `+${ruleNameOf(command)}`;
}

function rules(text: string): string[] {
  return text.split(/\s+/);
}

function rankOf(rule: string): number {
  return '~&+('.indexOf(rule[0]!);
}
