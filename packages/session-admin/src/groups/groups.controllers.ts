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
  Param,
  Post,
  Query,
  Req,
} from '@nestjs/common';
import type { SessionEvent } from '@nest-session/core';
import { type DeadlineEvent, DeadlineEvents } from '@nest-session/deadlines';
import {
  type DeadLetter,
  type EventGroupInfo,
  type EventGroupsOf,
  refusalBody,
  SESSION_EVENT_GROUPS,
} from '@nest-session/core/internal';
import { type ResolvedSessionOptions, SESSION_OPTIONS } from '@nest-session/core/store';
import { Needs } from '../access/admin.guards.js';
import { type AdminAction, AdminActions } from '../audit/admin-actions.js';
import { limitIn, type Query as Parameters, requiredText, textIn, wordIn } from '../http/query.js';
import { shownInstant, shownSeconds, shownValue } from '../http/shown.js';
import { ADMIN_OPTIONS, type ResolvedAdminOptions } from '../configuration/session-admin.options.js';

const EVENT_SOURCES = ['sessions', 'deadlines'] as const;

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
    if (reply === 'live') throw new ConflictException(refusalBody('group-alive'));
    if (reply === 'unknown') throw new NotFoundException('There is no such group');
  }
}

function showGroup(of: EventSource, group: EventGroupInfo) {
  // `idle`: seconds since the instance last asked for events.
  const consumers = group.consumers.map((each) => ({ ...each, idle: shownSeconds(each.idle) }));
  return { of, ...group, oldestUnread: shownInstant(group.oldestUnread), consumers };
}

export class DeadLettersController {
  constructor(
    @Inject(EventSources) private readonly sources: EventSources,
    @Inject(AdminActions) private readonly actions: AdminActions,
    @Inject(ADMIN_OPTIONS) private readonly options: ResolvedAdminOptions,
    @Optional() @Inject(SESSION_OPTIONS) private readonly sessionOptions?: Pick<ResolvedSessionOptions, 'ids'>,
  ) {}

  @Get('dead-letters')
  async list(@Query() query: Parameters) {
    const [of, after, limit] = [wordIn(query, 'of', EVENT_SOURCES), textIn(query, 'after'), limitIn(query)];
    if (after !== undefined && this.sources.letterOf(after).source !== of)
      throw new BadRequestException('The parameter of must name the source of the dead letter in after');
    const pages = await Promise.all(this.sources.which(of).map((source) => this.#page(source, after, query, limit)));
    return {
      deadLetters: pages
        .flatMap(({ letters }) => letters)
        .toSorted((one, other) => one.letter.at - other.letter.at)
        .map(({ source, letter }) => this.#show(source, letter)),
      /** The `of` and `after` of the next page, for each store that has one. */
      next: pages.flatMap(({ next }) => next),
    };
  }

  @Post('dead-letters/replay')
  @HttpCode(200)
  @Needs('replay')
  async replayAll(@Req() request: object, @Query() query: Parameters): Promise<{ replayed: number }> {
    return { replayed: await this.#all(request, query, 'replay-all', (groups, filter) => groups.replayAll(filter)) };
  }

  @Delete('dead-letters')
  @Needs('discard')
  async discardAll(@Req() request: object, @Query() query: Parameters): Promise<{ discarded: number }> {
    return { discarded: await this.#all(request, query, 'discard-all', (groups, filter) => groups.discardAll(filter)) };
  }

  @Post('dead-letters/:id/replay')
  @HttpCode(204)
  @Needs('replay')
  async replay(@Req() request: object, @Param('id') shownId: string): Promise<void> {
    const { source, id } = this.sources.letterOf(shownId);
    const groups = this.sources.groupsOf(source);
    const action = { action: 'replay', target: `dead letter ${shownId}` } as const;
    const reply = await this.actions.run(request, action, () => groups.replay(id));
    if (reply === 'gone') throw new NotFoundException(GONE);
    if (reply !== 'replayed') {
      throw new ConflictException(refusalBody(reply === 'orphaned' ? 'dead-letter-orphaned' : 'dead-letter-foreign'));
    }
  }

  @Delete('dead-letters/:id')
  @HttpCode(204)
  @Needs('discard')
  async discard(@Req() request: object, @Param('id') shownId: string): Promise<void> {
    const { source, id } = this.sources.letterOf(shownId);
    const groups = this.sources.groupsOf(source);
    const action = { action: 'discard', target: `dead letter ${shownId}` } as const;
    if (!(await this.actions.run(request, action, () => groups.discard(id)))) throw new NotFoundException(GONE);
  }

  async #page(
    [source, groups]: readonly [EventSource, SourceGroups],
    after: string | undefined,
    query: Parameters,
    limit: number,
  ) {
    const from = after === undefined ? {} : { after: this.sources.letterOf(after).id };
    // One more tells whether there is another page.
    const letters = await groups
      .deadLetters({ ...groupIn(query), ...from, limit: limit + 1 })
      // A store refuses what is no id with a RangeError.
      .catch((error: unknown) => {
        throw error instanceof RangeError ? new BadRequestException(NO_ID) : error;
      });
    const page = letters.slice(0, limit).map((letter) => ({ source, letter }));
    const next = letters.length > limit ? [{ of: source, after: `${source}:${page.at(-1)!.letter.id}` }] : [];
    return { letters: page, next };
  }

  async #all(
    request: object,
    query: Parameters,
    action: AdminAction['action'],
    act: (groups: SourceGroups, filter: { readonly group?: string }) => Promise<number>,
  ): Promise<number> {
    const filter = groupIn(query);
    let count = 0;
    for (const [source, groups] of this.sources.which(wordIn(query, 'of', EVENT_SOURCES))) {
      const of = filter.group === undefined ? '' : ` and group ${JSON.stringify(filter.group)}`;
      const all = { action, target: `dead letters of ${source}${of}` };
      count += await this.actions.run(request, all, () => act(groups, filter));
    }
    return count;
  }

  #show(of: EventSource, letter: DeadLetter<SessionEvent | DeadlineEvent>) {
    const { id, at, reason, group, handler, attempts, succeeded, event, omittedBytes } = letter;
    return {
      /** With what its event is about before it: unique. */
      id: `${of}:${id}`,
      of,
      time: shownInstant(at),
      reason,
      group: group ?? null,
      handler: handler ?? null,
      attempts,
      succeeded,
      /** Bytes of its data that were too large to keep with it. */
      omittedBytes: omittedBytes ?? null,
      /** Whether a handler could take it again. Stray keys and members can only be discarded. */
      canBeReplayed: group !== undefined,
      /** Undefined for a stray key or member, and for an event of a newer version. */
      ...(event && { event: this.#showEvent(event) }),
    };
  }

  #showEvent(event: SessionEvent | DeadlineEvent) {
    if ('dueAt' in event) {
      const { id, name, key, dueAt } = event;
      const { data } = this.options;
      // The data is decoded when it is read.
      const shown = shownValue(data && (() => data(name, event.data)));
      return { type: 'deadline', id, name, key, dueTime: shownInstant(dueAt), ...shown };
    }
    const { type, sessionId, at } = event;
    const shownId = this.sessionOptions?.ids.shown(sessionId) ?? sessionId;
    return { type, sessionId: shownId, principalName: principalIn(event), time: shownInstant(at) };
  }
}

function groupIn(query: Parameters): { readonly group?: string } {
  const group = textIn(query, 'group');
  return group === undefined ? {} : { group };
}

const NO_ID = 'The parameter after is no id of a dead letter';
const GONE = 'There is no such dead letter: somebody may have replayed or discarded it';

/** The name cannot be read without its key. */
function principalIn(event: SessionEvent): string | null {
  try {
    return event.principalName ?? null;
  } catch {
    return null;
  }
}
