import { setTimeout as sleep } from 'node:timers/promises';
import { type Calls, NO_CALLS } from './soak.clients.js';
import { type Answers, SoakInstance } from './soak.instance.js';
import { type RedisFigures, type SoakRedis } from './soak.redis.js';

const MINUTE = 60_000;
/**
 * Milliseconds that a minute takes at least while sessions end: the cleanup, and what it finds, has its turn once a
 * second.
 */
const WITH_ENDS = 1000;
const AT_REST = 250;

/** How a day goes. Times are minutes. */
export interface Schedule {
  readonly length: number;
  readonly instances: number;
  /** So many of them live through the whole day. */
  readonly lasting: number;
  readonly deploys: readonly number[];
  readonly failovers: readonly number[];
  /** Between two looks at the memory. */
  readonly interval: number;
}

/** A look at the memory. */
export interface Look extends RedisFigures {
  readonly minute: number;
  /** Of the instances that live through the whole day, in bytes. */
  readonly heap: readonly number[];
  readonly resident: readonly number[];
  readonly sessions: number;
  readonly lag: number;
}

/** Instances, their Redis and its clock. */
export class SoakDay {
  readonly looks: Look[] = [];
  calls = NO_CALLS;
  /** Calls that failed while no primary was there. */
  failedInFailovers = 0;
  #minute = 0;
  /** When the clock of Redis was stepped last; monotonic time. */
  #stepped = performance.now();

  private constructor(
    private readonly redis: SoakRedis,
    private readonly schedule: Schedule,
    private readonly instances: SoakInstance[],
    private readonly startInstance: (place: number) => Promise<SoakInstance>,
  ) {}

  /** `countingPort`: of the Redis that counts events. */
  static async begin(redis: SoakRedis, schedule: Schedule, countingPort: number): Promise<SoakDay> {
    let number = 0;
    const start = (place: number) => SoakInstance.start(`${place}-${(number += 1)}`, ...redis.address, countingPort);
    const instances: SoakInstance[] = [];
    for (let place = 0; place < schedule.instances; place++) instances.push(await start(place));
    return new SoakDay(redis, schedule, instances, start);
  }

  /** Resolves when it is over, and the sessions of its end still live. */
  async live(): Promise<void> {
    const { length, interval } = this.schedule;
    while (this.#minute < length) {
      await this.#liveMinute();
      if (this.#minute % interval === 0) await this.#look();
    }
  }

  /** So many minutes pass in which nobody uses the application. `areOver`: no session is left. */
  async rest(minutes: number, { areOver }: { readonly areOver: boolean }): Promise<void> {
    for (let i = 0; i < minutes; i++) {
      await sleep(areOver ? AT_REST : WITH_ENDS);
      await this.#step();
    }
  }

  async store(): Promise<Answers['store']> {
    return this.instances[0]!.ask('store');
  }

  async end(): Promise<void> {
    await Promise.all(this.instances.map((each) => each.finish()));
  }

  async #liveMinute(): Promise<void> {
    const begun = performance.now();
    const { deploys, failovers } = this.schedule;
    const isFailover = failovers.includes(this.#minute);
    const spent = Promise.all(this.instances.map((each) => each.ask('spend', this.#minute)));
    if (isFailover) await this.redis.failOver();
    const calls = await spent;
    this.calls = calls.reduce(sumOf, this.calls);
    if (isFailover) this.failedInFailovers += calls.reduce(sumOf).failed;
    const deployed = deploys.indexOf(this.#minute);
    if (deployed >= 0) await this.#deploy(deployed);
    await sleep(Math.max(0, begun + WITH_ENDS - performance.now()));
    await this.#step();
  }

  /** One of those that do not live through the whole day. */
  async #deploy(number: number): Promise<void> {
    const { instances, lasting } = this.schedule;
    const place = lasting + (number % (instances - lasting));
    await this.instances[place]!.finish();
    this.instances[place] = await this.startInstance(place);
  }

  /** The clock of Redis goes on meanwhile, so a step is shorter than a minute. */
  async #step(): Promise<void> {
    const now = performance.now();
    await this.redis.step(Math.max(0, Math.round(MINUTE - (now - this.#stepped))));
    this.#stepped = now;
    this.#minute++;
  }

  async #look(): Promise<void> {
    const lasting = this.instances.slice(0, this.schedule.lasting);
    const memory = await Promise.all(lasting.map((each) => each.ask('memory')));
    const { sessions, lag } = await this.store();
    const look = {
      minute: this.#minute,
      heap: memory.map(({ heap }) => heap),
      resident: memory.map(({ resident }) => resident),
      ...(await this.redis.figures()),
      sessions,
      lag,
    };
    this.looks.push(look);
    this.#tell(look);
  }

  #tell({ minute, heap, memory, sessions, lag }: Look): void {
    const time = `${Math.floor(minute / 60)}:${`${minute % 60}`.padStart(2, '0')}`;
    const [heaps, redis] = [heap.map(inMebibytes).join(', '), inMebibytes(memory)];
    const { failed, wrongSessions, wrongDeadlines } = this.calls;
    console.log(
      `${time}  heaps ${heaps} MiB  Redis ${redis} MiB  ${sessions} sessions  lag ${lag}  ${failed} calls failed  ${wrongSessions + wrongDeadlines} wrong`,
    );
  }
}

function inMebibytes(bytes: number): string {
  return (bytes / 2 ** 20).toFixed(1);
}

function sumOf(some: Calls, others: Calls): Calls {
  const names = Object.keys(some) as (keyof Calls)[];
  return Object.fromEntries(names.map((name) => [name, some[name] + others[name]])) as unknown as Calls;
}
