import { Module } from '@nestjs/common';
import { EventsController } from './events.controller.js';
import { EventFeed } from './event.feed.js';
import { SessionLog } from './session.log.js';

@Module({ controllers: [EventsController], providers: [EventFeed, SessionLog] })
export class EventsModule {}
