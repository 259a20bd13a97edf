import { Injectable, type ModuleMetadata } from '@nestjs/common';
import { Test, type TestingModule } from '@nestjs/testing';
import {
  OnRedisEvent,
  type RedisEvent,
  RedisEventGroups,
  RedisEvents,
  RedisEventsModule,
  type RedisEventsModuleOptions,
} from '@nest-session/redis-events';
import { LogRecorder } from '@nest-session/test-infrastructure';
import { DELIVERY_PACE } from '../../src/configuration/event-rules.js';
import { EventTrimmer } from '../../src/delivery/event.trimmer.js';
import { trimOnce } from '../../../session-redis/test/support/trim-once.js';

/** So that a test needs no real minutes. */
const PACE = { pollInterval: 20, firstBackOff: 20, longestBackOff: 100, wishRenewal: 20 };

interface EventsInstanceOptions extends Pick<ModuleMetadata, 'imports' | 'providers'> {
  readonly events: RedisEventsModuleOptions;
  /** The types that it handles. */
  readonly handles?: readonly string[];
  /** The types that it handles as every instance does. */
  readonly hears?: readonly string[];
}

/** An instance of an application with events, without sessions unless `imports` have some, with short back-offs. */
export class EventsInstance {
  /** Of all instances: Nest has one logger in a process. */
  static readonly log = new LogRecorder();
  readonly handled: RedisEvent[] = [];
  readonly heard: RedisEvent[] = [];
  /** How many calls of its handlers fail from now on. */
  failures = 0;
  readonly nest!: TestingModule;

  static async start(options: EventsInstanceOptions): Promise<EventsInstance> {
    const { events, handles = [], hears = [], imports = [], providers = [] } = options;
    const instance = new EventsInstance();
    const nest = await Test.createTestingModule({
      imports: [...imports, RedisEventsModule.forRoot({ commandTimeout: '30s', ...events })],
      providers: [
        ...providers,
        ...handles.map((type) => ({ provide: `handler of ${type}`, useClass: instance.#handlerOf(type) })),
        ...hears.map((type) => ({ provide: `listener of ${type}`, useClass: instance.#listenerOf(type) })),
      ],
    })
      .setLogger(EventsInstance.log)
      .overrideProvider(DELIVERY_PACE)
      .useValue(PACE)
      .compile();
    Object.assign(instance, { nest });
    await nest.init();
    return instance;
  }

  get events(): RedisEvents {
    return this.nest.get(RedisEvents);
  }

  get groups(): RedisEventGroups {
    return this.nest.get(RedisEventGroups);
  }

  /** The ids of what it has handled. */
  get ids(): string[] {
    return this.handled.map(({ id }) => id);
  }

  /** Trims the events, as the job of every minute does. */
  async trim(): Promise<void> {
    await trimOnce(this.nest.get(EventTrimmer, { strict: false }));
  }

  stop(): Promise<void> {
    return this.nest.close();
  }

  #handlerOf(type: string) {
    const handle = (event: RedisEvent) => {
      if (this.failures-- > 0) throw new Error('not now');
      this.handled.push(event);
    };
    @Injectable()
    class Handler {
      @OnRedisEvent(type)
      handle(event: RedisEvent) {
        handle(event);
      }
    }
    return Handler;
  }

  #listenerOf(type: string) {
    const { heard } = this;
    @Injectable()
    class Listener {
      @OnRedisEvent(type, { broadcast: true })
      hear(event: RedisEvent) {
        heard.push(event);
      }
    }
    return Listener;
  }
}
