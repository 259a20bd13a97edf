import { ConfigurableModuleBuilder } from '@nestjs/common';
import { explainInjection } from '@nest-session/core/internal';
import type { SessionTelemetryModuleOptions } from './session-telemetry.options.js';

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
