import { Delete, Get, HttpCode, Inject, NotFoundException, Param, Query, Req } from '@nestjs/common';
import { Needs } from '../access/access.guard.js';
import { AdminActions } from '../audit/admin-actions.js';
import { limitIn, numberIn, type Query as Parameters, requiredText, textIn } from '../http/query.js';
import { NO_SESSION, readablePrincipal, UserSessions } from './user-sessions.js';

// A page costs the reading of all before it.
const FURTHEST = 100_000;

/** The sessions of users. */
export class SessionsController {
  constructor(
    @Inject(UserSessions) private readonly sessions: UserSessions,
    @Inject(AdminActions) private readonly actions: AdminActions,
  ) {}

  @Get('sessions')
  list(@Req() request: object, @Query() query: Parameters) {
    const offset = numberIn(query, 'offset', 0, { atLeast: 0, atMost: FURTHEST });
    return this.sessions.list(request, requiredText(query, 'username'), offset, limitIn(query));
  }

  @Get('sessions/:id')
  async show(@Req() request: object, @Param('id') id: string, @Query() query: Parameters) {
    return this.sessions.show(request, await this.sessions.find(id, textIn(query, 'username')));
  }

  @Delete('sessions/:id')
  @HttpCode(204)
  @Needs('end')
  async end(@Req() request: object, @Param('id') id: string, @Query() query: Parameters): Promise<void> {
    const username = textIn(query, 'username');
    const found = await this.sessions.find(id, username);
    const { id: sessionId, shownId } = found;
    const action = { action: 'end-session', sessionId, shownId, principalName: readablePrincipal(found) } as const;
    const isEnded = await this.actions.run(request, action, () => this.sessions.end(found, username));
    if (!isEnded) throw new NotFoundException(NO_SESSION);
  }

  @Delete('sessions')
  @Needs('end')
  async endAll(@Req() request: object, @Query() query: Parameters): Promise<{ ended: number }> {
    const principalName = requiredText(query, 'username');
    const action = { action: 'end-sessions', principalName } as const;
    return { ended: await this.actions.run(request, action, () => this.sessions.endAll(principalName)) };
  }
}
