import { OptionReader } from '@nest-session/core/internal';

/** Options of `SessionTelemetryModule.forRoot()`. */
export interface SessionTelemetryModuleOptions {
  /**
   * Whether calls of event handlers are also measured by OpenTelemetry's own names for messaging:
   * `messaging.process.duration` and `messaging.client.consumed.messages`.
   * @default false
   */
  semanticMetrics?: boolean;
}

/** The options of `SessionTelemetryModule`, checked. */
export interface ResolvedSessionTelemetryOptions {
  readonly semanticMetrics: boolean;
}

/** The injection token of the options of `SessionTelemetryModule`, checked. */
export const RESOLVED_TELEMETRY_OPTIONS = Symbol('RESOLVED_TELEMETRY_OPTIONS');

/** Reads and checks the options. @throws InvalidSessionOptionsError that names all problems at once */
export function resolveSessionTelemetryOptions(
  options: SessionTelemetryModuleOptions = {},
): ResolvedSessionTelemetryOptions {
  const reader = new OptionReader('SessionTelemetryModule', options);
  const semanticMetrics = reader.boolean('semanticMetrics', false);
  reader.finish();
  return Object.freeze({ semanticMetrics });
}
