import { type DynamicModule, Global, Module } from '@nestjs/common';
import { SESSION_TELEMETRY } from '@nest-session/core/internal';
import { StoreCallsListener } from './channels/store-calls.listener.js';
import { SweepListener } from './channels/sweep.listener.js';
import { StoreIdentity } from './configuration/store-identity.js';
import {
  SESSION_TELEMETRY_MODULE_OPTIONS,
  SessionTelemetryModuleDefinition,
} from './configuration/session-telemetry.module-definition.js';
import {
  RESOLVED_TELEMETRY_OPTIONS,
  resolveSessionTelemetryOptions,
  type SessionTelemetryModuleOptions,
} from './configuration/session-telemetry.options.js';
import { HandlerTelemetry } from './events/handler-telemetry.js';
import { SecurityEventCounter } from './events/security-event.counter.js';
import { SessionEndCounter } from './events/session-end.counter.js';
import { ErrorTypes } from './instrumentation/error-types.js';
import { SessionMeter } from './metrics/session-meter.js';
import { TelemetryLifecycle } from './telemetry.lifecycle.js';

/**
 * Gives OpenTelemetry metrics and spans of the sessions, by whatever SDK the application registers. Import it once, in
 * the root module, together with `SessionModule` and the module of the store.
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
    StoreIdentity,
    ErrorTypes,
    SessionMeter,
    HandlerTelemetry,
    StoreCallsListener,
    SweepListener,
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
