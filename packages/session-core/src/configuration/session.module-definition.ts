import { ConfigurableModuleBuilder } from '@nestjs/common';
import { explainInjection } from '../option-reading/injected-dependencies.js';
import type { SessionModuleOptions } from './session.options.js';

/** What a class for `forRootAsync({ useClass })` or `useExisting` must implement. */
export interface SessionOptionsFactory {
  /** The options of `SessionModule`, or a promise of them; called once, at start. */
  createSessionOptions(): SessionModuleOptions | Promise<SessionModuleOptions>;
}

export const { ConfigurableModuleClass: SessionModuleDefinition, MODULE_OPTIONS_TOKEN: SESSION_MODULE_OPTIONS } =
  new ConfigurableModuleBuilder<SessionModuleOptions>({ moduleName: 'Session' })
    .setClassMethodName('forRoot')
    .setFactoryMethodName('createSessionOptions')
    .setExtras({}, (definition) => explainInjection('SessionModule', definition))
    .build();

/** The injection token of the resolved options, `ResolvedSessionOptions`. */
export const SESSION_OPTIONS = Symbol('SESSION_OPTIONS');
