// `@nest-session/opentelemetry`: metrics and spans of sessions and deadlines.
export { SessionTelemetryModule } from './session-telemetry.module.js';
export type { SessionTelemetryOptionsFactory } from './configuration/session-telemetry.module-definition.js';
export type { SessionTelemetryModuleOptions } from './configuration/session-telemetry.options.js';
