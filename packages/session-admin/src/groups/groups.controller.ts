import {
  BadRequestException,
  ConflictException,
  Delete,
  Get,
  HttpCode,
  Inject,
  NotFoundException,
  Query,
  Req,
} from '@nestjs/common';
import type { EventGroupInfo } from '@nest-session/core/internal';
import { Needs } from '../access/access.guard.js';
import { AdminActions } from '../audit/admin-actions.js';
import { type Query as Parameters, requiredText, wordIn } from '../http/query.js';
import { shownInstant, shownSeconds } from '../http/shown.js';
import { EVENT_SOURCES, type EventSource, EventSources } from './event-sources.js';

/** The groups that handle events. */
export class GroupsController {
  constructor(
    @Inject(EventSources) private readonly sources: EventSources,
    @Inject(AdminActions) private readonly actions: AdminActions,
  ) {}

  @Get('groups')
  async list(@Query() query: Parameters) {
    const of = wordIn(query, 'of', EVENT_SOURCES);
    const lists = this.sources.which(of).map(async ([source, groups]) => {
      return (await groups.list()).map((group) => showGroup(source, group));
    });
    return { groups: (await Promise.all(lists)).flat() };
  }

  @Delete('groups')
  @HttpCode(204)
  @Needs('removeGroup')
  async remove(@Req() request: object, @Query() query: Parameters): Promise<void> {
    const name = requiredText(query, 'name');
    const of = wordIn(query, 'of', EVENT_SOURCES);
    if (!of) throw new BadRequestException('The parameter of is missing');
    const groups = this.sources.groupsOf(of);
    const action = { action: 'remove-group', target: `group ${JSON.stringify(name)} of ${of}` } as const;
    const reply = await this.actions.run(request, action, () => groups.remove(name));
    if (reply === 'live') throw new ConflictException('An instance of this group is alive: stop it first');
    if (reply === 'unknown') throw new NotFoundException('There is no such group');
  }
}

function showGroup(of: EventSource, group: EventGroupInfo) {
  const { name, lag, pending, retrying, dropped, lostDeadLetters, oldestUnread, consumers } = group;
  return {
    /** What its events are about. */
    of,
    name,
    lag,
    /** When the oldest event was recorded that it has not read. */
    oldestUnread: shownInstant(oldestUnread),
    pending,
    retrying,
    dropped,
    lostDeadLetters,
    /** `idle`: seconds since the instance last asked for events. */
    consumers: consumers.map((each) => ({ name: each.name, pending: each.pending, idle: shownSeconds(each.idle) })),
  };
}
