import { type DynamicModule, Module } from '@nestjs/common';
import { MapSessionModule, MapSessionRepository } from '@nest-session/core';
import { MAP_SESSION_CLOCK, type MapSessionModuleOptions } from '@nest-session/core/internal';
import { SessionEventDispatcher } from '@nest-session/core/store';
import { ManualClock } from '../clock/manual.clock.js';
import { SessionClock } from '../clock/session.clock.js';
import { SessionEventRecorder } from '../events/session-event.recorder.js';

/**
 * Replaces the application's store in a test, with `overrideModule(RedisSessionModule)`: a `MapSessionModule` with a
 * `SessionClock` and a `SessionEventRecorder`, which you get from the application.
 */
@Module({})
export class TestSessionModule {
  /** Returns the module. Call it for each application, because each call creates a clock that starts now. */
  static forRoot(options?: MapSessionModuleOptions): DynamicModule {
    const clock = new ManualClock(Date.now());
    const memory = MapSessionModule.forRoot(options);
    const ofMemory = [...(memory.providers ?? []), { provide: MAP_SESSION_CLOCK, useValue: clock }];
    return {
      module: TestSessionModule,
      imports: [{ ...memory, providers: ofMemory }],
      providers: [
        SessionEventRecorder,
        {
          provide: SessionClock,
          inject: [MapSessionRepository, SessionEventDispatcher],
          useFactory: (repository: MapSessionRepository, dispatcher: SessionEventDispatcher) =>
            new SessionClock(clock, repository, dispatcher),
        },
      ],
    };
  }
}
