import type { ModuleMetadata } from '@nestjs/common';
import { Test, type TestingModule } from '@nestjs/testing';
import { SessionModule } from '@nest-session/core';
import { RedisSessionModule, type RedisSessionModuleOptions } from '@nest-session/redis';
import { LogRecorder } from '../../../session-core/test/http/log.recorder.js';
import { DELIVERY_PACE } from '../../src/redis-session.tokens.js';

/** So that a test needs no real minutes. */
const PACE = { pollInterval: 20, firstBackOff: 20, longestBackOff: 100 };

export interface EventInstanceOptions extends Pick<ModuleMetadata, 'imports' | 'providers' | 'controllers'> {
  readonly redis: RedisSessionModuleOptions;
}

/** An instance of an application that handles session events, without HTTP, and quicker to try again. */
export class EventInstance {
  private constructor(
    readonly module: TestingModule,
    readonly log: LogRecorder,
  ) {}

  static async start({ redis, imports = [], ...metadata }: EventInstanceOptions): Promise<EventInstance> {
    const log = new LogRecorder();
    const module = await Test.createTestingModule({
      imports: [SessionModule.forRoot(), RedisSessionModule.forRoot(redis), ...imports],
      ...metadata,
    })
      .setLogger(log)
      .overrideProvider(DELIVERY_PACE)
      .useValue(PACE)
      .compile();
    return new EventInstance(await module.init(), log);
  }

  async stop(): Promise<void> {
    await this.module.close();
  }
}
