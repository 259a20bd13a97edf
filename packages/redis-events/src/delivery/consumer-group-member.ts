import { setImmediate as nextTurn } from 'node:timers/promises';
import { Inject, Injectable } from '@nestjs/common';
import { PartitionSignals } from '../connection/partition-signals.js';
import { isReply } from '../connection/server-faults.js';
import { type PartitionKeys, Partitions } from '../partitions/partitions.js';
import {
  type ConsumerIdentity,
  type EntryFailure,
  EventStreamScripts,
  type FailReply,
  type PassOnReply,
  type RegisteredHandlers,
  type RegisterReply,
} from '../scripts/event-stream.scripts.js';
import { CONSUMER_IDENTITY, EVENT_RULES, type EventRules, type RetryRules } from '../configuration/event-rules.js';
import {
  doneBefore,
  groupOf,
  namesIn,
  parsed,
  type StreamEntry,
  toStreamEntry,
} from '../scripts/stream/stream-entry.js';
import { type HeardSignals, PartitionReplies, PartitionTurns, UnreadEventReader } from './partition-turns.js';
import { livenessOf } from './group-states.js';

/** A failed attempt at an event. `isFinal`: it becomes a dead letter at once. */
export type Failure = Omit<EntryFailure, 'attempts'> & { readonly isFinal?: boolean };

type GroupRules = Pick<EventRules, 'attempts' | 'mostAbandoned' | 'lease'> & RetryRules;

/** The membership of this instance in its group, in every partition. Each entry goes to one member. */
@Injectable()
export class ConsumerGroupMember {
  readonly #looks: PartitionTurns;
  readonly #order: Set<PartitionKeys>;
  readonly #created = new PartitionReplies<unknown>();
  readonly #registered = new PartitionReplies<RegisterReply>();
  readonly #renewed = new PartitionReplies<unknown>();
  readonly #looked = new PartitionReplies<PartitionKeys | undefined>();
  readonly #pickedUp = new PartitionReplies<readonly PendingEvent[]>();
  /** Its node had not replied in time. */
  #late: PendingEvent[] = [];
  #handlers: RegisteredHandlers | undefined;
  readonly #finished = new Map<PartitionKeys, { readonly positions: string[]; readonly acknowledged: Promise<void> }>();

  constructor(
    @Inject(UnreadEventReader) private readonly unread: UnreadEventReader,
    @Inject(EventStreamScripts) private readonly scripts: EventStreamScripts,
    @Inject(Partitions) private readonly partitions: Partitions,
    @Inject(CONSUMER_IDENTITY) private readonly member: ConsumerIdentity,
    @Inject(EVENT_RULES) readonly rules: GroupRules,
    @Inject(PartitionSignals) signals: HeardSignals,
  ) {
    this.#order = new Set(partitions.all);
    // A look at a single partition costs two commands.
    const interval = this.hasSeveralPartitions ? rules.lease : 0;
    this.#looks = new PartitionTurns(partitions.all, signals, this.#looked.isFree, interval);
    signals.onSignal((partition, signal) => {
      if (signal !== 'events') this.#looks.hurry(partition);
    });
  }

  get name(): string {
    return this.member.group;
  }

  get hasSeveralPartitions(): boolean {
    return this.partitions.all.length > 1;
  }

  get isSettled(): boolean {
    return [this.unread, this.#looked, this.#pickedUp].every((each) => each.isSettled);
  }

  async want(types: readonly string[]): Promise<void> {
    await this.#inAll((partition) => this.scripts.wantEvents(partition, this.member, types));
  }

  async abstain(): Promise<void> {
    await this.#inAll((partition) => this.scripts.abstain(partition, this.member));
  }

  async ensure(partitions = this.partitions.all): Promise<void> {
    await this.#created.round(partitions, (partition) => this.scripts.createGroup(partition, this.name, 'oldest'));
    this.#created.take();
  }

  /** Records the handlers. Resolves to those of another living instance that differ, or want other events. */
  async register(
    handlers: RegisteredHandlers,
    partitions = this.partitions.all,
  ): Promise<readonly string[] | undefined> {
    this.#handlers = handlers;
    // A busy instance shows itself later where it handles nothing, and its group must not forget what it wants.
    const liveness = 10 * livenessOf(this.rules.lease);
    await this.#registered.round(partitions, (partition) =>
      this.scripts.registerHandlers(partition, this.member, handlers, liveness),
    );
    const differing = this.#registered.take().find(([word]) => word === 'differing');
    return differing && namesIn(parsed(differing[1]));
  }

  async read(count: number, patience: number): Promise<PendingEvent[]> {
    const entries = await this.#orCreated(this.partitions.all, () => this.unread.read(count, patience));
    return (entries ?? []).map((entry) => toPendingEvent(entry));
  }

  stopReading(): Promise<void> {
    return this.unread.close();
  }

  /** Entries whose retry is due or whose lease has ended. @throws the error of a partition, when there are none */
  async pickUpEvents(count: number, signal: AbortSignal): Promise<PendingEvent[]> {
    if (signal.aborted) return [];
    const left = await this.#unfinished();
    while (left.size > 0 && this.#late.length < count && !signal.aborted) {
      const free = count - this.#late.length;
      const turn = [...this.#order].filter((partition) => left.has(partition)).slice(0, free);
      for (const partition of turn) {
        left.delete(partition);
        this.#order.delete(partition);
        this.#order.add(partition);
      }
      const share = Math.floor(free / turn.length);
      await this.#pickedUp.round(turn, (partition) => this.#pickUpIn(partition, share));
      this.#late.push(...this.#pickedUp.takeReplies().flat());
    }
    const pickedUp = this.#late.splice(0, count);
    // A partition that fails holds up no retry in another one.
    if (pickedUp.length === 0) for (const each of [this.#looked, this.#pickedUp]) each.throwFailure();
    return pickedUp;
  }

  async #unfinished(): Promise<Set<PartitionKeys>> {
    await this.#looked.round(this.#looks.take(), async (partition) => {
      let isPending = true;
      try {
        // A group that was missing may soon have some again.
        isPending = (await this.#orCreated([partition], () => this.scripts.hasPending(partition, this.member))) ?? true;
      } finally {
        if (isPending) this.#looks.hurry(partition);
      }
      if (!isPending) this.#pickedUp.forgive(partition);
      return isPending ? partition : undefined;
    });
    const pending = this.#looked.takeReplies().filter((partition) => partition !== undefined);
    return new Set(pending.filter(this.#pickedUp.isFree));
  }

  /** Whether this group must handle an entry: not when the entry was replayed for another group. */
  concerns(entry: StreamEntry): boolean {
    return (groupOf(entry) ?? this.name) === this.name;
  }

  async acknowledge({ partition, position }: StreamEntry): Promise<void> {
    let batch = this.#finished.get(partition);
    if (!batch) {
      batch = { positions: [], acknowledged: nextTurn().then(() => this.#acknowledge(partition)) };
      this.#finished.set(partition, batch);
    }
    batch.positions.push(position);
    await batch.acknowledged;
  }

  fail(entry: StreamEntry, failure: Failure): Promise<FailReply> {
    this.#looks.hurry(entry.partition);
    const attempts = failure.isFinal ? 0 : this.rules.attempts;
    return this.scripts.fail(entry, this.member, { ...failure, attempts }, this.rules);
  }

  passOn(entry: StreamEntry, want: string): Promise<PassOnReply> {
    return this.scripts.passOn(entry, this.member, want, this.rules);
  }

  async renew(entries: readonly StreamEntry[]): Promise<void> {
    const held = new Set(entries.map(({ partition }) => partition));
    await this.#renewed.round([...held], (partition) => {
      const positions = positionsIn(partition, entries);
      return this.#orCreated([partition], () => this.scripts.renewLease(partition, this.member, positions));
    });
    this.#renewed.take();
  }

  async leave(kept: readonly StreamEntry[] = []): Promise<void> {
    await this.#inAll((partition) => this.scripts.releaseEvents(partition, this.member, positionsIn(partition, kept)));
  }

  async #inAll(ask: (partition: PartitionKeys) => Promise<unknown>): Promise<void> {
    await Promise.all(this.partitions.all.map(ask));
  }

  async #acknowledge(partition: PartitionKeys): Promise<void> {
    const { positions } = this.#finished.get(partition)!;
    this.#finished.delete(partition);
    await this.scripts.acknowledge(partition, this.member, positions);
  }

  async #pickUpIn(partition: PartitionKeys, count: number): Promise<readonly PendingEvent[]> {
    const pickedUp = await this.#orCreated([partition], () =>
      this.scripts.pickUpEvents(partition, this.member, this.rules, count),
    );
    return (pickedUp ?? []).map(([position, fields, deliveries, record]) =>
      toPendingEvent(toStreamEntry(partition, [position, fields]), deliveries, record),
    );
  }

  /** Undefined when the group was missing, as after Redis has lost its data; it exists now. */
  async #orCreated<T>(partitions: readonly PartitionKeys[], ask: () => Promise<T>): Promise<T | undefined> {
    try {
      return await ask();
    } catch (error) {
      if (!isReply(error, 'NOGROUP')) throw error;
      // Then it is probably missing in others, too.
      for (const partition of this.partitions.all) this.#looks.hurry(partition);
      await this.ensure(partitions);
      if (this.#handlers) await this.register(this.#handlers, partitions);
      return undefined;
    }
  }
}

function positionsIn(partition: PartitionKeys, entries: readonly StreamEntry[]): string[] {
  return entries.filter((entry) => entry.partition === partition).map(({ position }) => position);
}

export interface PendingEvent {
  readonly entry: StreamEntry;
  readonly redelivered: boolean;
  readonly failures: number;
  /** Number of deliveries whose instance ended before it settled the entry. */
  readonly abandoned: number;
  readonly done: readonly string[];
}

export function toPendingEvent(entry: StreamEntry, deliveries = 0, record: string | null = null): PendingEvent {
  const { attempts, done } = (parsed(record) ?? {}) as { readonly attempts?: unknown; readonly done?: unknown };
  const failures = Number(attempts ?? 0);
  return {
    entry,
    redelivered: deliveries > 0 || groupOf(entry) !== undefined,
    failures,
    abandoned: deliveries - failures,
    done: [...new Set([...doneBefore(entry), ...namesIn(done)])],
  };
}
