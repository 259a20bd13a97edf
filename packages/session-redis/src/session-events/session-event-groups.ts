import { Injectable } from '@nestjs/common';
import type { SessionEvent } from '@nest-session/core';
import type { DeadLetter, EventGroupInfo } from '@nest-session/core/internal';
import { EventGroups } from '@nest-session/redis-events/internal';

/** The state of a group: one of its instances handles each event. */
export type SessionEventGroupInfo = EventGroupInfo;

/** An event that a group could not handle, or a stray key or member that stood in the place of a session. */
export type SessionDeadLetter = DeadLetter<SessionEvent>;

/** Lists and changes the groups that handle session events, and their dead letters. Inject it. */
@Injectable()
export class SessionEventGroups extends EventGroups<SessionEvent> {}
