import { Test, type TestingModule } from '@nestjs/testing';
import { type Deadline, type DeadlineEvent, DeadlineEvents, DeadlineModule } from '@nest-session/deadlines';
import { Deadlines, OnDeadline } from '@nest-session/deadlines';
import { RedisDeadlineModule, type RedisDeadlineModuleOptions } from '@nest-session/deadlines/redis';
import { LogRecorder } from '@nest-session/test-infrastructure';
import { DueSweeper, SweepCounter } from '../../../redis-events/src/cleanup/due.sweeper.js';
import { EventTrimmer } from '../../../redis-events/src/delivery/event.trimmer.js';
import { DELIVERY_PACE } from '../../../redis-events/src/configuration/event-rules.js';
import { Partitions } from '../../../redis-events/src/partitions/partitions.js';
import { PATIENCE } from '../../../session-redis/test/support/patience.js';
import { trimOnce } from '../../../session-redis/test/support/trim-once.js';

/** So that a test needs no real minutes. */
const PACE = { pollInterval: 20, firstBackOff: 20, longestBackOff: 100, wishRenewal: 20 };

export interface DeadlineInstanceOptions {
  /** With `commandTimeout: PATIENCE` unless it has another. */
  readonly redis: RedisDeadlineModuleOptions;
  /** The kinds that it handles. */
  readonly handles: readonly Deadline<unknown>[];
}

/** An instance of an application that handles deadlines, with short back-offs. */
export class DeadlineInstance {
  /** Of all instances: Nest has one logger in a process. */
  static readonly log = new LogRecorder();
  /** What its handlers have handled. */
  readonly handled: DeadlineEvent[] = [];
  /** How many calls of its handlers fail from now on. */
  failures = 0;
  #module!: TestingModule;

  static async start({ redis, handles }: DeadlineInstanceOptions): Promise<DeadlineInstance> {
    const instance = new DeadlineInstance();
    instance.#module = await Test.createTestingModule({
      imports: [DeadlineModule.forRoot(), RedisDeadlineModule.forRoot({ commandTimeout: PATIENCE, ...redis })],
      providers: handles.map((kind) => instance.#handlerOf(kind)),
    })
      .setLogger(DeadlineInstance.log)
      .overrideProvider(DELIVERY_PACE)
      .useValue(PACE)
      .compile();
    await instance.#module.init();
    return instance;
  }

  get deadlines(): Deadlines {
    return this.#module.get(Deadlines);
  }

  get events(): DeadlineEvents {
    return this.#module.get(DeadlineEvents);
  }

  /** The keys of what it has handled, in alphabetical order: none is promised. */
  get keys(): string[] {
    return this.handled.map(({ key }) => key).toSorted();
  }

  /** As the job of every minute does. */
  async sweep(): Promise<void> {
    const tally = new SweepCounter(false);
    await this.#module
      .get(DueSweeper, { strict: false })
      .sweep(this.#module.get(Partitions, { strict: false }).all, tally, {});
    expect(tally.failures).toEqual([]);
  }

  /** Trims its events, as the job of every minute does. */
  async trim(): Promise<void> {
    await trimOnce(this.#module.get(EventTrimmer, { strict: false }));
  }

  stop(): Promise<void> {
    return this.#module.close();
  }

  #handlerOf(kind: Deadline<unknown>) {
    const record = (event: DeadlineEvent) => {
      if (this.failures-- > 0) throw new Error('not now');
      this.handled.push(event);
    };
    class Handler {
      @OnDeadline(kind)
      handle(event: DeadlineEvent) {
        record(event);
      }
    }
    return { provide: kind.name, useClass: Handler };
  }
}
