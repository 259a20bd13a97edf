import { createHash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { Controller, type MessageEvent, NotFoundException, Req, Sse } from '@nestjs/common';
import { SessionIdResolver } from '@nest-session/core';
import { exhaustMap, last, map, merge, type Observable, share, takeUntil, timer } from 'rxjs';
import { Journal } from './journal.js';
import { SessionInspector } from './session.inspector.js';

const LOOK_INTERVAL = 1000;

@Controller('events')
export class EventsController {
  constructor(
    private readonly journal: Journal,
    private readonly inspector: SessionInspector,
    private readonly resolver: SessionIdResolver,
  ) {}

  /**
   * Sends server-sent events about the session whose token the browser has: what happened to it, even after its end,
   * and its keys in Redis. It does not load the session, so watching does not renew it.
   */
  @Sse()
  stream(@Req() request: IncomingMessage): Observable<MessageEvent> {
    const [token] = this.resolver.resolve(request);
    if (!token) throw new NotFoundException('There is no session to watch');
    // The same value as session.id.
    const id = createHash('sha256').update(token.reveal()).digest('base64url');
    const entries = this.journal.of(id).pipe(share());
    const looks = merge(entries, timer(0, LOOK_INTERVAL)).pipe(
      takeUntil(entries.pipe(last(undefined, null))),
      exhaustMap(() => this.inspector.look(id).catch(() => undefined)),
      map((room) => ({ id, type: 'room', now: Date.now(), room })),
    );
    return merge(entries, looks).pipe(map((data) => ({ data })));
  }
}
