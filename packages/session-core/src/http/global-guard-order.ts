import type { CanActivate, Type } from '@nestjs/common';
import type { ApplicationConfig } from '@nestjs/core';

/**
 * Makes a guard run before all other global guards. Nest runs them in the order in which it finds them: those of the
 * root module first, then those of its imports. Call it in `NestModule.configure()`, where all global guards are known
 * and no route is registered yet.
 */
export function putGlobalGuardFirst(config: ApplicationConfig, guard: Type<CanActivate>): void {
  const guards = config.getGlobalGuards();
  const index = guards.findIndex((each) => each instanceof guard);
  if (index > 0) guards.unshift(...guards.splice(index, 1));
}
