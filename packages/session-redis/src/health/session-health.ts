import { Inject, Injectable } from '@nestjs/common';
import { SessionRepository, SessionStoreError } from '@nest-session/core';
import type {
  GroupReading,
  HealthLook,
  SessionHealthReport,
  SessionReader,
  SessionReading,
} from '@nest-session/core/internal';
import {
  CleanupJob,
  type Connection,
  CONNECTION_OPTIONS,
  type ConnectionOptions,
  DELIVERY_OPTIONS,
  type DeliveryOptions,
  GroupLagReader,
  isAnswer,
  nodeMemory,
  OutageLog,
  Partitions,
  RequestConnection,
  type ScriptsOn,
} from '@nest-session/redis-events/internal';
import {
  END_NOTIFICATIONS,
  type EndNotifications,
  REQUEST_SESSION_SCRIPTS,
} from '../configuration/redis-session.tokens.js';
import type { SessionKeys } from '../keys/session-keys.js';
import { SessionPartitions } from '../keys/session-partitions.js';
import type { SessionScripts } from '../scripts/session/session.scripts.js';

/** Looks whether sessions can be loaded, and whether all works that no request waits for. It needs no Terminus. */
@Injectable()
export class SessionHealth implements HealthLook {
  readonly #dropped = new RecentRise();
  readonly #lostDeadLetters = new RecentRise();

  constructor(
    @Inject(SessionRepository) private readonly sessions: SessionRepository,
    @Inject(GroupLagReader) private readonly groups: Pick<GroupLagReader, 'read'>,
    @Inject(CleanupJob) private readonly cleanup: Pick<CleanupJob, 'isLate'>,
    @Inject(END_NOTIFICATIONS) private readonly notifications: EndNotifications,
    @Inject(OutageLog) private readonly outage: Pick<OutageLog, 'reason'>,
    @Inject(RequestConnection) private readonly connection: Connection,
    @Inject(Partitions) private readonly partitions: Pick<Partitions, 'all'>,
    @Inject(CONNECTION_OPTIONS) private readonly options: Pick<ConnectionOptions, 'isGuest'>,
  ) {}

  async look(late: number): Promise<SessionHealthReport> {
    const [load, read, memory] = await Promise.allSettled([
      this.#load(),
      // In the namespace of another library there are none.
      this.options.isGuest ? [] : this.groups.read(),
      nodeMemory(this.connection, this.partitions),
    ]);
    if (load.status === 'rejected') {
      return { state: 'down', data: { redis: 'down', reasons: [this.#reasonOf(load.reason)] } };
    }
    const groups = read.status === 'fulfilled' ? read.value : undefined;
    const notifications = this.notifications.state;
    const nodes = memory.status === 'fulfilled' ? [...memory.value.values()] : [];
    const problems = {
      'Redis is full: sessions cannot be saved': nodes.some(({ isFull }) => isFull),
      'Redis does not announce expired sessions': !['listening', 'off'].includes(notifications),
      'No cleanup has finished for two ticks': this.cleanup.isLate,
      'The groups cannot be read': !groups,
      ...(groups && this.#problemsOf(groups, late)),
    };
    const reasons = Object.entries(problems).flatMap(([reason, isThere]) => (isThere ? [reason] : []));
    const data = { redis: 'up', notifications, ...(groups && { groups: groups.map(shown) }) };
    return reasons.length === 0 ? { state: 'up', data } : { state: 'degraded', data: { ...data, reasons } };
  }

  /** As a request does that brings the token of a session which has ended. */
  async #load(): Promise<void> {
    await this.sessions.findById(this.sessions.createSession().id);
  }

  #problemsOf(groups: readonly GroupReading[], late: number): Record<string, boolean> {
    const sum = (count: 'dropped' | 'lostDeadLetters') => groups.reduce((total, each) => total + each[count], 0);
    return {
      'A group is late': groups.some(({ oldestUnreadAge }) => oldestUnreadAge > late),
      'Events were dropped within the last hour': this.#dropped.note(sum('dropped')),
      'Dead letters were lost within the last hour': this.#lostDeadLetters.note(sum('lostDeadLetters')),
    };
  }

  #reasonOf(error: unknown): string {
    const { cause, reason } = error instanceof SessionStoreError ? error : { cause: error, reason: '' };
    // With a cause, the reason quotes it.
    const what = cause === undefined ? reason : 'Redis failed';
    const word = failureWord(this.outage.reason ?? cause);
    return word === undefined ? what : `${what} (${word})`;
  }
}

function shown({ name, lag, oldestUnreadAge, dropped, lostDeadLetters }: GroupReading): object {
  return { name, lag, oldestUnreadAge: Math.round(oldestUnreadAge / 1000), dropped, lostDeadLetters };
}

/** Such as `ECONNREFUSED` of Node.js, or `WRONGPASS` of Redis. All else in an error may be an address or a name. */
export function failureWord(error: unknown): string | undefined {
  const { code, message } = Object(error) as { readonly code?: unknown; readonly message?: unknown };
  const text = typeof code === 'string' ? code : isAnswer(error) ? String(message) : '';
  return /^[A-Z][A-Z0-9_]+(?= |$)/.exec(text)?.[0];
}

const HOUR = 3_600_000;

export class RecentRise {
  #last: number | undefined;
  /** Monotonic time. */
  #risenAt = -Infinity;

  /** Notes the number, and returns whether it has risen within the last hour. The first one is no rise. */
  note(count: number): boolean {
    const now = performance.now();
    if (this.#last !== undefined && count > this.#last) this.#risenAt = now;
    this.#last = count;
    return now - this.#risenAt < HOUR;
  }
}

// Buckets per call: Redis takes 0.4 ms for them, measured beside other work.
const BUCKETS_PER_CALL = 250;

@Injectable()
export class RedisSessionReader implements SessionReader {
  readonly group: string;
  readonly namespace: string;

  constructor(
    @Inject(RequestConnection) private readonly connection: RequestConnection,
    @Inject(REQUEST_SESSION_SCRIPTS) private readonly scripts: ScriptsOn<SessionScripts>,
    @Inject(SessionPartitions) private readonly partitions: SessionPartitions,
    @Inject(GroupLagReader) private readonly groups: Pick<GroupLagReader, 'read'>,
    @Inject(CleanupJob) private readonly cleanup: Pick<CleanupJob, 'age'>,
    @Inject(END_NOTIFICATIONS) private readonly ends: EndNotifications,
    @Inject(DELIVERY_OPTIONS) { events }: DeliveryOptions,
  ) {
    this.group = events.group;
    this.namespace = partitions.namespace;
  }

  get cleanupAge(): number {
    return this.cleanup.age;
  }

  get notifications(): string {
    return this.ends.state;
  }

  /** In each partition, one command for each 250 of its buckets, at least one, and one for its groups. */
  async read(): Promise<SessionReading> {
    const [counts, groups] = await Promise.all([
      countSessions(this.connection, this.scripts, this.partitions),
      this.groups.read(),
    ]);
    return { ...counts, groups };
  }
}

export async function countSessions(
  connection: RequestConnection,
  scripts: ScriptsOn<SessionScripts>,
  { all }: Pick<SessionPartitions, 'all'>,
): Promise<Pick<SessionReading, 'sessions' | 'overdue'>> {
  const counts = { sessions: 0, overdue: 0 };
  const countIn = async (keys: SessionKeys) => {
    for (let first = 0, buckets = BUCKETS_PER_CALL; buckets === BUCKETS_PER_CALL; first += buckets) {
      const look = await connection.run((client) => scripts(client).lookAt(keys, first, BUCKETS_PER_CALL), keys.prefix);
      counts.sessions += look.sessions;
      counts.overdue = Math.max(counts.overdue, look.overdue);
      ({ buckets } = look);
    }
  };
  await Promise.all(all.map(countIn));
  return counts;
}
