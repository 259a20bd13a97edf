import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { eventually } from '../wait/eventually.js';
import type { ContractCheck } from './contract.check.js';

/** A `SessionTimer` of `@nest-session/redis`. Its documentation says what the methods do. */
export interface ContractTimer {
  /** Begins to ask. */
  start(ask: (id: string) => Promise<number | undefined>): void | Promise<void>;
  /** Arranges that it asks about a session after so many milliseconds. */
  schedule(id: string, delay: number): Promise<void>;
  /** Makes that unnecessary. */
  cancel(id: string): Promise<void>;
  /** Stops asking. */
  stop(): Promise<void>;
}

/** The environment of a check: its own server, and the timers of one application. */
export interface TimerServer {
  /** Creates a timer for another instance of the same application. The check starts and stops it. */
  timer(): ContractTimer;
  /** Ends the server at once, as a crash does. */
  kill(): Promise<void>;
  /** Starts the server again. It may have forgotten everything. */
  restart(): Promise<void>;
  /** Ends the server for good. */
  close(): Promise<void>;
}

/** The timer under test. */
export interface SessionTimerContractOptions {
  /** Starts a server for one check. */
  open(): Promise<TimerServer>;
  /** Whether `cancel()` prevents the question if the same timer has scheduled the session. */
  readonly cancels: boolean;
}

/**
 * Returns the checks that every `SessionTimer` must pass. Each takes some seconds, because it waits for the timer's
 * clock.
 */
export function sessionTimerContract({ open, cancels }: SessionTimerContractOptions): readonly ContractCheck[] {
  return Object.entries(CHECKS).map(([name, check]) => ({
    name,
    ...(name === CANCELS && !cancels && { skipped: 'it cannot cancel' }),
    check: async () => {
      const server = await open();
      const instances: Instance[] = [];
      const start = async (answer?: Answer, timer = server.timer()) => {
        const instance = new Instance(timer, answer);
        instances.push(instance);
        await instance.timer.start((id) => instance.ask(id));
        return instance;
      };
      try {
        await check(start, server);
      } finally {
        await Promise.all(instances.map(({ timer }) => timer.stop()));
        await server.close();
      }
    },
  }));
}

/** Answers the question about an id. `before` is the number of earlier questions about it. */
type Answer = (id: string, before: number) => Promise<number | undefined>;

type Check = (
  start: (answer?: Answer, timer?: ContractTimer) => Promise<Instance>,
  server: TimerServer,
) => Promise<void>;

/** The timer of one instance, and what it has asked. */
class Instance {
  /** The monotonic times of the questions about each id. */
  readonly asked = new Map<string, number[]>();
  readonly #answer: Answer;

  constructor(
    readonly timer: ContractTimer,
    answer: Answer = async () => undefined,
  ) {
    this.#answer = answer;
  }

  ask(id: string): Promise<number | undefined> {
    const times = this.timesOf(id);
    this.asked.set(id, [...times, performance.now()]);
    return this.#answer(id, times.length);
  }

  timesOf(id: string): readonly number[] {
    return this.asked.get(id) ?? [];
  }

  /** Schedules a new session. The connection may not be there yet. */
  async schedule(delay: number): Promise<string> {
    const id = newId();
    await eventually(() => this.timer.schedule(id, delay));
    return id;
  }

  /** Resolves when everything that is due is asked, without a limit for how late. */
  async settle(): Promise<void> {
    const marker = await this.schedule(1);
    await this.untilAsked(marker);
  }

  untilAsked(id: string, times = 1): Promise<void> {
    return eventually(() => assert.ok(this.timesOf(id).length >= times, `asked ${this.timesOf(id).length} times`), {
      timeout: LONGEST_WAIT,
    });
  }
}

function newId(): string {
  return randomBytes(32).toString('base64url');
}

// Milliseconds. A server may need a while to notice that a client is gone.
const LONGEST_WAIT = 60_000;
const LONGEST_STOP = 15_000;
// What clocks that tick differently may make of a second.
const TOLERANCE = 20;

async function stopInTime({ timer }: Instance): Promise<void> {
  const begin = performance.now();
  await timer.stop();
  const took = performance.now() - begin;
  assert.ok(took < LONGEST_STOP, `took ${took} ms`);
}

const CANCELS = 'does not ask about a session that is cancelled';

const CHECKS: Readonly<Record<string, Check>> = {
  'asks about a session once its time has come, and never again when nobody needs to': async (start) => {
    const instance = await start();
    const begin = performance.now();
    const id = await instance.schedule(1500);
    await instance.untilAsked(id);
    const waited = instance.timesOf(id)[0]! - begin;
    assert.ok(waited >= 1500 - TOLERANCE, `asked after ${waited} ms`);
    await instance.settle();
    await instance.settle();
    assert.equal(instance.timesOf(id).length, 1);
  },

  'asks again when the answer says': async (start) => {
    const instance = await start(async (_id, before) => (before === 0 ? 1500 : undefined));
    const id = await instance.schedule(10);
    await instance.untilAsked(id, 2);
    const [first, second] = instance.timesOf(id);
    assert.ok(second! - first! >= 1500 - TOLERANCE, `asked again after ${second! - first!} ms`);
    await instance.settle();
    assert.equal(instance.timesOf(id).length, 2);
  },

  'asks again some seconds later when there is no answer': async (start) => {
    const instance = await start(async (_id, before) => {
      if (before === 0) throw new Error('Redis does not reply');
      return undefined;
    });
    const id = await instance.schedule(10);
    await instance.untilAsked(id, 2);
  },

  'asks about a session that is scheduled twice at least once': async (start) => {
    const instance = await start();
    const id = await instance.schedule(1000);
    await instance.timer.schedule(id, 1000);
    await instance.untilAsked(id);
  },

  [CANCELS]: async (start) => {
    const instance = await start();
    const id = await instance.schedule(1000);
    await instance.timer.cancel(id);
    await instance.timer.cancel(newId());
    const later = await instance.schedule(1500);
    await instance.untilAsked(later);
    assert.equal(instance.timesOf(id).length, 0);
  },

  'asks about each of many sessions, in one instance each': async (start) => {
    const instances = [await start(), await start()];
    const ids = await Promise.all(Array.from({ length: 300 }, (_, i) => instances[i % 2]!.schedule(1000)));
    const questions = () => ids.map((id) => instances.flatMap((instance) => instance.timesOf(id)).length);
    await eventually(() => assert.ok(questions().every((count) => count > 0)), { timeout: LONGEST_WAIT });
    assert.ok(questions().every((count) => count === 1));
  },

  'asks in another instance when the one that scheduled has stopped': async (start) => {
    const [stopped, other] = [await start(), await start()];
    const id = await stopped.schedule(1000);
    await stopped.timer.stop();
    await stopped.timer.stop();
    await other.untilAsked(id);
    assert.equal(stopped.timesOf(id).length, 0);
  },

  'starts again after it was stopped': async (start) => {
    const { timer } = await start();
    await timer.stop();
    const again = await start(undefined, timer);
    await again.settle();
  },

  'lets the questions that are open be answered before it has stopped': async (start) => {
    let answer: (() => void) | undefined;
    const instance = await start(() => new Promise((resolve) => (answer = () => resolve(undefined))));
    const id = await instance.schedule(10);
    await instance.untilAsked(id);
    let hasStopped = false;
    const stopped = instance.timer.stop().then(() => (hasStopped = true));
    await pause(100);
    assert.equal(hasStopped, false);
    answer!();
    await stopped;
    const other = await start();
    await other.settle();
    assert.equal(other.timesOf(id).length, 0);
  },

  'refuses to schedule while its server is away, and works again when that is back': async (start, server) => {
    const instance = await start();
    await instance.settle();
    const lost = await instance.schedule(LONGEST_WAIT);
    await server.kill();
    await eventually(() => assert.rejects(instance.timer.schedule(newId(), 10)), { timeout: LONGEST_WAIT });
    await server.restart();
    const ids = [await eventually(() => instance.schedule(500), { timeout: LONGEST_WAIT })];
    // The server may give the jobs of the lost instance to others.
    for (let i = 0; i < 5; i++) ids.push(await instance.schedule(500));
    await instance.timer.cancel(lost);
    for (const id of ids) await instance.untilAsked(id);
  },

  'stops while its server is away': async (start, server) => {
    const instance = await start();
    await instance.settle();
    await server.kill();
    await stopInTime(instance);
  },

  'starts and stops while its server has never been there': async (start, server) => {
    await server.kill();
    const instance = await start();
    await assert.rejects(instance.timer.schedule(newId(), 10));
    await stopInTime(instance);
  },
};
