import { randomUUID } from 'node:crypto';
import { Inject, Injectable, Optional } from '@nestjs/common';
import { type DeadLetter, SESSION_TELEMETRY, type SessionTelemetry, writeData } from '@nest-session/core/internal';
import { RequestConnection } from '../connection/request.connection.js';
import { REQUEST_STREAM_SCRIPTS } from '../configuration/event-rules.js';
import { Partitions } from '../partitions/partitions.js';
import type { ScriptsOn } from '../scripts/define-scripts.js';
import type { EventStreamScripts } from '../scripts/event-stream.scripts.js';
import { type RedisEvent, type RedisEventData, RedisEventDataError, typeProblem } from './redis-event.js';
import { REDIS_EVENTS_OPTIONS, type ResolvedRedisEventsOptions } from '../configuration/redis-events.options.js';
import { EventGroups } from '../delivery/event-groups.js';

/** As many bytes as a dead letter keeps of other data. */
const MOST_BYTES = 262_144;

/** Records events, which reach the `@OnRedisEvent` methods of every group. Inject it. */
@Injectable()
export class RedisEvents {
  /** @internal Inject it. */
  constructor(
    @Inject(RequestConnection) private readonly connection: RequestConnection,
    @Inject(REQUEST_STREAM_SCRIPTS) private readonly scripts: ScriptsOn<EventStreamScripts>,
    @Inject(Partitions) private readonly partitions: Partitions,
    @Inject(REDIS_EVENTS_OPTIONS) private readonly options: Pick<ResolvedRedisEventsOptions, 'serializer'>,
    @Optional() @Inject(SESSION_TELEMETRY) private readonly telemetry?: Pick<SessionTelemetry, 'traceparent'>,
  ) {}

  /**
   * Records an event, in one command, and resolves to `event.id` of the handlers. A call that rejects with a
   * SessionStoreError may have recorded it all the same. @throws TypeError for what can be no type; RedisEventDataError
   * when the data cannot be stored as they are, or take more than 256 KiB
   */
  async record<Type extends string>(
    type: Type,
    ...[data]: undefined extends RedisEventData<Type> ? [data?: RedisEventData<Type>] : [data: RedisEventData<Type>]
  ): Promise<string> {
    const problem = typeProblem(type);
    if (problem !== undefined) throw new TypeError(`record() ${problem}`);
    const text = writeData(type, data, this.options.serializer, RedisEventDataError);
    if (text !== undefined && Buffer.byteLength(text) > MOST_BYTES) throw new RedisEventDataError(type, TOO_LARGE);
    const id = randomUUID();
    const keys = this.partitions.of(id);
    const traceparent = this.telemetry?.traceparent();
    const fields = ['id', id, ...optional('value', text), ...optional('traceparent', traceparent)];
    await this.connection.write((client) => this.scripts(client).record(keys, type, fields), keys.prefix);
    return id;
  }
}

const TOO_LARGE = `take more than ${MOST_BYTES} bytes: keep such data elsewhere, and record their key`;

function optional(name: string, value: string | undefined): string[] {
  return value === undefined ? [] : [name, value];
}

/** An event that a group could not handle. */
export type RedisEventDeadLetter = DeadLetter<RedisEvent>;

/** The groups that handle events, and their dead letters. Inject it. */
@Injectable()
export class RedisEventGroups extends EventGroups<RedisEvent> {}
