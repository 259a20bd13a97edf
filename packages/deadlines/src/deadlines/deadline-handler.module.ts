import { Inject, Module } from '@nestjs/common';
import { DiscoveryModule, ModulesContainer } from '@nestjs/core';
import { startLast } from '@nest-session/core/internal';
import { DeadlineDispatcher } from './deadline.dispatcher.js';

/** Provides the dispatcher of deadlines to the modules of stores. */
@Module({ imports: [DiscoveryModule], providers: [DeadlineDispatcher], exports: [DeadlineDispatcher] })
export class DeadlineHandlerModule {
  constructor(@Inject(ModulesContainer) modules: ModulesContainer) {
    startLast(modules, DeadlineHandlerModule);
  }
}
