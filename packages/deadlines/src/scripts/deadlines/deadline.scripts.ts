import type { WaitingReading } from '@nest-session/core/internal';
import type {
  CancelOutcome,
  Due,
  NewDeadline,
  RescheduleOutcome,
  ScheduleReply,
} from '../../deadlines/deadline.store.js';
import type { Redis } from 'ioredis';
import {
  defineScripts,
  EVENT_SOURCES,
  type DueEntries,
  type DueEntry,
  loadScripts,
  type RunScript,
  toDueEntries,
} from '@nest-session/redis-events/internal';
import { LUA_SOURCES } from '../lua-sources.js';
import type { DeadlineKeys } from '../../redis/deadline-keys.js';

export interface DeadlineToWrite extends Omit<NewDeadline, 'text'> {
  readonly member: string;
  /** `text`: undefined without data. `dataKey`: the wrapped key with which it is encrypted; undefined: it is not. */
  readonly data: { readonly text: string | undefined; readonly dataKey: string | undefined };
  /** Epoch milliseconds, for one that moves; undefined: now. */
  readonly scheduledAt?: number | undefined;
}

/** Where a deadline waits. `time`: epoch milliseconds. */
export interface DeadlinePlace {
  readonly keys: DeadlineKeys;
  readonly member: string;
  readonly time: number;
}

/** Those behind a place, and before a time. */
export interface PlacesPage {
  readonly before: number | undefined;
  readonly after: Omit<DeadlinePlace, 'keys'> | undefined;
  readonly limit: number;
}

/** How deadlines fire: the arguments of fire-deadlines.lua. */
export interface FiringRules {
  readonly batchSize: number;
  readonly maxLength: number;
  readonly knownFor: number;
  readonly maxDeadLetterSize: number;
}

type FiringFailure = 'corrupt' | 'already';

/** What a call has fired. `isFull`: too many events wait for their groups, so it fires nothing. */
interface FiredDeadlines extends DueEntries {
  readonly entries: readonly (DueEntry & { readonly outcome: 'claimed' | FiringFailure })[];
  readonly isFull: boolean;
}

const NO_DATA = '-';

const SCRIPTS = loadScripts({ ...EVENT_SOURCES, ...LUA_SOURCES }, 'deadlines');

export class DeadlineScripts {
  readonly #run: RunScript<keyof typeof SCRIPTS>;

  constructor(client: Redis) {
    this.#run = defineScripts(client, SCRIPTS);
  }

  /**
   * `most`: as many of the name as may wait in the partition. `wait`: milliseconds until the first of them is due;
   * undefined when none was scheduled.
   */
  async schedule(
    keys: DeadlineKeys,
    name: string,
    deadlines: readonly DeadlineToWrite[],
    most: number,
  ): Promise<{ replies: ScheduleReply[]; wait: number | undefined }> {
    const all = [keys.due(name), keys.names, keys.events, ...deadlines.map(({ member }) => keys.deadline(member))];
    const args = deadlines.flatMap(({ member, due, ifExists, id, key, traceparent = '', scheduledAt = '', data }) => {
      const { text = '', dataKey = data.text === undefined ? NO_DATA : '' } = data;
      return [member, ...timeArguments(due), ifExists, id, key, traceparent, scheduledAt, dataKey, text];
    });
    type Reply = [wait: number | '', ...replies: ScheduleReply[]];
    const [wait, ...replies] = await this.#run<Reply>('schedule-deadlines', all, [name, most, ...args]);
    return { replies, wait: wait === '' ? undefined : wait };
  }

  /** The number: milliseconds until it is due. */
  reschedule(keys: DeadlineKeys, name: string, member: string, due: Due) {
    const all = [keys.due(name), keys.names, keys.events, keys.deadline(member)];
    const args = [name, member, ...timeArguments(due)];
    return this.#run<[word: RescheduleOutcome, wait?: number]>('reschedule-deadline', all, args);
  }

  cancel(keys: DeadlineKeys, name: string, member: string): Promise<CancelOutcome> {
    return this.#run('cancel-deadline', [keys.due(name), keys.deadline(member)], [member]);
  }

  async list(keys: DeadlineKeys, name: string, { before, after, limit }: PlacesPage): Promise<DeadlinePlace[]> {
    const args = [before ?? '', after?.time ?? '', after?.member ?? '', limit];
    const reply = await this.#run<string[]>('list-deadlines', [keys.due(name)], args);
    const place = (i: number) => ({ keys, member: reply[2 * i]!, time: Number(reply[2 * i + 1]) });
    return Array.from({ length: reply.length / 2 }, (_, i) => place(i));
  }

  async lookAt(keys: DeadlineKeys): Promise<WaitingReading[]> {
    const reply = await this.#run<(string | number)[]>('look-at-deadlines', [keys.names], [keys.prefix]);
    return Array.from({ length: reply.length / 3 }, (_, i) => {
      const [name, count, overdue] = reply.slice(3 * i) as [string, number, number];
      return { name, count, overdue };
    });
  }

  async fire(keys: DeadlineKeys, rules: FiringRules): Promise<FiredDeadlines> {
    const all = [keys.names, keys.events, keys.deadLetters, keys.deadlines];
    const args = [keys.prefix, rules.batchSize, rules.maxLength, rules.knownFor, rules.maxDeadLetterSize];
    type FireReply = [now: number, next: number | '', isFull: 0 | 1, ...entries: (string | number)[]];
    const [now, next, isFull, ...entries] = await this.#run<FireReply>('fire-deadlines', all, args);
    return { ...toDueEntries([now, next, ...entries]), isFull: isFull === 1 } as FiredDeadlines;
  }
}

function timeArguments(due: Due): [kind: 'in' | 'at', milliseconds: number] {
  return 'in' in due ? ['in', due.in] : ['at', due.at];
}
