import { Injectable } from '@nestjs/common';
import type { DeadlineEvent, DeadlineEvents } from '@nest-session/core/deadlines';
import { EventGroups } from '@nest-session/redis-events/internal';

/** The groups that handle deadlines, and their dead letters. */
@Injectable()
export class RedisDeadlineEvents extends EventGroups<DeadlineEvent> implements DeadlineEvents {}
