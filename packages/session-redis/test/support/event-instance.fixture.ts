import type { ModuleMetadata } from '@nestjs/common';
import { Test, type TestingModule } from '@nestjs/testing';
import { SessionModule, type SessionModuleOptions } from '@nest-session/core';
import { RedisSessionModule, type RedisSessionModuleOptions } from '@nest-session/redis';
import { LogRecorder } from '@nest-session/test-infrastructure';
import {
  DELIVERY_OPTIONS,
  DELIVERY_PACE,
  type DeliveryOptions,
  type DeliveryPace,
  EVENT_RULES,
  eventRules,
} from '../../../redis-events/src/configuration/event-rules.js';
import { Partitions } from '../../../redis-events/src/partitions/partitions.js';
import { PATIENCE } from './patience.js';

/** So that a test needs no real minutes. */
const PACE = { pollInterval: 20, firstBackOff: 20, longestBackOff: 100, wishRenewal: 20 };

export interface EventInstanceOptions extends Pick<ModuleMetadata, 'imports' | 'providers' | 'controllers'> {
  /** With `commandTimeout: PATIENCE` unless it has another. */
  readonly redis: RedisSessionModuleOptions;
  readonly session?: SessionModuleOptions;
  /** Milliseconds; overrides the defaults of the fixture. */
  readonly pace?: Partial<typeof PACE>;
  /** Bytes. @default as in an application */
  readonly deadLetterBytes?: number | undefined;
}

/** An instance of an application that handles session events, without HTTP and with short back-offs. */
export class EventInstance {
  /** Of all instances: Nest has one logger in a process. */
  static readonly log = new LogRecorder();

  private constructor(readonly module: TestingModule) {}

  static async start({
    redis,
    session,
    pace,
    deadLetterBytes,
    imports = [],
    ...metadata
  }: EventInstanceOptions): Promise<EventInstance> {
    const module = await Test.createTestingModule({
      imports: [
        SessionModule.forRoot(session),
        RedisSessionModule.forRoot({ commandTimeout: PATIENCE, ...redis }),
        ...imports,
      ],
      ...metadata,
    })
      .setLogger(EventInstance.log)
      .overrideProvider(DELIVERY_PACE)
      .useValue({ ...PACE, ...pace })
      .overrideProvider(EVENT_RULES)
      .useFactory({
        inject: [DELIVERY_OPTIONS, DELIVERY_PACE, Partitions],
        factory: (...args: [DeliveryOptions, DeliveryPace, Partitions]) => eventRules(...args, deadLetterBytes),
      })
      .compile();
    return new EventInstance(await module.init());
  }

  async stop(): Promise<void> {
    await this.module.close();
  }
}
