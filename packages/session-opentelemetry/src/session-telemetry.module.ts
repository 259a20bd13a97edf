import {
  type DynamicModule,
  Global,
  Inject,
  Injectable,
  Module,
  type OnApplicationShutdown,
  type OnModuleInit,
  Optional,
} from '@nestjs/common';
import { InvalidSessionOptionsError, SessionRepository } from '@nest-session/core';
import {
  DEADLINE_READER,
  type DeadlineReading,
  MEASURED_DEADLINES,
  type MeasuredNamespace,
  SESSION_READER,
  SESSION_TELEMETRY,
  type SessionReader,
  type StoreReader,
  storeCallsOf,
} from '@nest-session/core/internal';
import { CallTelemetry } from './channels/call-telemetry.js';
import {
  RESOLVED_TELEMETRY_OPTIONS,
  resolveSessionTelemetryOptions,
  SESSION_TELEMETRY_MODULE_OPTIONS,
  SessionTelemetryModuleDefinition,
  type SessionTelemetryModuleOptions,
} from './configuration/session-telemetry.options.js';
import { SecurityEventCounter, SessionEndCounter } from './events/event-counters.js';
import { HandlerTelemetry } from './events/handler-telemetry.js';
import { ErrorTypes } from './sdk-calls.js';
import { observeStores } from './metrics/observe-stores.js';
import { MeasuredStores, SessionMeter } from './metrics/session-meter.js';

/** Begins to measure and to trace when the application starts, and ends it when the application has shut down. */
@Injectable()
class TelemetryLifecycle implements OnModuleInit, OnApplicationShutdown {
  #stopListening: () => void = () => undefined;

  constructor(
    @Inject(MeasuredStores) private readonly stores: MeasuredStores,
    @Inject(CallTelemetry) private readonly calls: CallTelemetry,
    @Inject(SessionMeter) private readonly meter: SessionMeter,
    // Optional, so that our own error names the missing modules.
    @Optional() @Inject(SessionRepository) private readonly repository?: SessionRepository,
    @Optional() @Inject(MEASURED_DEADLINES) private readonly deadlines?: MeasuredNamespace,
    @Optional() @Inject(SESSION_READER) private readonly sessionReader?: SessionReader,
    @Optional() @Inject(DEADLINE_READER) private readonly deadlineReader?: StoreReader<DeadlineReading>,
  ) {}

  onModuleInit(): void {
    const { stores, repository, deadlines, sessionReader, deadlineReader } = this;
    // Not in the constructor: a store that cannot be constructed gives its own reason.
    if (!repository && !deadlines) throw new InvalidSessionOptionsError('SessionTelemetryModule', [NO_STORE]);
    if (repository) stores.sessions = { namespace: storeCallsOf(repository).namespace, group: sessionReader?.group };
    if (deadlines) stores.deadlines = { namespace: deadlines.namespace, group: deadlineReader?.group };
    this.#stopListening = this.calls.listenTo(stores);
    const readers = { sessions: sessionReader, deadlines: deadlineReader };
    if (sessionReader ?? deadlineReader) this.meter.startObserving((meter) => observeStores(meter, readers));
  }

  /** After the last handler and the last save. */
  onApplicationShutdown(): void {
    this.#stopListening();
    this.meter.stopObserving();
  }
}

const NO_STORE =
  'There are no sessions to measure, and no deadlines: add SessionModule.forRoot() and RedisSessionModule.forRoot(), or ' +
  'the module of another store, to the imports of the root module; for deadlines, DeadlineModule and ' +
  'RedisDeadlineModule.forRoot().';

/**
 * Gives OpenTelemetry metrics and spans of the sessions and of the deadlines, by whatever SDK the application
 * registers. Import it once, in the root module, together with `SessionModule`, `DeadlineModule` or both, and the
 * modules of their stores.
 */
@Global()
@Module({
  providers: [
    {
      provide: RESOLVED_TELEMETRY_OPTIONS,
      inject: [SESSION_TELEMETRY_MODULE_OPTIONS],
      useFactory: resolveSessionTelemetryOptions,
    },
    { provide: SESSION_TELEMETRY, useExisting: HandlerTelemetry },
    MeasuredStores,
    ErrorTypes,
    SessionMeter,
    HandlerTelemetry,
    CallTelemetry,
    SessionEndCounter,
    SecurityEventCounter,
    TelemetryLifecycle,
  ],
  exports: [SESSION_TELEMETRY],
})
export class SessionTelemetryModule extends SessionTelemetryModuleDefinition {
  /**
   * Returns the module for the imports of the root module.
   * @throws InvalidSessionOptionsError at start, which names all problems of the options
   */
  static override forRoot(options: SessionTelemetryModuleOptions = {}): DynamicModule {
    return super.forRoot(options);
  }
}
