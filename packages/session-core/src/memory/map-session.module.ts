import {
  type BeforeApplicationShutdown,
  type DynamicModule,
  Inject,
  Module,
  type OnApplicationBootstrap,
} from '@nestjs/common';
import { SessionEventDispatcher } from '../events/session-event.dispatcher.js';
import { SessionEventModule } from '../events/session-event.module.js';
import { SESSION_OPTIONS } from '../configuration/session.module-definition.js';
import type { ResolvedSessionOptions } from '../configuration/session.options.js';
import { IndexedSessionRepository } from '../repository/indexed-session.repository.js';
import { type Clock, MapSessionRepository } from './map-session.repository.js';
import { PollingLoop } from '../background/polling.loop.js';
import { importedAsClass, ofSessionModule } from '../option-reading/injected-dependencies.js';
import { SessionRepository } from '../repository/session.repository.js';
import { OptionReader } from '../option-reading/option.reader.js';
import { type AttributeSerializer, isSerializer } from '../session/attribute.serializer.js';

/** Options of `MapSessionModule.forRoot()`. */
export interface MapSessionModuleOptions {
  /** Turns attributes into text and back. @default JSON */
  serializer?: AttributeSerializer;
}

/** @throws InvalidSessionOptionsError that names all problems at once */
export function resolveMapSessionOptions(options: MapSessionModuleOptions | undefined) {
  const reader = new OptionReader('MapSessionModule', options);
  const serializer = reader.value('serializer', isSerializer, 'an AttributeSerializer');
  reader.finish();
  return { serializer };
}

const SWEEP_INTERVAL = 1000;

/** The clock by which sessions expire; `TestSessionModule` overrides it. */
export const MAP_SESSION_CLOCK = Symbol('MAP_SESSION_CLOCK');

/** Keeps sessions in memory, for an application of a single process and for tests. */
@Module({
  imports: [SessionEventModule],
  // `forRoot()` replaces it.
  providers: [{ provide: MapSessionRepository, useFactory: refuseBareClass }],
})
export class MapSessionModule implements OnApplicationBootstrap, BeforeApplicationShutdown {
  readonly #sweeps: PollingLoop;

  /** @internal Import it with `forRoot()`. */
  constructor(@Inject(MapSessionRepository) repository: MapSessionRepository) {
    this.#sweeps = new PollingLoop('The sweep for expired sessions', SWEEP_INTERVAL, () => repository.endExpired());
  }

  /**
   * Returns the module for the imports of the root module.
   * @throws InvalidSessionOptionsError at start, which names all problems of the options
   */
  static forRoot(options?: MapSessionModuleOptions): DynamicModule {
    return {
      module: MapSessionModule,
      global: true,
      providers: [
        { provide: MAP_SESSION_CLOCK, useValue: Date },
        {
          provide: MapSessionRepository,
          inject: [{ token: SESSION_OPTIONS, optional: true }, SessionEventDispatcher, MAP_SESSION_CLOCK],
          useFactory: (
            session: ResolvedSessionOptions | undefined,
            dispatcher: SessionEventDispatcher,
            clock: Clock,
          ) => {
            const own = resolveMapSessionOptions(options);
            const { serializer, ...others } = ofSessionModule(session, 'MapSessionModule');
            return new MapSessionRepository({ ...others, serializer: own.serializer ?? serializer, clock, dispatcher });
          },
        },
        { provide: IndexedSessionRepository, useExisting: MapSessionRepository },
        { provide: SessionRepository, useExisting: MapSessionRepository },
      ],
      exports: [MapSessionRepository, IndexedSessionRepository, SessionRepository],
    };
  }

  /** Starts to look for expired sessions, once a second. Called by Nest. */
  onApplicationBootstrap(): void {
    this.#sweeps.start();
  }

  /** The dispatcher waits for handlers that still run, after the last response. */
  beforeApplicationShutdown(): Promise<void> {
    return this.#sweeps.stop();
  }
}

function refuseBareClass(): never {
  throw importedAsClass('MapSessionModule');
}
