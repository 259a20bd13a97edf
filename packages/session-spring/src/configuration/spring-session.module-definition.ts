import { ConfigurableModuleBuilder } from '@nestjs/common';
import { explainInjection } from '@nest-session/core/internal';
import { MODULE, type SpringSessionModuleOptions } from './spring-session.options.js';

/** Implement it in a class that you pass to `forRootAsync()` as `useClass` or `useExisting`. */
export interface SpringSessionOptionsFactory {
  /** Returns the options, or a promise of them. Called once, at start. */
  createSpringSessionOptions(): SpringSessionModuleOptions | Promise<SpringSessionModuleOptions>;
}

export const {
  ConfigurableModuleClass: SpringSessionModuleDefinition,
  MODULE_OPTIONS_TOKEN: SPRING_SESSION_MODULE_OPTIONS,
} = new ConfigurableModuleBuilder<SpringSessionModuleOptions>({ moduleName: 'SpringSession' })
  .setClassMethodName('forRoot')
  .setFactoryMethodName('createSpringSessionOptions')
  .setExtras({}, (definition) => ({ ...explainInjection(MODULE, definition), global: true }))
  .build();
