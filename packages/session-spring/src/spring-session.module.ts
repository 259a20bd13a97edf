import { type ConfigurableModuleAsyncOptions, type DynamicModule, Global, Inject, Module } from '@nestjs/common';
import { ModulesContainer } from '@nestjs/core';
import { InvalidSessionOptionsError } from '@nest-session/core';
import { STORE_EXPORTS } from '@nest-session/redis/internal';
import {
  SPRING_SESSION_MODULE_OPTIONS,
  SpringSessionModuleDefinition,
} from './configuration/spring-session.module-definition.js';
import { MODULE, type SpringSessionModuleOptions } from './configuration/spring-session.options.js';
import { SpringSessionLifecycle } from './spring-session.lifecycle.js';
import { SPRING_SESSION_PROVIDERS } from './spring-session.providers.js';

/**
 * Finds the sessions of `SessionModule` where Spring Session keeps them, in place of `RedisSessionModule`. It is
 * global: import it once, in the root module, with `forRoot()` or `forRootAsync()`. In a test, replace it by its name:
 * `overrideModule(SpringSessionModule)`.
 */
@Global()
@Module({ providers: [...SPRING_SESSION_PROVIDERS, SpringSessionLifecycle], exports: STORE_EXPORTS })
export class SpringSessionModule {
  /**
   * The module with these options, for the imports of the root module. Wrong options fail the start with an
   * InvalidSessionOptionsError that names all problems.
   */
  static forRoot(options: SpringSessionModuleOptions): DynamicModule {
    return SpringSessionOptionsModule.forRoot(options);
  }

  /** The same with injected options, by `useFactory`, `useClass` or `useExisting`. */
  static forRootAsync(
    options: ConfigurableModuleAsyncOptions<SpringSessionModuleOptions, 'createSpringSessionOptions'>,
  ): DynamicModule {
    return SpringSessionOptionsModule.forRootAsync(options);
  }
}

/** Holds the options: see `RedisSessionModule`. */
@Module({ imports: [SpringSessionModule], exports: [SPRING_SESSION_MODULE_OPTIONS] })
class SpringSessionOptionsModule extends SpringSessionModuleDefinition {
  /** @internal Import it with `forRoot()`. */
  constructor(@Inject(ModulesContainer) modules: ModulesContainer) {
    super();
    const own = [...modules.values()].filter(({ metatype }) => metatype === SpringSessionOptionsModule);
    if (own.length > 1) throw new InvalidSessionOptionsError(MODULE, [IMPORTED_TWICE]);
  }
}

const IMPORTED_TWICE =
  'It is configured twice in this application. It is global: import SpringSessionModule.forRoot() once, in the root module.';
