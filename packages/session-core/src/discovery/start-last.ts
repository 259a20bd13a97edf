import type { Type } from '@nestjs/common';
import type { ModulesContainer } from '@nestjs/core';

/**
 * Nest starts the modules farthest from the root first and the root (distance 1) last, and stops them in reverse order.
 * At distance 0, what calls handlers becomes ready after all hooks of the application. At shutdown it waits for running
 * handlers before Nest stops the modules that they use. Call it in the constructor of the module.
 */
export function startLast(modules: ModulesContainer, own: Type): void {
  for (const module of modules.values()) if (module.metatype === own) module.distance = 0;
}
