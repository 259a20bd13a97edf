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
import { Needs } from '../access/needs.decorator.js';
import { AdminActions } from '../audit/admin-actions.js';
import { type Query as Parameters, requiredText, wordIn } from '../http/query.js';
import { shownInstant, shownSeconds } from '../http/shown-times.js';
import { EVENT_SOURCES, type EventSource, EventSources } from './event-sources.js';

/** A group as it is shown. Numbers are of `EventGroupInfo`. */
export interface ShownGroup extends Pick<
  EventGroupInfo,
  'name' | 'lag' | 'pending' | 'retrying' | 'dropped' | 'lostDeadLetters'
> {
  /** What its events are about. */
  readonly of: EventSource;
  /** When the oldest event was recorded that it has not read. */
  readonly oldestUnread: string | null;
  /** `idle`: seconds since the instance last asked for events. */
  readonly consumers: readonly { readonly name: string; readonly pending: number; readonly idle: number }[];
}

/** The groups that handle events. */
export class GroupsController {
  constructor(
    @Inject(EventSources) private readonly sources: EventSources,
    @Inject(AdminActions) private readonly actions: AdminActions,
  ) {}

  @Get('groups')
  async list(@Query() query: Parameters): Promise<{ groups: ShownGroup[] }> {
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
    const target = `group ${JSON.stringify(name)} of ${of}`;
    const reply = await this.actions.run(
      request,
      { action: 'remove-group', target },
      () => groups.remove(name),
      (outcome) => outcome === 'removed',
    );
    if (reply === 'live') throw new ConflictException('An instance of this group is alive: stop it first');
    if (reply === 'unknown') throw new NotFoundException('There is no such group');
  }
}

function showGroup(of: EventSource, group: EventGroupInfo): ShownGroup {
  const { name, lag, pending, retrying, dropped, lostDeadLetters, oldestUnread, consumers } = group;
  return {
    of,
    name,
    lag,
    oldestUnread: shownInstant(oldestUnread),
    pending,
    retrying,
    dropped,
    lostDeadLetters,
    consumers: consumers.map((each) => ({ name: each.name, pending: each.pending, idle: shownSeconds(each.idle) })),
  };
}
