import { ConfigurableModuleBuilder } from '@nestjs/common';
import { explainInjection } from '@nest-session/core/internal';
import type { ExpressSessionModuleOptions } from './express-session.options.js';

/** The interface of a class for `forRootAsync({ useClass })` or `useExisting`. */
export interface ExpressSessionOptionsFactory {
  /** Returns the options of `ExpressSessionModule`, or a promise of them. Called once, at start. */
  createExpressSessionOptions(): ExpressSessionModuleOptions | Promise<ExpressSessionModuleOptions>;
}

export const {
  ConfigurableModuleClass: ExpressSessionModuleDefinition,
  MODULE_OPTIONS_TOKEN: EXPRESS_SESSION_MODULE_OPTIONS,
} = new ConfigurableModuleBuilder<ExpressSessionModuleOptions>({ moduleName: 'ExpressSession' })
  .setClassMethodName('forRoot')
  .setFactoryMethodName('createExpressSessionOptions')
  .setExtras({}, (definition) => explainInjection('ExpressSessionModule', definition))
  .build();
