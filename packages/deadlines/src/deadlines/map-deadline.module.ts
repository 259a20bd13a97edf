import {
  type BeforeApplicationShutdown,
  type DynamicModule,
  Global,
  Inject,
  Module,
  type OnApplicationBootstrap,
} from '@nestjs/common';
import { type Clock, MEASURED_DEADLINES } from '@nest-session/core/internal';
import { DeadlineHandlerModule } from './deadline-handler.module.js';
import { DeadlineDispatcher } from './deadline.dispatcher.js';
import { DeadlineEvents } from './deadline.events.js';
import { DeadlineStore } from './deadline.store.js';
import { MapDeadlineDelivery } from './map-deadline-delivery.js';
import { MapDeadlineEvents } from './map-deadline.events.js';
import { MapDeadlineLoop } from './map-deadline.loop.js';
import { type MapDeadlineModuleOptions, resolveMapDeadlineOptions } from './map-deadline.options.js';
import { MapDeadlineStore } from './map-deadline.store.js';

/** The clock by which deadlines are due; `TestDeadlineModule` overrides it. */
export const MAP_DEADLINE_CLOCK = Symbol('MAP_DEADLINE_CLOCK');

const OPTIONS = Symbol('MAP_DEADLINE_OPTIONS');

/**
 * Keeps deadlines in memory, for an application of a single process and for tests. Import the class, or `forRoot()` for
 * another serializer. **A restart loses everything**: what waits, what is retried, and the dead letters. There is one
 * group, `default`. After 10 attempts, a deadline is a dead letter; the last 1,000 are kept. Otherwise it behaves like
 * a store that many instances share.
 */
@Global()
@Module({
  imports: [DeadlineHandlerModule],
  providers: [
    // `forRoot()` replaces it.
    { provide: OPTIONS, useValue: {} },
    { provide: MAP_DEADLINE_CLOCK, useValue: Date },
    {
      provide: MapDeadlineStore,
      inject: [OPTIONS, MAP_DEADLINE_CLOCK],
      useFactory: (options: MapDeadlineModuleOptions, clock: Clock) =>
        new MapDeadlineStore(resolveMapDeadlineOptions(options).serializer, clock),
    },
    {
      provide: MapDeadlineDelivery,
      inject: [DeadlineDispatcher, MapDeadlineStore, MAP_DEADLINE_CLOCK],
      useFactory: (dispatcher: DeadlineDispatcher, { serializer }: MapDeadlineStore, clock: Clock) =>
        new MapDeadlineDelivery(dispatcher, serializer, clock),
    },
    {
      provide: MapDeadlineLoop,
      inject: [MapDeadlineStore, MapDeadlineDelivery, DeadlineDispatcher, MAP_DEADLINE_CLOCK],
      useFactory: (...parts: ConstructorParameters<typeof MapDeadlineLoop>) => new MapDeadlineLoop(...parts),
    },
    {
      provide: DeadlineEvents,
      inject: [DeadlineDispatcher, MapDeadlineDelivery],
      useFactory: (...parts: ConstructorParameters<typeof MapDeadlineEvents>) => new MapDeadlineEvents(...parts),
    },
    { provide: DeadlineStore, useExisting: MapDeadlineStore },
    { provide: MEASURED_DEADLINES, useExisting: MapDeadlineStore },
  ],
  // The last one: for @nest-session/opentelemetry.
  exports: [DeadlineStore, DeadlineEvents, MEASURED_DEADLINES],
})
export class MapDeadlineModule implements OnApplicationBootstrap, BeforeApplicationShutdown {
  /** @internal Import it. */
  constructor(@Inject(MapDeadlineLoop) private readonly loop: MapDeadlineLoop) {}

  /**
   * Returns the module for the imports of the root module.
   * @throws InvalidSessionOptionsError at start, which names all problems of the options
   */
  static forRoot(options: MapDeadlineModuleOptions = {}): DynamicModule {
    return { module: MapDeadlineModule, providers: [{ provide: OPTIONS, useValue: options }] };
  }

  /** Begins to fire deadlines. Called by Nest. */
  onApplicationBootstrap(): void {
    this.loop.start();
  }

  /** The dispatcher waits for handlers that still run, after the last response. */
  beforeApplicationShutdown(): void {
    this.loop.stop();
  }
}
