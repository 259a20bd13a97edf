// Mistakes in how sessions move to other partitions.
const byMove = (test) => ({ spec: 'moving-sessions.spec.ts', test });
const byApplication = (test) => ({ spec: 'repartitioned-application.spec.ts', test });
const EXACT =
  'moves the session hash, the shadow key with its exact end, the bucket and the index entries with their scores';
const BETWEEN = 'finds a session that moves between the reads of its old place and its new one';
const WRITTEN = 'whoever writes a session moves it first, and a new session is made in its new place';
const LATE_SAVE = 'a save that is late after a rotation finds its session, wherever this and the forwarding mark are';
const WHOLE = 'moves all sessions, and what outlives them, and then says that the new number can be set';

export const repartitioning = [
  {
    mistake: 'A session that moves gets the time of its move as its place in an index',
    in: 'includes/move',
    code: `entry.score = redis.call('ZSCORE', entry.set, id) or began`,
    instead: `entry.score = ends_at or redis.call('TIME')[1]`,
    killedBy: byMove(EXACT),
  },
  {
    mistake: 'A session that moves stays in its old bucket',
    in: 'includes/move',
    code: `if is_in then redis.call('SREM', left_bucket .. left, 'expires:' .. id) end`,
    instead: ``,
    killedBy: byMove(EXACT),
  },
  {
    mistake: 'A session that an epoch has ended comes back by its move',
    in: 'includes/move',
    code: `if epoch and began <= epoch then return false, true end`,
    instead: ``,
    killedBy: byMove('ends a session that the epoch of either partition ends, instead of moving it'),
  },
  {
    mistake: 'A session moves over what stands in its new place',
    in: 'includes/move',
    code: `redis.call('EXISTS', new_key, new_shadow) > 0`,
    instead: `false`,
    killedBy: byMove('does not move a session onto a foreign key, and leaves it usable where it is'),
  },
  {
    mistake: 'A session moves before the move has begun',
    in: 'move-session',
    code: `if redis.call('HGET', KEYS[3], 'partitions') ~= ARGV[4] then return 'stopped' end`,
    instead: ``,
    killedBy: byMove('moves nothing before the move has begun and after it is over'),
  },
  {
    mistake: 'An instance that has not heard of the next stage goes on as before',
    in: 'includes/in-layouts',
    code: `if recorded and recorded ~= record then return redis.error_reply('REPARTITIONED ' .. recorded) end`,
    instead: ``,
    killedBy: byMove('an instance that has not heard of the next stage changes nothing at the last one'),
  },
  {
    mistake: 'A session that is written does not move first',
    in: 'includes/in-layouts',
    code: `move(id)`,
    instead: ``,
    killedBy: byMove(WRITTEN),
  },
  {
    mistake: 'A forwarding mark stays where late saves no longer look',
    in: 'includes/in-layouts',
    code: `redis.call('RENAME', old_prefix .. 'sessions:moved:' .. id, new_prefix .. 'sessions:moved:' .. id)`,
    instead: ``,
    killedBy: byMove(LATE_SAVE),
  },
  {
    mistake: 'The mark of a takeover in the old place lets a session be taken over again',
    in: 'includes/in-layouts',
    code: `or kind == 'takeover' and exist(8, 8)`,
    instead: ``,
    killedBy: byMove('a session that is taken over twice is made once, also when its first place was the old one'),
  },
  {
    mistake: 'A new ledger is begun beside that of the old layout',
    in: 'includes/in-layouts',
    code: `if stage == 'moving' and redis.call('EXISTS', elsewhere[1]) == 1 then redis.call('RENAME', elsewhere[1], here[1]) end`,
    instead: ``,
    killedBy: byMove('keeps the ledger of a principal through a move, and none that another layout had'),
  },
  {
    mistake: 'A load looks in the new place first',
    in: 'SessionPartitions.grouped',
    code: `this.layouts.flatMap(`,
    instead: `this.layouts.toReversed().flatMap(`,
    killedBy: byMove(BETWEEN),
  },
  {
    mistake: 'A look-up reads the new partitions first',
    in: 'SessionPartitions.inOrder',
    code: `this.layouts.flatMap(`,
    instead: `this.layouts.toReversed().flatMap(`,
    killedBy: byMove(BETWEEN),
  },
  {
    mistake: 'A new id need not be beside the old one in the other layout',
    in: 'SessionPartitions.areBeside',
    code: `this.layouts.every(`,
    instead: `this.layouts.some(`,
    killedBy: byMove('a new id is in one partition with the old one, in both layouts'),
  },
  {
    mistake: 'While the sessions move, a script limits those of one partition only',
    in: 'SessionPartitions.isDivided',
    code: `if (this.hasTwoLayouts && this.stage === 'moving') return true;`,
    instead: ``,
    killedBy: byMove('keeps a limit of sessions that one script has kept before, and a ledger keeps from then on'),
  },
  {
    mistake: 'A listing reads the new partitions while sessions leave the old one',
    in: 'SessionIndexReader.list',
    code: `layout === layouts.at(-1) ? walks : await Promise.all(walks.map(held))`,
    instead: `walks`,
    killedBy: byMove('lists, counts and ends each session of a principal once while some have moved'),
  },
  {
    mistake: 'The move ends although sessions could not be moved',
    in: 'SessionRepartitioner.#moveSessions',
    code: `if (problems.length === 0) return;`,
    instead: `return;`,
    killedBy: byMove('tells what cannot be moved and why, and continues when it is run again'),
  },
  {
    mistake: 'A revocation mark moves to one partition only',
    in: 'OtherKeys.#moveRevocation',
    code: `this.#next.all.map(({ prefix })`,
    instead: `this.#next.all.slice(0, 1).map(({ prefix })`,
    killedBy: byMove(WHOLE),
  },
  {
    mistake: 'Dead letters stay in the old partitions',
    in: 'SessionRepartitioner.#drain',
    code: `await this.#others.moveLetters();`,
    instead: ``,
    killedBy: byMove(WHOLE),
  },
  {
    mistake: 'The move ends before every group has handled what the old partitions hold',
    in: 'SessionRepartitioner.#drain',
    code: `if (isBehind || group.pending > 0) return`,
    instead: `if (group.pending > 1e9) return`,
    killedBy: byApplication('the move waits until the groups have handled what the old partitions hold'),
  },
  {
    mistake: 'The groups of the old partitions do not exist in the new ones',
    in: 'SessionRepartitioner.#prepare',
    code: `for (const { name } of groups) {`,
    instead: `for (const { name } of [] as typeof groups) {`,
    killedBy: byApplication('a group whose instances are not there gets what happens after the move as well'),
  },
  {
    mistake: 'The signals of the only partition of a layout are relied on, although it sends none',
    in: 'PartitionSignals',
    code: `all.filter(({ hasSignals }) => hasSignals)`,
    instead: `all`,
    killedBy: byApplication(
      'instances serve their sessions before, during and after the move, and each end is handled once and broadcast',
    ),
  },
  {
    mistake: 'What was decided at one stage of the move is done at the next one',
    in: 'ScriptsInLayouts.run',
    code: `const { records, meta } = this.partitions;`,
    instead: `stage = this.partitions.stage;
    const { records, meta } = this.partitions;`,
    killedBy: byMove(
      'a limit that was to be kept by one script is kept by the ledger when the move begins before that',
    ),
  },
];
