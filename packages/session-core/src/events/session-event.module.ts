import { Inject, Module } from '@nestjs/common';
import { DiscoveryModule, ModulesContainer } from '@nestjs/core';
import { startLast } from '../discovery/start-last.js';
import { EventEmitterBridge } from './event-emitter.bridge.js';
import { SessionEventDispatcher } from './session-event.dispatcher.js';

/** Provides the dispatcher of session events to the modules of stores. */
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
