import { ConfigurableModuleBuilder } from '@nestjs/common';
import { explainInjection, OptionReader } from '@nest-session/core/internal';

/** Options of `SessionTelemetryModule.forRoot()`. */
export interface SessionTelemetryModuleOptions {
  /**
   * Whether calls of event handlers are also measured by OpenTelemetry's own names for messaging:
   * `messaging.process.duration` and `messaging.client.consumed.messages`.
   * @default false
   */
  semanticMetrics?: boolean;
}

export type ResolvedSessionTelemetryOptions = ReturnType<typeof resolveSessionTelemetryOptions>;

export const RESOLVED_TELEMETRY_OPTIONS = Symbol('RESOLVED_TELEMETRY_OPTIONS');

export function resolveSessionTelemetryOptions(options: SessionTelemetryModuleOptions = {}) {
  const reader = new OptionReader('SessionTelemetryModule', options);
  const semanticMetrics = reader.boolean('semanticMetrics', false);
  reader.finish();
  return Object.freeze({ semanticMetrics });
}

/** The interface of a class for `forRootAsync({ useClass })` or `useExisting`. */
export interface SessionTelemetryOptionsFactory {
  /** Returns the options of `SessionTelemetryModule`, or a promise of them. Called once, at start. */
  createSessionTelemetryOptions(): SessionTelemetryModuleOptions | Promise<SessionTelemetryModuleOptions>;
}

export const {
  ConfigurableModuleClass: SessionTelemetryModuleDefinition,
  MODULE_OPTIONS_TOKEN: SESSION_TELEMETRY_MODULE_OPTIONS,
} = new ConfigurableModuleBuilder<SessionTelemetryModuleOptions>({ moduleName: 'SessionTelemetry' })
  .setClassMethodName('forRoot')
  .setFactoryMethodName('createSessionTelemetryOptions')
  .setExtras({}, (definition) => explainInjection('SessionTelemetryModule', definition))
  .build();
