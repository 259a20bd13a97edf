import { type DynamicModule, Module } from '@nestjs/common';
import { MapSessionModule, MapSessionRepository } from '@nest-session/core';
import { MAP_SESSION_CLOCK, type MapSessionModuleOptions } from '@nest-session/core/internal';
import { SessionEventDispatcher } from '@nest-session/core/store';
import { TestClockModule } from '../clock/test-clock.module.js';
import { TestClock, type TimedWork } from '../clock/test.clock.js';
import { SessionEventRecorder } from '../events/session-event.recorder.js';

const EXPIRIES = Symbol('EXPIRIES');

/**
 * Replaces the application's store in a test, with `overrideModule(RedisSessionModule)`: a `MapSessionModule` with a
 * `TestClock` and a `SessionEventRecorder`, which you get from the application.
 */
@Module({})
export class TestSessionModule {
  /** Returns the module. The clock of the application begins now. */
  static forRoot(options?: MapSessionModuleOptions): DynamicModule {
    const memory = MapSessionModule.forRoot(options);
    const clock = { provide: MAP_SESSION_CLOCK, useExisting: TestClock };
    return {
      module: TestSessionModule,
      imports: [
        TestClockModule,
        { ...memory, imports: [TestClockModule], providers: [...(memory.providers ?? []), clock] },
      ],
      providers: [
        SessionEventRecorder,
        {
          provide: EXPIRIES,
          // Optional, so that the error of the store names the module that is missing.
          inject: [TestClock, MapSessionRepository, { token: SessionEventDispatcher, optional: true }],
          useFactory: (testClock: TestClock, repository: MapSessionRepository, dispatcher: SessionEventDispatcher) =>
            testClock.add(expiriesOf(repository, dispatcher)),
        },
      ],
    };
  }
}

function expiriesOf(repository: MapSessionRepository, dispatcher: SessionEventDispatcher): TimedWork {
  return {
    get nextDue() {
      return repository.nextExpiry;
    },
    runDue: () => repository.endExpired(),
    idle: () => dispatcher.idle(),
  };
}
