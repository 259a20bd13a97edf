import { Global, Module } from '@nestjs/common';
import { DemoRedis } from './demo.redis.js';
import { EventsController } from './events.controller.js';
import { Journal } from './journal.js';
import { SessionInspector } from './session.inspector.js';
import { SessionRecorder } from './session.recorder.js';

@Global()
@Module({
  controllers: [EventsController],
  providers: [DemoRedis, Journal, SessionInspector, SessionRecorder],
  exports: [DemoRedis, Journal],
})
export class EngineRoomModule {}
