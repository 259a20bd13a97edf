import { Injectable } from '@nestjs/common';
import type { DeadlineEvent, DeadlineEvents } from '@nest-session/core/deadlines';
import { EventGroups } from '../delivery/event-groups.js';

/** The groups that handle deadlines, and their dead letters. */
@Injectable()
export class RedisDeadlineEvents extends EventGroups<DeadlineEvent> implements DeadlineEvents {}
