import { ConfigurableModuleBuilder } from '@nestjs/common';
import type { RedisSessionModuleOptions } from './redis-session.options.js';

/** Implemented by a class that is given to `forRootAsync({ useClass })` or `useExisting`. */
export interface RedisSessionOptionsFactory {
  /** The options of `RedisSessionModule`, or a promise of them; called once, at start. */
  createRedisSessionOptions(): RedisSessionModuleOptions | Promise<RedisSessionModuleOptions>;
}

export const {
  ConfigurableModuleClass: RedisSessionModuleDefinition,
  MODULE_OPTIONS_TOKEN: REDIS_SESSION_MODULE_OPTIONS,
} = new ConfigurableModuleBuilder<RedisSessionModuleOptions>({ moduleName: 'RedisSession' })
  .setClassMethodName('forRoot')
  .setFactoryMethodName('createRedisSessionOptions')
  .setExtras({}, (definition) => ({ ...definition, global: true }))
  .build();
