import { Delete, Get, HttpCode, Inject, NotFoundException, Param, Query, Req } from '@nestjs/common';
import { Needs } from '../access/needs.decorator.js';
import { AdminActions } from '../audit/admin-actions.js';
import { limitIn, numberIn, type Query as Parameters, requiredText, textIn } from '../http/query.js';
import { readablePrincipal, type ShownSessionDetails } from './shown-session.js';
import { NO_SESSION, type SessionPage, UserSessions } from './user-sessions.js';

// A page costs the reading of all before it.
const FURTHEST = 100_000;

/** The sessions of users. */
export class SessionsController {
  constructor(
    @Inject(UserSessions) private readonly sessions: UserSessions,
    @Inject(AdminActions) private readonly actions: AdminActions,
  ) {}

  @Get('sessions')
  list(@Req() request: object, @Query() query: Parameters): Promise<SessionPage> {
    const offset = numberIn(query, 'offset', 0, { atLeast: 0, atMost: FURTHEST });
    return this.sessions.list(request, requiredText(query, 'username'), { offset, limit: limitIn(query) });
  }

  @Get('sessions/:id')
  async show(
    @Req() request: object,
    @Param('id') id: string,
    @Query() query: Parameters,
  ): Promise<ShownSessionDetails> {
    return this.sessions.show(request, await this.sessions.find(id, textIn(query, 'username')));
  }

  @Delete('sessions/:id')
  @HttpCode(204)
  @Needs('end')
  async end(@Req() request: object, @Param('id') id: string, @Query() query: Parameters): Promise<void> {
    const username = textIn(query, 'username');
    const found = await this.sessions.find(id, username);
    const action = {
      action: 'end-session',
      sessionId: found.id,
      shownId: found.shownId,
      principalName: readablePrincipal(found),
    } as const;
    const isEnded = await this.actions.run(
      request,
      action,
      () => this.sessions.end(found, username),
      (done) => done,
    );
    if (!isEnded) throw new NotFoundException(NO_SESSION);
  }

  @Delete('sessions')
  @Needs('end')
  async endAll(@Req() request: object, @Query() query: Parameters): Promise<{ ended: number }> {
    const principalName = requiredText(query, 'username');
    const ended = await this.actions.run(
      request,
      { action: 'end-sessions', principalName },
      () => this.sessions.endAll(principalName),
      (count) => count > 0,
    );
    return { ended };
  }
}
