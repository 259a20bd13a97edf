/** A deployment whose sweeps are simulated. Times are microseconds. */
export interface SweepPlan {
  /** Live sessions. */
  readonly sessions: number;
  readonly partitions: number;
  /** Primaries, which have as many partitions each. */
  readonly nodes: number;
  /** Processes that sweep. */
  readonly instances: number;
  /** The share of its time that a node spends on requests, and an instance on others than the sweep. */
  readonly busy: number;
  /** How many instances die a second after minute 60 began: what they sweep waits for the next minute. */
  readonly deaths: number;
  /** For how many minutes nothing sweeps, from minute 60 on. */
  readonly pause: number;
  /** Sessions in a claim. */
  readonly batch: number;
  readonly roundTrip: number;
  /** What a session costs a node in a claim. */
  readonly ended: number;
  readonly alive: number;
  /** What a session costs an instance. */
  readonly process: number;
}

export interface SweepResult {
  /** Members of buckets that are looked at, in the steady state. */
  readonly visitsPerSecond: number;
  /** The largest bucket. */
  readonly largestBucket: number;
  /** The share of the time of a node that sweeps take, in the steady state; and of the time of an instance. */
  readonly redisShare: number;
  readonly processShare: number;
  /** Seconds from the minute of a bucket to its last claim, for each bucket of the minutes 60 to 119. */
  readonly lateness: readonly number[];
  /** Buckets that were not finished before the next minute. */
  readonly behind: number;
}

const MINUTES = 120;
/** The first minute that is simulated call by call. */
const FIRST = 60;
const MINUTE = 60_000_000;
const SECOND = 1_000_000;
/** Idle timeout, in minutes. */
const TIMEOUT = 30;
/** How long a user is there, in minutes: the mean of an exponential distribution. */
const PRESENCE = 20;
/** The pause that an instance makes between two calls to a node. */
const PAUSE = 1000;
/** The instances begin within this time after the full minute. */
const JITTER = 500_000;
/** Members that one call reads. */
const PAGE = 100;
// The first sessions begin in minute 0: until then, buckets are not what they are later.
const WARM_UP = 240;
const SAMPLE = 2_000_000;

/** Members of a minute's buckets, of a sample of sessions. */
interface Due {
  ended: number;
  alive: number;
}

/** The bucket of a minute in a partition. */
interface Bucket extends Readonly<Due> {
  readonly minute: number;
}

/** What an instance does on one node: one call at a time. */
interface Lane {
  readonly instance: number;
  readonly node: number;
  clock: number;
  partition: number | undefined;
  /** The calls for its buckets that are left, the last one first. */
  calls: { readonly each: number; readonly members: number; readonly ends?: Bucket }[];
}

/**
 * Sessions begin evenly over time, and live on until their user has been away for the timeout. A bucket has a session once
 * per timeout: it is found renewed, and moves, or it has ended. Every minute the instances take the partitions of each node
 * in a random order, one after the other, and claim their buckets: on each node, an instance has one call under way. A node
 * executes one call at a time, and so does the processor of an instance.
 */
export function simulateSweeps(plan: SweepPlan): SweepResult {
  const random = seeded(1);
  const due = sampledMinutes(random);
  const scale = plan.sessions / liveInSample();
  const waiting = Array.from({ length: plan.partitions }, () => [] as Bucket[]);
  const sweep = new Sweep(plan, waiting, random);
  let [visits, work, largestBucket] = [0, 0, 0];
  for (let minute = 0; minute < MINUTES; minute++) {
    for (const [partition, bucket] of spread(due[WARM_UP + minute]!, scale, plan.partitions, random).entries()) {
      largestBucket = Math.max(largestBucket, bucket.ended + bucket.alive);
      if (minute >= FIRST) waiting[partition]!.push({ ...bucket, minute });
      else {
        visits += bucket.ended + bucket.alive;
        work += bucket.ended * plan.ended + bucket.alive * plan.alive;
      }
    }
    if (minute >= FIRST + plan.pause) sweep.run(minute);
  }
  return {
    visitsPerSecond: visits / (60 * FIRST),
    largestBucket,
    redisShare: work / (FIRST * MINUTE) / plan.nodes,
    processShare: (visits * plan.process) / (FIRST * MINUTE) / plan.instances,
    lateness: sweep.lateness,
    behind: sweep.lateness.filter((seconds) => seconds > 60).length + waiting.flat().length,
  };
}

/** The sweeps of all instances. */
class Sweep {
  readonly lateness: number[] = [];
  readonly #lanes: Lane[];
  /** When each node and each instance is free. */
  readonly #nodes: number[];
  readonly #instances: number[];

  constructor(
    private readonly plan: SweepPlan,
    /** The buckets of each partition that nobody claims yet. */
    private readonly waiting: Bucket[][],
    private readonly random: () => number,
  ) {
    const { instances, nodes } = plan;
    this.#nodes = Array<number>(nodes).fill(0);
    this.#instances = Array<number>(instances).fill(0);
    this.#lanes = Array.from({ length: instances * nodes }, (_, i) => {
      return { instance: i % instances, node: Math.floor(i / instances), clock: 0, partition: undefined, calls: [] };
    });
  }

  /** From the beginning of a minute to that of the next one. */
  run(minute: number): void {
    const [begin, end] = [minute * MINUTE, (minute + 1) * MINUTE];
    const dead = minute >= FIRST ? this.plan.deaths : 0;
    const death = minute === FIRST ? begin + SECOND : 0;
    const taken = new Set(this.#lanes.map(({ partition }) => partition));
    const turns = this.#turns(taken);
    const starts = this.#instances.map(() => begin + JITTER * this.random());
    const busy = new LaneQueue();
    for (const lane of this.#lanes) {
      if (lane.partition === undefined) lane.clock = Math.max(lane.clock, starts[lane.instance]!);
      busy.push(lane);
    }
    for (let lane = busy.pop(); lane !== undefined; lane = busy.pop()) {
      if (lane.clock >= end) continue;
      if (lane.instance < dead && lane.clock >= death) {
        this.#abandon(lane);
        continue;
      }
      if (lane.calls.length === 0) this.#take(lane, turns[lane.node]!.pop());
      if (lane.calls.length === 0) continue;
      this.#call(lane);
      busy.push(lane);
    }
  }

  /** The partitions of each node, in a random order. */
  #turns(taken: ReadonlySet<number | undefined>): number[][] {
    const turns = this.#nodes.map(() => [] as number[]);
    const drawn = this.waiting.map((_, partition) => [this.random(), partition] as const);
    for (const [, partition] of drawn.toSorted(([a], [b]) => a - b)) {
      if (!taken.has(partition)) turns[partition % this.plan.nodes]!.push(partition);
    }
    return turns;
  }

  #take(lane: Lane, partition: number | undefined): void {
    lane.partition = partition;
    if (partition === undefined) return;
    const { batch, ended, alive, busy } = this.plan;
    for (const bucket of this.waiting[partition]!.splice(0)) {
      const members = bucket.ended + bucket.alive;
      const claims = Math.ceil(members / batch);
      const each = (bucket.ended * ended + bucket.alive * alive) / Math.max(1, claims) / (1 - busy);
      // The calls that read the bucket, whose cost is that of a session, and the one that removes it.
      const reads = Array.from({ length: Math.ceil(members / PAGE) }, () => ({ each: 0, members: 0 }));
      const looks = Array.from({ length: claims }, () => ({ each, members: members / claims }));
      lane.calls.unshift({ each: 0, members: 0, ends: bucket }, ...looks, ...reads);
    }
  }

  #call(lane: Lane): void {
    const { roundTrip, process, busy } = this.plan;
    const { each, members, ends } = lane.calls.pop()!;
    const sent = Math.max(lane.clock, this.#instances[lane.instance]!) + (members * process) / (1 - busy);
    this.#instances[lane.instance] = sent;
    const done = Math.max(sent + roundTrip / 2, this.#nodes[lane.node]!) + each;
    this.#nodes[lane.node] = done;
    lane.clock = done + roundTrip / 2 + PAUSE;
    if (ends) this.lateness.push((lane.clock - PAUSE) / SECOND - 60 * ends.minute);
    if (lane.calls.length === 0) lane.partition = undefined;
  }

  /** What is left waits for the next minute. Each bucket counts as a whole. */
  #abandon(lane: Lane): void {
    if (lane.partition !== undefined) {
      const left = lane.calls.flatMap(({ ends }) => ends ?? []);
      this.waiting[lane.partition]!.unshift(...left.toReversed());
    }
    lane.partition = undefined;
    lane.calls = [];
  }
}

/** The lane with the earliest clock first. */
class LaneQueue {
  readonly #heap: Lane[] = [];

  push(lane: Lane): void {
    const heap = this.#heap;
    let at = heap.length;
    for (; at > 0; at = (at - 1) >> 1) {
      const parent = heap[(at - 1) >> 1]!;
      if (parent.clock <= lane.clock) break;
      heap[at] = parent;
    }
    heap[at] = lane;
  }

  pop(): Lane | undefined {
    const heap = this.#heap;
    const [first] = heap;
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return first;
    let at = 0;
    for (let child = 1; child < heap.length; child = 2 * at + 1) {
      if (child + 1 < heap.length && heap[child + 1]!.clock < heap[child]!.clock) child++;
      if (heap[child]!.clock >= last.clock) break;
      heap[at] = heap[child]!;
      at = child;
    }
    heap[at] = last;
    return first;
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
