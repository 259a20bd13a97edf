import { Inject, Module } from '@nestjs/common';
import { DiscoveryModule, ModulesContainer } from '@nestjs/core';
import { EventEmitterBridge } from './event-emitter.bridge.js';
import { SessionEventDispatcher } from './session-event.dispatcher.js';
import { SessionEventExplorer } from './session-event.explorer.js';

/** Provides the dispatcher of session events to the modules of stores. */
@Module({
  imports: [DiscoveryModule],
  providers: [SessionEventExplorer, EventEmitterBridge, SessionEventDispatcher],
  exports: [SessionEventDispatcher],
})
export class SessionEventModule {
  constructor(@Inject(ModulesContainer) modules: ModulesContainer) {
    // Nest starts the modules farthest from the root first and the root (distance 1) last, and stops them in reverse
    // order. At distance 0 the dispatcher becomes ready after all hooks of the application. At shutdown it waits for
    // running handlers before Nest stops the modules that they use.
    for (const module of modules.values()) if (module.metatype === SessionEventModule) module.distance = 0;
  }
}
