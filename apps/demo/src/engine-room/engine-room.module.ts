import { Global, Module } from '@nestjs/common';
import { DeadlineInspector } from './deadline.inspector.js';
import { DemoRedis } from './demo.redis.js';
import { EventsController } from './events.controller.js';
import { FaultsController } from './faults.controller.js';
import { Faults } from './faults.js';
import { Journal } from './journal.js';
import { SessionInspector } from './session.inspector.js';

/** The part of the page beside the shop. Your application needs none of it. */
@Global()
@Module({
  controllers: [EventsController, FaultsController],
  providers: [DeadlineInspector, DemoRedis, Faults, Journal, SessionInspector],
  exports: [DemoRedis, Faults, Journal],
})
export class EngineRoomModule {}
