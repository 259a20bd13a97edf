import { Inject, Module, type Type } from '@nestjs/common';
import { DiscoveryModule, ModulesContainer } from '@nestjs/core';
import { logger } from '../logging/session.logger.js';
import { EventEmitterBridge } from './event-emitter.bridge.js';
import { SessionEventDispatcher } from './session-event.dispatcher.js';

@Module({
  imports: [DiscoveryModule],
  providers: [EventEmitterBridge, SessionEventDispatcher],
  exports: [SessionEventDispatcher],
})
export class SessionEventModule {
  constructor(@Inject(ModulesContainer) modules: ModulesContainer) {
    startLast(modules, SessionEventModule);
  }
}

/**
 * Nest starts the modules farthest from the root first and the root (distance 1) last, and stops them in reverse order.
 * At distance 0, what calls handlers becomes ready after all hooks of the application. At shutdown it waits for running
 * handlers before Nest stops the modules that they use. Call it in the constructor of the module.
 */
export function startLast(modules: ModulesContainer, own: Type): void {
  for (const module of modules.values()) {
    if (module.metatype !== own) continue;
    if (!('distance' in module)) logger.warn(`${own.name} ${STARTS_ANYWHERE}`);
    module.distance = 0;
  }
}

const STARTS_ANYWHERE =
  'cannot start last in this version of NestJS: handlers of events may be called before all hooks of the application, ' +
  'and still run while it shuts down. Update the packages of @nest-session';
