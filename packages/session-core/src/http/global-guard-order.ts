import type { CanActivate, Type } from '@nestjs/common';
import type { ApplicationConfig } from '@nestjs/core';

/**
 * Has a guard run before all other global guards. By itself Nest runs them as it has found them: those of the root module
 * first, then those of its imports. For `NestModule.configure()`: there all of them are known, and no route is.
 */
export function putGlobalGuardFirst(config: ApplicationConfig, guard: Type<CanActivate>): void {
  const guards = config.getGlobalGuards();
  const index = guards.findIndex((each) => each instanceof guard);
  if (index > 0) guards.unshift(...guards.splice(index, 1));
}
