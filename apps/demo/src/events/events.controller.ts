import { Controller, type MessageEvent, Sse } from '@nestjs/common';
import { map, type Observable } from 'rxjs';
import { EventFeed } from './event.feed.js';

@Controller('events')
export class EventsController {
  constructor(private readonly feed: EventFeed) {}

  /** Server-sent events. The `exclude` option keeps them from having, and so from renewing, a session. */
  @Sse()
  stream(): Observable<MessageEvent> {
    return this.feed.entries.pipe(map((entry) => ({ data: entry })));
  }
}
