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
import { rightsOf } from '../access/admin.guards.js';
import { VERSION } from '../configuration/version.js';
import { WaitingDeadlines } from '../deadlines/deadlines.controller.js';
import { EventSources } from '../groups/groups.controllers.js';
import { shownSeconds } from '../http/shown.js';
import { UserSessions } from '../sessions/sessions.controller.js';

// The age from which on an unread event is late, as in `SessionHealthIndicator`.
const LATE = 300_000;

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
  async show(@Req() request: object) {
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

  async #sessions() {
    if (!this.userSessions.areThere) return null;
    const [store, health] = await Promise.all([this.#sessionStore(), this.sessionHealth?.look(LATE)]);
    const reasons = (health?.data['reasons'] ?? []) as readonly string[];
    return {
      areIndexed: this.userSessions.areIndexed,
      areNamed: this.userSessions.areNamed,
      indexes: this.userSessions.indexes,
      store,
      health: health ? { state: health.state, reasons } : null,
    };
  }

  /** Null where the store does not tell and, as its health says then, where it fails. */
  async #sessionStore() {
    const reader = this.sessionReader;
    const reading = await reader?.read().catch(() => undefined);
    if (!reader || !reading) return null;
    return {
      ...showStore(reader, reading.groups),
      /** How many can end by themselves and have not. */
      count: reading.sessions,
      /** Seconds since the end of the first one was due that nobody has noticed. */
      overdue: shownSeconds(reading.overdue),
      /** Whether Redis announces expired sessions to this instance. */
      notifications: reader.notifications,
    };
  }

  async #deadlines() {
    if (!this.waiting.areThere) return null;
    const reader = this.deadlineReader;
    if (!reader) return { waiting: await this.waiting.names().catch(() => null), store: null };
    const reading = await reader.read().catch(() => undefined);
    if (!reading) return { waiting: null, store: null };
    const waiting = reading.waiting.map((each) => ({ ...each, overdue: shownSeconds(each.overdue) }));
    return { waiting, store: showStore(reader, reading.groups) };
  }
}

/** What a store tells of itself: the group of this instance, and how long ago it saw every partition cleaned up. */
function showStore({ namespace, group, cleanupAge }: Omit<StoreReader, 'read'>, groups: readonly GroupReading[]) {
  // `lag` counts at most 100 events in each partition. An age of 0: it has read all.
  const shown = groups.map((each) => ({ ...each, oldestUnreadAge: shownSeconds(each.oldestUnreadAge) }));
  return { namespace, group, cleanupAge: shownSeconds(cleanupAge), groups: shown };
}
