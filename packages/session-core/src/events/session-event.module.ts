import { Inject, Module } from '@nestjs/common';
import { DiscoveryModule, ModulesContainer } from '@nestjs/core';
import { EventEmitterBridge } from './event-emitter.bridge.js';
import { SessionEventDispatcher } from './session-event.dispatcher.js';
import { SessionEventExplorer } from './session-event.explorer.js';

/** Provides the dispatcher of session events to the modules that store sessions. */
@Module({
  imports: [DiscoveryModule],
  providers: [SessionEventExplorer, EventEmitterBridge, SessionEventDispatcher],
  exports: [SessionEventDispatcher],
})
export class SessionEventModule {
  constructor(@Inject(ModulesContainer) modules: ModulesContainer) {
    // Nest starts the modules farthest from the root first, the root (distance 1) last, and ends them the other way
    // round. Beyond the root, we hear that the application is bootstrapped when all of its own hooks have run, and
    // wait for the running handlers while what they use is still there.
    for (const module of modules.values()) if (module.metatype === SessionEventModule) module.distance = 0;
  }
}
