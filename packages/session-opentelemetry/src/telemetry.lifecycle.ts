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
import { DeadlineCallsListener } from './channels/deadline-calls.listener.js';
import { SessionCallsListener } from './channels/session-calls.listener.js';
import { SweepListener } from './channels/sweep.listener.js';
import { MeasuredStores } from './configuration/measured-stores.js';
import { observeStores } from './metrics/observe-stores.js';
import { SessionMeter } from './metrics/session-meter.js';

/** Begins to measure and to trace when the application starts, and ends it when the application has shut down. */
@Injectable()
export class TelemetryLifecycle implements OnModuleInit, OnApplicationShutdown {
  readonly #listening: (() => void)[] = [];

  constructor(
    @Inject(MeasuredStores) private readonly stores: MeasuredStores,
    @Inject(SessionCallsListener) private readonly sessionCalls: SessionCallsListener,
    @Inject(DeadlineCallsListener) private readonly deadlineCalls: DeadlineCallsListener,
    @Inject(SweepListener) private readonly sweeps: SweepListener,
    @Inject(SessionMeter) private readonly meter: SessionMeter,
    // Optional, so that our own error names the missing modules.
    @Optional() @Inject(SessionRepository) private readonly repository?: SessionRepository,
    @Optional() @Inject(MEASURED_DEADLINES) private readonly deadlines?: MeasuredNamespace,
    @Optional() @Inject(SESSION_READER) private readonly sessionReader?: SessionReader,
    @Optional() @Inject(DEADLINE_READER) private readonly deadlineReader?: StoreReader<DeadlineReading>,
  ) {}

  onModuleInit(): void {
    const { repository, deadlines, sessionReader, deadlineReader } = this;
    // Not in the constructor: a store that cannot be constructed gives its own reason.
    if (!repository && !deadlines) throw new InvalidSessionOptionsError('SessionTelemetryModule', [NO_STORE]);
    if (repository) this.#measureSessions(namespaceOf(repository));
    if (deadlines) this.#measureDeadlines(deadlines.namespace);
    const readers = { sessions: sessionReader, deadlines: deadlineReader };
    if (sessionReader ?? deadlineReader) this.meter.startObserving((meter) => observeStores(meter, readers));
  }

  /** After the last handler and the last save. */
  onApplicationShutdown(): void {
    for (const stop of this.#listening.splice(0)) stop();
    this.meter.stopObserving();
  }

  #measureSessions(namespace: string): void {
    this.stores.sessions = { namespace, group: this.sessionReader?.group };
    this.#listening.push(this.sessionCalls.listen(namespace), this.sweeps.listen(namespace, 'expirationDelay'));
  }

  #measureDeadlines(namespace: string): void {
    this.stores.deadlines = { namespace, group: this.deadlineReader?.group };
    this.#listening.push(this.deadlineCalls.listen(namespace), this.sweeps.listen(namespace, 'deadlineDelay'));
  }
}

const NO_STORE =
  'There are no sessions to measure, and no deadlines: add SessionModule.forRoot() and RedisSessionModule.forRoot(), or ' +
  'the module of another store, to the imports of the root module; for deadlines, DeadlineModule and ' +
  'RedisDeadlineModule.forRoot().';
