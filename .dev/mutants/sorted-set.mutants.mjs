// Mistakes in the sorted set of ends, in its poller, and in a switch between it and the buckets.
const byScripts = (test) => ({
  spec: 'sorted-set.scripts.spec.ts',
  test: `the sorted set of ends, with 1 partitions, ${test}`,
});
const byPoller = (test) => ({ spec: 'due-session-poller.spec.ts', test });
const BACK = 'takes a session over from its bucket when that is swept, and gives it back when others sweep the set';
const BOTH = 'leaves a session where it is recorded when it stands in both: found in its set';
const MOVED = 'has a rotated session under its new id, with the time that it had (idle: true)';
const WRITTEN = 'is written by a save or a touch only for an earlier end, or when it has lost the session';

export const sortedSet = [
  {
    mistake: 'A session that ends earlier stays in the sorted set where it was, too late',
    in: 'includes/check-member',
    code: 'moves = not due or due > ends_at',
    instead: 'moves = not due',
    killedBy: byScripts(WRITTEN),
  },
  {
    mistake: 'Each renewal of a session writes the sorted set',
    in: 'includes/check-member',
    code: 'moves = not due or due > ends_at',
    instead: 'moves = true',
    killedBy: byScripts(WRITTEN),
  },
  {
    mistake: 'An end leaves its session in the sorted set',
    in: 'includes/end',
    code: "if is_in_set then redis.call('ZREM', prefix .. 'ends', id) end",
    instead: '',
    killedBy: byScripts('has no session any more that shall never end, or has ended'),
  },
  {
    mistake: 'A session that shall never end stays in the sorted set',
    in: 'includes/change-member',
    code: "if left_set and not due then redis.call('ZREM', prefix .. 'ends', id) end",
    instead: '',
    killedBy: byScripts('has no session any more that shall never end, or has ended'),
  },
  {
    mistake: 'A change of id leaves the old one in the sorted set',
    in: 'save-session',
    code: "redis.call('ZREM', prefix .. 'ends', id)",
    instead: '',
    killedBy: byScripts(MOVED),
  },
  {
    mistake: 'A sweep of a bucket leaves a session recorded there that it has put into the sorted set',
    in: 'includes/claim: move_member',
    code: "redis.call('HDEL', key, 'bucket')",
    instead: '',
    killedBy: byScripts(BACK),
  },
  {
    mistake: 'A look at the sorted set takes a session out of its bucket that stands in both',
    in: 'includes/claim: move_member',
    code: 'if is_set then is_stray = bucket_of(id, recorded) end',
    instead: '',
    killedBy: byScripts(BOTH),
  },
  {
    mistake: 'A key event that claims a session leaves it in the sorted set',
    in: 'includes/claim: claim',
    code: 'if not is_set and is_in_set(id, fields[1]) then leaving_set[#leaving_set + 1] = id end',
    instead: '',
    killedBy: byScripts('loses the session that a key event has claimed, which is recorded once'),
  },
  {
    mistake: 'A stray key in the place of the sorted set prevents new sessions',
    in: 'includes/place-in-sorted-set',
    code: "if read('ZCARD', prefix .. 'ends') == nil then",
    instead: "if read('ZCARD', prefix .. 'ends') == nil then error('WRONGTYPE')",
    killedBy: byScripts('is replaced by buckets while a stray key stands in its place, and holds up nobody'),
  },
  {
    mistake: 'A look ahead passes over sessions of the same millisecond',
    in: 'claim-due',
    code: "local same = redis.call('ZRANGE', set, ARGV[6], ARGV[6], 'BYSCORE')",
    instead: 'local same = {}',
    killedBy: byScripts(
      'looks no further ahead than it is told to, and then at each session once, also of the same millisecond',
    ),
  },
  {
    mistake: 'The cleanup does not see that the sorted set has something',
    in: 'take-cleanup',
    code: "if ids.err or ids[1] then return 'due' end",
    instead: '',
    killedBy: byScripts('is a reason to clean up when it has something that is due'),
  },
  {
    mistake: 'A script tells nobody of an end before the next look at the sorted set',
    in: 'includes/join',
    code: 'if ends_at < now + 60000 and',
    instead: 'if false and',
    killedBy: byPoller('a script tells of an end within the next minute, in its partition, and of no other one'),
  },
  {
    mistake: 'An instance looks at the sorted set of each partition every second, whatever it hears',
    in: 'DueSessionPoller.#dueAt',
    code: 'this.signals.heardSince(keys) <= begun',
    instead: 'this.signals.heardSince(keys) < -1',
    killedBy: byPoller(
      'looks at 64 partitions less than five times a second where signals are heard, and not at all with buckets',
    ),
  },
  {
    mistake: 'An instance looks at the sorted set once a minute where it hears no signals',
    in: 'DueSessionPoller.#dueAt',
    code: 'this.signals.heardSince(keys) <= begun',
    instead: 'true',
    killedBy: byPoller('the poller looks at each partition within a second where signals are not heard'),
  },
  {
    mistake: 'An instance that may have missed signals of an end does not look',
    in: 'DueSessionPoller.start',
    code: "if (signal === 'missed') this.#hurry(keys, 0);",
    instead: "if (signal === 'missed') return;",
    killedBy: byPoller('looks at a partition at once when signals may have been missed, and when a signal says'),
  },
  {
    mistake: 'An instance never looks at the sorted set again after an error',
    in: 'DueSessionPoller.#look',
    code: 'look.failures++;',
    instead: 'look.failures = Infinity;',
    killedBy: byPoller('goes on when a stray key has stood in the place of a sorted set, and says so once'),
  },
];
