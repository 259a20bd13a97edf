import { Injectable } from '@nestjs/common';
import type { DeadlineEvent } from '../deadlines/deadline-event.js';
import type { DeadlineEvents } from '../deadlines/deadline.events.js';
import { EventGroups } from '@nest-session/redis-events/internal';

/** The groups that handle deadlines, and their dead letters. */
@Injectable()
export class RedisDeadlineEvents extends EventGroups<DeadlineEvent> implements DeadlineEvents {}
