import { Inject, Injectable } from '@nestjs/common';
import type { DeadlineReading, StoreReader, WaitingReading } from '@nest-session/core/internal';
import { CleanupJob, GroupLagReader, RequestConnection, type ScriptsOn } from '@nest-session/redis-events/internal';
import { DeadlinePartitions } from './deadline-keys.js';
import type { DeadlineScripts } from '../scripts/deadlines/deadline.scripts.js';
import { REDIS_DEADLINE_OPTIONS, type ResolvedRedisDeadlineOptions } from './redis-deadline.options.js';
import { REQUEST_DEADLINE_SCRIPTS } from './redis-deadline.tokens.js';

/** Reads the deadlines that wait, the groups, and the background work of this instance. */
@Injectable()
export class RedisDeadlineReader implements StoreReader<DeadlineReading> {
  readonly group: string;
  readonly namespace: string;

  constructor(
    @Inject(RequestConnection) private readonly connection: RequestConnection,
    @Inject(REQUEST_DEADLINE_SCRIPTS) private readonly scripts: ScriptsOn<DeadlineScripts>,
    @Inject(DeadlinePartitions) private readonly partitions: DeadlinePartitions,
    @Inject(GroupLagReader) private readonly groups: Pick<GroupLagReader, 'read'>,
    @Inject(CleanupJob) private readonly cleanup: Pick<CleanupJob, 'age'>,
    @Inject(REDIS_DEADLINE_OPTIONS) { events }: Pick<ResolvedRedisDeadlineOptions, 'events'>,
  ) {
    this.group = events.group;
    this.namespace = partitions.namespace;
  }

  get cleanupAge(): number {
    return this.cleanup.age;
  }

  /** In each partition, one command for its deadlines and one for its groups. */
  async read(): Promise<DeadlineReading> {
    const [waiting, groups] = await Promise.all([
      waitingDeadlines(this.connection, this.scripts, this.partitions),
      this.groups.read(),
    ]);
    return { waiting, groups };
  }
}

/** The deadlines of all partitions that wait, by their names. */
export async function waitingDeadlines(
  connection: RequestConnection,
  scripts: ScriptsOn<DeadlineScripts>,
  partitions: Pick<DeadlinePartitions, 'all'>,
): Promise<WaitingReading[]> {
  const waiting = await connection.runInAll(partitions, (client, keys) => scripts(client).lookAt(keys));
  return byName(waiting.flat());
}

function byName(all: readonly WaitingReading[]): WaitingReading[] {
  const names = new Map<string, WaitingReading>();
  for (const each of all) {
    const { count, overdue } = names.get(each.name) ?? { count: 0, overdue: 0 };
    names.set(each.name, { ...each, count: count + each.count, overdue: Math.max(overdue, each.overdue) });
  }
  return [...names.keys()].toSorted().map((name) => names.get(name)!);
}
