import { BadRequestException, Inject, Injectable, NotFoundException, Optional } from '@nestjs/common';
import type { SessionEvent } from '@nest-session/core';
import { type DeadlineEvent, DeadlineEvents } from '@nest-session/deadlines';
import { type EventGroupsOf, SESSION_EVENT_GROUPS } from '@nest-session/core/internal';

/** What events are about. */
export const EVENT_SOURCES = ['sessions', 'deadlines'] as const;

export type EventSource = (typeof EVENT_SOURCES)[number];

/** The groups of a store. */
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

  /** Those that are there: all, or the one with a name. */
  which(of: EventSource | undefined): (readonly [source: EventSource, groups: SourceGroups])[] {
    return [...this.#groups].filter(([source]) => of === undefined || source === of);
  }

  /** @throws NotFoundException where the application has no such store */
  groupsOf(source: EventSource): SourceGroups {
    const groups = this.#groups.get(source);
    if (!groups) throw new NotFoundException(`This application has no groups for ${source}`);
    return groups;
  }

  /** The dead letter that an id names which was shown. @throws BadRequestException for another text */
  letterOf(shownId: string): { readonly source: EventSource; readonly id: string } {
    const [, name, id] = /^([a-z]+):([\w-]{1,60})$/.exec(shownId) ?? [];
    const source = EVENT_SOURCES.find((each) => each === name);
    if (!source || id === undefined) throw new BadRequestException('This is no id of a dead letter');
    return { source, id };
  }
}
