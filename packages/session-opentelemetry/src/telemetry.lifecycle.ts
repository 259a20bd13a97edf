import { Inject, Injectable, type OnApplicationShutdown, type OnModuleInit, Optional } from '@nestjs/common';
import { InvalidSessionOptionsError, SessionRepository } from '@nest-session/core';
import { namespaceOf, STORE_READER, type StoreReader } from '@nest-session/core/internal';
import { StoreIdentity } from './configuration/store-identity.js';
import { StoreCallsListener } from './channels/store-calls.listener.js';
import { SweepListener } from './channels/sweep.listener.js';
import { observeStore } from './metrics/observe-store.js';
import { SessionMeter } from './metrics/session-meter.js';

/** Begins to measure and to trace when the application starts, and ends it when the application has shut down. */
@Injectable()
export class TelemetryLifecycle implements OnModuleInit, OnApplicationShutdown {
  readonly #listening: (() => void)[] = [];

  constructor(
    @Inject(StoreIdentity) private readonly store: StoreIdentity,
    @Inject(StoreCallsListener) private readonly storeCalls: StoreCallsListener,
    @Inject(SweepListener) private readonly sweeps: SweepListener,
    @Inject(SessionMeter) private readonly meter: SessionMeter,
    // Optional, so that our own error names the missing modules.
    @Optional() @Inject(SessionRepository) private readonly repository?: SessionRepository,
    @Optional() @Inject(STORE_READER) private readonly reader?: StoreReader,
  ) {}

  onModuleInit(): void {
    const { repository, reader } = this;
    // Not in the constructor: a store that cannot be constructed gives its own reason.
    if (!repository) throw new InvalidSessionOptionsError('SessionTelemetryModule', [NO_REPOSITORY]);
    const namespace = namespaceOf(repository);
    Object.assign(this.store, { namespace, group: reader?.group });
    this.#listening.push(this.storeCalls.listen(namespace), this.sweeps.listen(namespace));
    if (reader) this.meter.startObserving((meter) => observeStore(meter, reader));
  }

  /** After the last handler and the last save. */
  onApplicationShutdown(): void {
    for (const stop of this.#listening.splice(0)) stop();
    this.meter.stopObserving();
  }
}

const NO_REPOSITORY =
  'There are no sessions to measure: add SessionModule.forRoot() and RedisSessionModule.forRoot(), or the module of ' +
  'another store, to the imports of the root module.';
