import type { IncomingMessage, ServerResponse } from 'node:http';
import { pipeline } from 'node:stream/promises';
import {
  Controller,
  Get,
  Inject,
  Injectable,
  type MiddlewareConsumer,
  Module,
  type NestModule,
  Param,
  Res,
  Sse,
  StreamableFile,
} from '@nestjs/common';
import { from, map } from 'rxjs';
import { Session, type SessionModuleOptions } from '@nest-session/core';
import { EndlessSources } from './endless.sources.js';

/** The common methods of both platforms' replies. Express has the response of Node.js itself, Fastify as `raw`. */
interface Reply {
  readonly raw?: ServerResponse;
  hijack?(): unknown;
  send(body: unknown): unknown;
}

/** One visit sets both to the same value. */
export const VISIT_ATTRIBUTES = ['visited-by', 'seen-by'] as const;

/**
 * Lists sessions by the mark of their last visit. Not as principals: a client that leaves would not get the new token.
 */
export const VISIT_INDEXES: SessionModuleOptions['indexes'] = {
  visitor: (session) => session.getAttribute<string>(VISIT_ATTRIBUTES[0]),
};

/** Handlers call it before they respond: it marks the session, and waits while the gate is closed. */
@Injectable()
export class Visits {
  waiting = 0;
  #door = Promise.resolve();
  #open = () => {};

  constructor(@Inject(EndlessSources) private readonly sources: EndlessSources) {}

  closeDoor(): void {
    this.#door = new Promise((resolve) => (this.#open = resolve));
  }

  openDoor(): void {
    this.#open();
  }

  async enter(session: Session, mark: string): Promise<void> {
    this.sources.garbage.watch('session', session);
    for (const name of VISIT_ATTRIBUTES) session.setAttribute(name, mark);
    this.waiting++;
    await this.#door;
    this.waiting--;
  }
}

/** Handlers that mark the session and respond, each in another way. */
@Controller()
class VisitController {
  constructor(
    @Inject(Visits) private readonly visits: Visits,
    @Inject(EndlessSources) private readonly sources: EndlessSources,
  ) {}

  @Get('returned/:mark')
  async returned(@Session() session: Session, @Param('mark') mark: string) {
    await this.visits.enter(session, mark);
    return { mark };
  }

  @Get('sent/:mark')
  async sent(@Session() session: Session, @Param('mark') mark: string, @Res() reply: Reply) {
    await this.visits.enter(session, mark);
    reply.send({ mark });
  }

  @Get('observable/:mark')
  observable(@Session() session: Session, @Param('mark') mark: string) {
    return from(this.visits.enter(session, mark)).pipe(map(() => ({ mark })));
  }

  @Get('file/:mark')
  async file(@Session() session: Session, @Param('mark') mark: string) {
    await this.visits.enter(session, mark);
    return new StreamableFile(this.sources.readable(mark));
  }

  @Get('generator/:mark')
  async *generator(@Session() session: Session, @Param('mark') mark: string) {
    await this.visits.enter(session, mark);
    yield* this.sources.generator(mark);
  }

  @Sse('sse/:mark')
  async sse(@Session() session: Session, @Param('mark') mark: string) {
    await this.visits.enter(session, mark);
    return this.sources.observable(mark);
  }

  @Get('pipeline/:mark')
  async pipeline(@Session() session: Session, @Param('mark') mark: string, @Res() reply: Reply) {
    await this.visits.enter(session, mark);
    // A client that disconnects is no error.
    await pipeline(this.sources.readable(mark), hijacked(reply)).catch(() => undefined);
  }

  @Get('pipe/:mark')
  async pipe(@Session() session: Session, @Param('mark') mark: string, @Res() reply: Reply) {
    await this.visits.enter(session, mark);
    this.sources.unattended().pipe(hijacked(reply));
  }

  @Get('writes/:mark')
  async writes(@Session() session: Session, @Param('mark') mark: string, @Res() reply: Reply) {
    await this.visits.enter(session, mark);
    await this.sources.writes(mark, hijacked(reply));
  }

  @Get('flood/:mark')
  async flood(@Session() session: Session, @Param('mark') mark: string, @Res() reply: Reply) {
    await this.visits.enter(session, mark);
    await this.sources.flood(hijacked(reply));
  }
}

@Module({ controllers: [VisitController], providers: [Visits, EndlessSources] })
export class VisitModule implements NestModule {
  constructor(@Inject(EndlessSources) private readonly sources: EndlessSources) {}

  configure(consumer: MiddlewareConsumer): void {
    const { garbage } = this.sources;
    const watch = (request: IncomingMessage, response: ServerResponse, next: () => void) => {
      garbage.watch('request', request);
      garbage.watch('response', response);
      next();
    };
    consumer.apply(watch).forRoutes('{*path}');
  }
}

function hijacked(reply: Reply): ServerResponse {
  reply.hijack?.();
  return reply.raw ?? (reply as unknown as ServerResponse);
}
