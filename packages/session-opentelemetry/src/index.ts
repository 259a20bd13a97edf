// `@nest-session/opentelemetry`: metrics and spans of sessions and deadlines.
export { SessionTelemetryModule } from './session-telemetry.module.js';
export type {
  SessionTelemetryModuleOptions,
  SessionTelemetryOptionsFactory,
} from './configuration/session-telemetry.options.js';
