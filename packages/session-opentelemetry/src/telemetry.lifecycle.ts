import { Inject, Injectable, type OnApplicationShutdown, type OnModuleInit, Optional } from '@nestjs/common';
import { InvalidSessionOptionsError, SessionRepository } from '@nest-session/core';
import {
  DEADLINE_READER,
  type DeadlineReading,
  MEASURED_DEADLINES,
  type MeasuredNamespace,
  namespaceOf,
  SESSION_READER,
  type SessionReader,
  type StoreReader,
} from '@nest-session/core/internal';
import { CallTelemetry } from './channels/call-telemetry.js';
import { MeasuredStores } from './configuration/measured-stores.js';
import { observeStores } from './metrics/observe-stores.js';
import { SessionMeter } from './metrics/session-meter.js';

/** Begins to measure and to trace when the application starts, and ends it when the application has shut down. */
@Injectable()
export class TelemetryLifecycle implements OnModuleInit, OnApplicationShutdown {
  readonly #listening: (() => void)[] = [];

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
    const { calls, repository, deadlines, sessionReader, deadlineReader } = this;
    // Not in the constructor: a store that cannot be constructed gives its own reason.
    if (!repository && !deadlines) throw new InvalidSessionOptionsError('SessionTelemetryModule', [NO_STORE]);
    if (repository) {
      const namespace = namespaceOf(repository);
      this.stores.sessions = { namespace, group: sessionReader?.group };
      this.#listening.push(calls.listenToLoads(namespace), calls.listenToSaves(namespace));
      this.#listening.push(calls.listenToSweeps(namespace, 'expirationDelay'));
    }
    if (deadlines) {
      const { namespace } = deadlines;
      this.stores.deadlines = { namespace, group: deadlineReader?.group };
      this.#listening.push(calls.listenToDeadlines(namespace), calls.listenToSweeps(namespace, 'deadlineDelay'));
    }
    const readers = { sessions: sessionReader, deadlines: deadlineReader };
    if (sessionReader ?? deadlineReader) this.meter.startObserving((meter) => observeStores(meter, readers));
  }

  /** After the last handler and the last save. */
  onApplicationShutdown(): void {
    for (const stop of this.#listening.splice(0)) stop();
    this.meter.stopObserving();
  }
}

const NO_STORE =
  'There are no sessions to measure, and no deadlines: add SessionModule.forRoot() and RedisSessionModule.forRoot(), or ' +
  'the module of another store, to the imports of the root module; for deadlines, DeadlineModule and ' +
  'RedisDeadlineModule.forRoot().';
