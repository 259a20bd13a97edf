import { type DynamicModule, Global, Module } from '@nestjs/common';
import { SESSION_TELEMETRY } from '@nest-session/core/internal';
import { CallTelemetry } from './channels/call-telemetry.js';
import { MeasuredStores } from './configuration/measured-stores.js';
import {
  RESOLVED_TELEMETRY_OPTIONS,
  resolveSessionTelemetryOptions,
  SESSION_TELEMETRY_MODULE_OPTIONS,
  SessionTelemetryModuleDefinition,
  type SessionTelemetryModuleOptions,
} from './configuration/session-telemetry.options.js';
import { SecurityEventCounter, SessionEndCounter } from './events/event-counters.js';
import { HandlerTelemetry } from './events/handler-telemetry.js';
import { ErrorTypes } from './instrumentation/error-types.js';
import { SessionMeter } from './metrics/session-meter.js';
import { TelemetryLifecycle } from './telemetry.lifecycle.js';

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
