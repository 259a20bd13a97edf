import { Get, Inject, Optional, Req } from '@nestjs/common';
import { KeepSessionIdle } from '@nest-session/core';
import {
  DEADLINE_READER,
  type DeadlineReading,
  type GroupReading,
  type HealthLook,
  requestOf,
  requestSessionOf,
  SESSION_HEALTH,
  SESSION_READER,
  type SessionReader,
  type StoreReader,
} from '@nest-session/core/internal';
import { rightsOf } from '../access/access.guard.js';
import type { AdminRight } from '../configuration/admin-rights.js';
import { VERSION } from '../configuration/version.js';
import { type ShownDeadlineName, WaitingDeadlines } from '../deadlines/waiting-deadlines.js';
import { EventSources } from '../groups/event-sources.js';
import { shownSeconds } from '../http/shown-times.js';
import { UserSessions } from '../sessions/user-sessions.js';

// The age from which on an unread event is late, as in `SessionHealthIndicator`.
const LATE = 300_000;

/** A group, as a look at the whole store knows it. `lag` counts at most 100 events in each partition. */
interface ShownGroupState extends Pick<
  GroupReading,
  'name' | 'lag' | 'pending' | 'retrying' | 'dropped' | 'deadLetters' | 'lostDeadLetters'
> {
  /** Seconds; 0: it has read all. */
  readonly oldestUnreadAge: number;
}

/** What a store tells of itself. What it cannot tell is null. */
interface ShownStore {
  readonly namespace: string;
  /** The group of this instance. */
  readonly group: string;
  /** Seconds since this instance saw every partition cleaned up. */
  readonly cleanupAge: number;
  readonly groups: readonly ShownGroupState[];
}

/** The state of everything at a glance. */
export interface Overview {
  /** What whoever asks may do. */
  readonly rights: Readonly<Record<AdminRight, boolean>>;
  /** The user of their session. */
  readonly username: string | null;
  /** Null without sessions. */
  readonly sessions: {
    /** Whether sessions can be found by their user. */
    readonly areIndexed: boolean;
    /** Null where the store does not tell. */
    readonly store:
      | (ShownStore & {
          /** How many can end by themselves and have not. */
          readonly count: number;
          /** Seconds since the end of the first one was due that nobody has noticed. */
          readonly overdue: number;
          /** Whether Redis announces expired sessions to this instance. */
          readonly notifications: string;
        })
      | null;
    readonly health: { readonly state: 'up' | 'degraded' | 'down'; readonly reasons: readonly string[] } | null;
  } | null;
  /** Null without deadlines. `waiting` is null where the store fails. */
  readonly deadlines: {
    readonly waiting: readonly ShownDeadlineName[] | null;
    readonly store: ShownStore | null;
  } | null;
  /** The stores that have groups. */
  readonly groupsOf: readonly string[];
  readonly versions: { readonly nestSession: string; readonly node: string };
}

/** The state of everything at a glance. */
export class OverviewController {
  constructor(
    @Inject(UserSessions) private readonly userSessions: UserSessions,
    @Inject(WaitingDeadlines) private readonly waiting: WaitingDeadlines,
    @Inject(EventSources) private readonly sources: EventSources,
    @Optional() @Inject(SESSION_READER) private readonly sessionReader?: SessionReader,
    @Optional() @Inject(SESSION_HEALTH) private readonly sessionHealth?: HealthLook,
    @Optional() @Inject(DEADLINE_READER) private readonly deadlineReader?: StoreReader<DeadlineReading>,
  ) {}

  // Somebody may ask for it again and again: that is no use of the session.
  @Get('overview')
  @KeepSessionIdle()
  async show(@Req() request: object): Promise<Overview> {
    const [sessions, deadlines] = await Promise.all([this.#sessions(), this.#deadlines()]);
    return {
      rights: rightsOf(request),
      username: requestSessionOf(requestOf(request))?.existing?.principalName ?? null,
      sessions,
      deadlines,
      groupsOf: this.sources.which(undefined).map(([source]) => source),
      versions: { nestSession: VERSION, node: process.version },
    };
  }

  async #sessions(): Promise<Overview['sessions']> {
    if (!this.userSessions.areThere) return null;
    const [store, health] = await Promise.all([this.#sessionStore(), this.sessionHealth?.look(LATE)]);
    const reasons = (health?.data['reasons'] ?? []) as readonly string[];
    return {
      areIndexed: this.userSessions.areIndexed,
      store,
      health: health ? { state: health.state, reasons } : null,
    };
  }

  /** Null as well where the store fails: its health says so. */
  async #sessionStore(): Promise<NonNullable<Overview['sessions']>['store']> {
    const reader = this.sessionReader;
    const reading = await reader?.read().catch(() => undefined);
    if (!reader || !reading) return null;
    const { sessions: count, overdue } = reading;
    return {
      ...showStore(reader, reading.groups),
      count,
      overdue: shownSeconds(overdue),
      notifications: reader.notifications,
    };
  }

  async #deadlines(): Promise<Overview['deadlines']> {
    if (!this.waiting.areThere) return null;
    const reader = this.deadlineReader;
    if (!reader) return { waiting: await this.waiting.names().catch(() => null), store: null };
    const reading = await reader.read().catch(() => undefined);
    if (!reading) return { waiting: null, store: null };
    const waiting = reading.waiting.map((each) => ({ ...each, overdue: shownSeconds(each.overdue) }));
    return { waiting, store: showStore(reader, reading.groups) };
  }
}

function showStore(reader: Omit<StoreReader, 'read'>, groups: readonly GroupReading[]): ShownStore {
  const { namespace, group, cleanupAge } = reader;
  return { namespace, group, cleanupAge: shownSeconds(cleanupAge), groups: groups.map(showGroup) };
}

function showGroup(reading: GroupReading): ShownGroupState {
  const { name, lag, pending, retrying, dropped, deadLetters, lostDeadLetters, oldestUnreadAge } = reading;
  const age = shownSeconds(oldestUnreadAge);
  return { name, lag, oldestUnreadAge: age, pending, retrying, dropped, deadLetters, lostDeadLetters };
}
