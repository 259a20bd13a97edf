/** A deployment whose sweeps are simulated. Times are microseconds. */
export interface SweepPlan {
  /** Live sessions. */
  readonly sessions: number;
  readonly partitions: number;
  /** Primaries, which have as many partitions each. */
  readonly nodes: number;
  /** Processes that sweep. In each minute, one of them sweeps a partition. */
  readonly instances: number;
  /** The share of its time that a node spends on requests. */
  readonly busy: number;
  /** How many instances die in minute 60: their partitions wait for the next minute. */
  readonly deaths: number;
  /** For how many minutes nothing sweeps, from minute 60 on. */
  readonly pause: number;
  /** Sessions in a claim. */
  readonly batch: number;
  readonly roundTrip: number;
  /** What a session costs a node in a claim. */
  readonly ended: number;
  readonly alive: number;
}

export interface SweepResult {
  /** Members of buckets that are looked at, in the steady state. */
  readonly visitsPerSecond: number;
  /** The largest bucket. */
  readonly largestBucket: number;
  /** The share of the time of a node that sweeps take, in the steady state. */
  readonly redisShare: number;
  /** Seconds from the minute of a bucket to its last claim, for each bucket of the minutes 60 to 119. */
  readonly lateness: readonly number[];
  /** Minutes from 60 on in which some bucket was not finished before the next minute. */
  readonly minutesBehind: number;
}

const MINUTES = 120;
const MINUTE = 60_000_000;
/** Idle timeout, in minutes. */
const TIMEOUT = 30;
/** How long a user is there, in minutes: the mean of an exponential distribution. */
const PRESENCE = 20;
/** The pause that an instance makes between two claims. */
const PAUSE = 1000;
// The first sessions begin in minute 0: until then, buckets are not what they are later.
const WARM_UP = 240;
const SAMPLE = 2_000_000;

/** Members of a minute's buckets, of a sample of sessions. */
interface Due {
  ended: number;
  alive: number;
}

/** A bucket that an instance claims. */
interface Claim extends Due {
  readonly partition: number;
  /** Batches that are left. */
  calls: number;
  /** Microseconds of the node for each. */
  readonly each: number;
}

/** An instance, which has one call under way at a time. */
interface Sweeper {
  clock: number;
  readonly claims: Claim[];
}

/**
 * Sessions begin evenly over time, and live on until their user has been away for the timeout. A bucket has a session once
 * per timeout: it is found renewed, and moves, or it has ended. The buckets of a minute are then claimed by the instances,
 * each one call at a time; a node executes one call at a time, and its requests beside.
 */
export function simulateSweeps(plan: SweepPlan): SweepResult {
  const random = seeded(1);
  const due = sampledMinutes(random);
  const scale = plan.sessions / liveInSample();
  const free = Array<number>(plan.nodes).fill(0);
  const sweepers: Sweeper[] = Array.from({ length: plan.instances }, () => ({ clock: 0, claims: [] }));
  const lateness: number[] = [];
  let backlog = new Map<number, Due>();
  let [visits, work, largestBucket, minutesBehind] = [0, 0, 0, 0];
  for (let minute = 0; minute < MINUTES; minute++) {
    const begin = minute * MINUTE;
    const buckets = spread(due[WARM_UP + minute]!, scale, plan.partitions, random);
    for (const [partition, left] of backlog) merge(buckets[partition]!, left);
    backlog = new Map();
    const isOver = minute >= 60 && minute < 60 + plan.pause;
    const dead = minute === 60 ? plan.deaths : 0;
    const living = minute > 60 ? sweepers.slice(plan.deaths) : sweepers;
    for (const [partition, bucket] of buckets.entries()) {
      const sweeper = living[partition % living.length]!;
      if (isOver || sweepers.indexOf(sweeper) < dead) backlog.set(partition, bucket);
      else sweeper.claims.push(claimOf(partition, bucket, plan));
      largestBucket = Math.max(largestBucket, bucket.ended + bucket.alive);
      if (minute >= 60) continue;
      visits += bucket.ended + bucket.alive;
      work += bucket.ended * plan.ended + bucket.alive * plan.alive;
    }
    const ends = sweep(living, begin, free, plan);
    if (minute >= 60) lateness.push(...ends.map((end) => (end - begin) / 1e6));
    if (minute >= 60 && (ends.some((end) => end - begin > MINUTE) || backlog.size > 0)) minutesBehind++;
  }
  return {
    visitsPerSecond: visits / 3600,
    largestBucket,
    redisShare: work / (60 * MINUTE) / plan.nodes,
    lateness,
    minutesBehind,
  };
}

function claimOf(partition: number, { ended, alive }: Due, plan: SweepPlan): Claim {
  const calls = Math.max(1, Math.ceil((ended + alive) / plan.batch));
  const each = (ended * plan.ended + alive * plan.alive) / calls / (1 - plan.busy);
  return { partition, ended, alive, calls, each };
}

/** Lets the instances claim their buckets, in the order of time. Returns when each bucket is finished. */
function sweep(sweepers: readonly Sweeper[], begin: number, free: number[], { nodes, roundTrip }: SweepPlan): number[] {
  const ends: number[] = [];
  for (const sweeper of sweepers) sweeper.clock = Math.max(sweeper.clock, begin);
  for (;;) {
    let next: Sweeper | undefined;
    for (const sweeper of sweepers) {
      if (sweeper.claims.length > 0 && (next === undefined || sweeper.clock < next.clock)) next = sweeper;
    }
    if (next === undefined) return ends;
    const claim = next.claims[0]!;
    const node = claim.partition % nodes;
    const start = Math.max(next.clock + roundTrip / 2, free[node]!);
    free[node] = start + claim.each;
    next.clock = start + claim.each + roundTrip / 2;
    if (--claim.calls === 0) {
      ends.push(next.clock);
      next.claims.shift();
    }
    next.clock += PAUSE;
  }
}

/** The members that a minute's buckets have, for each minute, in a sample. */
function sampledMinutes(random: () => number): Due[] {
  const all = Array.from({ length: WARM_UP + MINUTES + TIMEOUT + 1 }, () => ({ ended: 0, alive: 0 }));
  for (let session = 0; session < SAMPLE; session++) {
    const begin = random() * (WARM_UP + MINUTES);
    const last = begin - PRESENCE * Math.log(1 - random());
    // The user is there all the time: the session is renewed up to the last minute.
    for (let minute = Math.ceil(begin + TIMEOUT); minute < all.length;) {
      const hasEnded = last + TIMEOUT <= minute;
      all[minute]![hasEnded ? 'ended' : 'alive']++;
      if (hasEnded) break;
      minute = Math.ceil(Math.min(last, minute) + TIMEOUT);
    }
  }
  return all;
}

/** How many sessions of the sample live at a time: as many as begin while one lives. */
function liveInSample(): number {
  return (SAMPLE / (WARM_UP + MINUTES)) * (PRESENCE + TIMEOUT);
}

/** The buckets of the partitions, whose sizes vary as those of random ids. */
function spread({ ended, alive }: Due, scale: number, partitions: number, random: () => number): Due[] {
  const share = (count: number) => {
    const mean = (count * scale) / partitions;
    return Math.max(0, Math.round(mean + Math.sqrt(mean) * normal(random)));
  };
  return Array.from({ length: partitions }, () => ({ ended: share(ended), alive: share(alive) }));
}

function merge(bucket: Due, left: Due): void {
  bucket.ended += left.ended;
  bucket.alive += left.alive;
}

function normal(random: () => number): number {
  return Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
}

/** The same numbers in each run. */
function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}
