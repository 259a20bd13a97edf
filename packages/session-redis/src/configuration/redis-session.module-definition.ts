import { ConfigurableModuleBuilder } from '@nestjs/common';
import { explainInjection } from '@nest-session/core/internal';
import type { RedisSessionModuleOptions } from './redis-session.options.js';

/** Implement it in a class that you pass to `forRootAsync()` as `useClass` or `useExisting`. */
export interface RedisSessionOptionsFactory {
  /** Returns the options, or a promise of them. Called once, at start. */
  createRedisSessionOptions(): RedisSessionModuleOptions | Promise<RedisSessionModuleOptions>;
}

export const {
  ConfigurableModuleClass: RedisSessionModuleDefinition,
  MODULE_OPTIONS_TOKEN: REDIS_SESSION_MODULE_OPTIONS,
} = new ConfigurableModuleBuilder<RedisSessionModuleOptions>({ moduleName: 'RedisSession' })
  .setClassMethodName('forRoot')
  .setFactoryMethodName('createRedisSessionOptions')
  .setExtras({}, (definition) => ({ ...explainInjection('RedisSessionModule', definition), global: true }))
  .build();
