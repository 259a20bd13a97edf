import type { DynamicModule } from '@nestjs/common';
import { MapDeadlineModule, type MapDeadlineModuleOptions } from '@nest-session/deadlines';
import { MAP_DEADLINE_CLOCK, MapDeadlineDelivery } from '@nest-session/deadlines/internal';
import { TestClockModule } from '../clock/test-clock.module.js';
import { TestClock } from '../clock/test.clock.js';

const DRIVEN_LOOP = Symbol('DRIVEN_LOOP');

/**
 * Replaces the store of the application's deadlines in a test, with `overrideModule(RedisDeadlineModule)`: a
 * `MapDeadlineModule` with a `TestClock`, which you get from the application.
 */
export class TestDeadlineModule extends MapDeadlineModule {
  /** Returns the module. The clock of the application begins now. */
  static override forRoot(options?: MapDeadlineModuleOptions): DynamicModule {
    const { providers = [] } = MapDeadlineModule.forRoot(options);
    return {
      module: TestDeadlineModule,
      imports: [TestClockModule],
      providers: [
        ...providers,
        { provide: MAP_DEADLINE_CLOCK, useExisting: TestClock },
        {
          provide: DRIVEN_LOOP,
          inject: [TestClock, MapDeadlineDelivery],
          useFactory: (clock: TestClock, delivery: MapDeadlineDelivery) => clock.add(delivery),
        },
      ],
    };
  }
}
