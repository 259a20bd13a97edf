import { type DynamicModule, Module } from '@nestjs/common';
import { MapSessionModule, type MapSessionModuleOptions, MapSessionRepository } from '@nest-session/core';
import { SessionEventDispatcher } from '@nest-session/core/store';
import { ManualClock } from '../clock/manual.clock.js';
import { SessionClock } from '../clock/session.clock.js';
import { SessionEventRecorder } from '../events/session-event.recorder.js';

/**
 * Takes the place of the application's store in a test, as in `overrideModule(RedisSessionModule)`: `MapSessionModule`
 * with a `SessionClock` and a `SessionEventRecorder`, which the test gets from the application.
 */
@Module({})
export class TestSessionModule {
  /** To be called for each application: its sessions have a clock of their own, which begins now. */
  static forRoot(options: Omit<MapSessionModuleOptions, 'clock'> = {}): DynamicModule {
    const clock = new ManualClock(Date.now());
    return {
      module: TestSessionModule,
      imports: [MapSessionModule.forRoot({ ...options, clock })],
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
