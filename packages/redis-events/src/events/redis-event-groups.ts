import { Injectable } from '@nestjs/common';
import type { DeadLetter } from '@nest-session/core/internal';
import { EventGroups } from '../delivery/event-groups.js';
import type { RedisEvent } from './redis-event.js';

/** An event that a group could not handle. */
export type RedisEventDeadLetter = DeadLetter<RedisEvent>;

/** The groups that handle events, and their dead letters. Inject it. */
@Injectable()
export class RedisEventGroups extends EventGroups<RedisEvent> {}
