import {
  BadRequestException,
  ConflictException,
  Delete,
  Get,
  HttpCode,
  Inject,
  Injectable,
  NotFoundException,
  Optional,
  Query,
  Req,
} from '@nestjs/common';
import type { SessionEvent } from '@nest-session/core';
import { type DeadlineEvent, DeadlineEvents } from '@nest-session/deadlines';
import { type EventGroupInfo, type EventGroupsOf, SESSION_EVENT_GROUPS } from '@nest-session/core/internal';
import { Needs } from '../access/admin.guards.js';
import { AdminActions } from '../audit/admin-actions.js';
import { type Query as Parameters, requiredText, wordIn } from '../http/query.js';
import { shownInstant, shownSeconds } from '../http/shown.js';

export const EVENT_SOURCES = ['sessions', 'deadlines'] as const;

export type EventSource = (typeof EVENT_SOURCES)[number];

export type SourceGroups = EventGroupsOf<SessionEvent | DeadlineEvent>;

/** The groups of all stores that the application has. A store in memory has none for sessions. */
@Injectable()
export class EventSources {
  readonly #groups = new Map<EventSource, SourceGroups>();

  constructor(
    @Optional() @Inject(SESSION_EVENT_GROUPS) sessions?: EventGroupsOf<SessionEvent>,
    @Optional() @Inject(DeadlineEvents) deadlines?: DeadlineEvents,
  ) {
    if (sessions) this.#groups.set('sessions', sessions);
    if (deadlines) this.#groups.set('deadlines', deadlines);
  }

  which(of: EventSource | undefined): (readonly [source: EventSource, groups: SourceGroups])[] {
    return [...this.#groups].filter(([source]) => of === undefined || source === of);
  }

  groupsOf(source: EventSource): SourceGroups {
    const groups = this.#groups.get(source);
    if (!groups) throw new NotFoundException(`This application has no groups for ${source}`);
    return groups;
  }

  letterOf(shownId: string): { readonly source: EventSource; readonly id: string } {
    const [, name, id] = /^([a-z]+):([\w-]{1,60})$/.exec(shownId) ?? [];
    const source = EVENT_SOURCES.find((each) => each === name);
    if (!source || id === undefined) throw new BadRequestException('This is no id of a dead letter');
    return { source, id };
  }
}

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
    of,
    name,
    lag,
    oldestUnread: shownInstant(oldestUnread),
    pending,
    retrying,
    dropped,
    lostDeadLetters,
    /** `idle`: seconds since the instance last asked for events. */
    consumers: consumers.map((each) => ({ name: each.name, pending: each.pending, idle: shownSeconds(each.idle) })),
  };
}
