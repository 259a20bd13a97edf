import { Controller, type MessageEvent, NotFoundException, Sse } from '@nestjs/common';
import { KeepSessionIdle, Session } from '@nest-session/core';
import { map, type Observable } from 'rxjs';
import { EventFeed } from './event.feed.js';

@Controller('events')
export class EventsController {
  constructor(private readonly feed: EventFeed) {}

  /** Server-sent events of the visitor's own session. Watching it does not renew it. */
  @Sse()
  @KeepSessionIdle()
  stream(@Session() { isNew, id }: Session): Observable<MessageEvent> {
    if (isNew) throw new NotFoundException('There is no session to watch');
    return this.feed.of(id).pipe(map((entry) => ({ data: entry })));
  }
}
