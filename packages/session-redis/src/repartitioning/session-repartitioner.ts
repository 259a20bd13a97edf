import { setTimeout as pause } from 'node:timers/promises';
import { InvalidSessionOptionsError, SessionStoreError } from '@nest-session/core';
import type { Redis } from 'ioredis';
import type { ResolvedRedisSessionOptions } from '../configuration/redis-session.options.js';
import { recordedPartitions, refuseClusterMode } from '../connection/check-store.js';
import { groupStates, oldestUnread } from '../delivery/group-state.js';
import { eventRules, PACE } from '../delivery/event-rules.js';
import { SessionExpirationSweeper } from '../expiration/session-expiration.sweeper.js';
import type { SessionKeys } from '../keys/session-keys.js';
import type { PartitionLayout } from '../keys/partition-layout.js';
import { SessionPartitions } from '../keys/session-partitions.js';
import { RepartitioningScripts } from '../scripts/repartitioning/repartitioning.scripts.js';
import { SessionScripts } from '../scripts/session/session.scripts.js';
import { EventStreamScripts } from '../scripts/stream/event-stream.scripts.js';
import { BackgroundLimiter } from '../timing/background.limiter.js';
import { OtherKeys } from './other-keys.js';

/** What `SessionRepartitioner.run()` does now, and what it has done. */
export interface RepartitioningProgress {
  /**
   * `waiting`: for forwarding marks of before, which last a minute; `moving`: the sessions; `draining`: what was recorded
   * in the old partitions is delivered; `done`.
   */
  readonly step: 'waiting' | 'moving' | 'draining' | 'done';
  /** Number of sessions that this run has moved. Instances move those that they write. */
  readonly moved: number;
  /** What it waits for; empty when for nothing. */
  readonly waitingFor: string;
}

/** Options of `SessionRepartitioner.run()`. */
export interface RepartitioningOptions {
  /** Ends the run. Run it again: it continues. */
  readonly signal?: AbortSignal;
  /** Called with each step, and while one lasts about once a second. */
  readonly onProgress?: (progress: RepartitioningProgress) => void;
}

/** Milliseconds; tests override them. */
interface RepartitioningPace {
  /** How long a forwarding mark lasts. */
  readonly forwarded: number;
  /** How long an event stays that all groups have handled: instances may still broadcast it. */
  readonly broadcast: number;
}

const PACE_OF_APPLICATIONS: RepartitioningPace = { forwarded: 60_000, broadcast: 10_000 };
// Milliseconds.
const REPORT_INTERVAL = 1000;

// Each takes Redis about 50 µs.
const MOVED_AT_ONCE = 50;
const TRIMMED_PER_CALL = 50;

/**
 * Moves the sessions of a namespace to another number of partitions while applications use them. All instances must have
 * the option `partitions: { from, to }`. It can be ended at any time, also by a crash, and run again.
 */
export class SessionRepartitioner {
  readonly #partitions: SessionPartitions;
  readonly #old: PartitionLayout;
  readonly #next: PartitionLayout;
  readonly #leaving: readonly SessionKeys[];
  readonly #sessions: SessionScripts;
  readonly #streams: EventStreamScripts;
  readonly #scripts: RepartitioningScripts;
  readonly #others: OtherKeys;
  readonly #sweeper: Pick<SessionExpirationSweeper, 'runOnce'>;
  readonly #limiter = new BackgroundLimiter();
  #moved = 0;
  #reportedAt = -Infinity;

  /** @internal Inject it. */
  constructor(
    private readonly client: Redis,
    options: ResolvedRedisSessionOptions,
    private readonly pace = PACE_OF_APPLICATIONS,
  ) {
    const partitions = new SessionPartitions(options.namespace, options.partitions);
    const { layouts } = partitions;
    [this.#old, this.#next] = [layouts[0]!, layouts[layouts.length - 1]!];
    const rules = eventRules(options, PACE, partitions);
    this.#partitions = partitions;
    this.#leaving = partitions.leaving;
    this.#sessions = new SessionScripts(client, partitions, rules);
    this.#streams = new EventStreamScripts(client);
    this.#scripts = new RepartitioningScripts(client);
    this.#others = new OtherKeys(client, partitions, this.#scripts, this.#limiter, rules.deadLetters.maxSize);
    const leaving = { all: this.#leaving };
    this.#sweeper = new SessionExpirationSweeper(client, this.#sessions, leaving, options, this.#limiter);
  }

  /**
   * Moves all sessions. Resolves when the option can be the new number; at once when it could before. Resolves to the
   * number of sessions that it has moved.
   * @throws InvalidSessionOptionsError when the sessions are in other partitions than `from` and `to` say, SessionStoreError
   *   when sessions cannot be moved, and the error of ioredis when Redis fails
   */
  async run({ signal, onProgress = () => undefined }: RepartitioningOptions = {}): Promise<{ readonly moved: number }> {
    const report = (step: RepartitioningProgress['step'], waitingFor = '', isNews = true) => {
      signal?.throwIfAborted();
      if (!isNews && performance.now() - this.#reportedAt < REPORT_INTERVAL) return;
      this.#reportedAt = performance.now();
      onProgress({ step, moved: this.#moved, waitingFor });
    };
    this.#moved = 0;
    const { records } = this.#partitions;
    await this.#learn();
    await refuseClusterMode({ run: (command) => command(this.client) }, this.#partitions);
    if (this.#partitions.stage === 'before') {
      report('waiting', 'forwarding marks of instances that did not know the new partitions');
      await pause(this.pace.forwarded, undefined, { signal });
      await this.#prepare();
      await this.#record(records.before, records.moving);
    }
    if (this.#partitions.stage === 'moving') {
      const settled = performance.now() + this.pace.forwarded;
      report('moving');
      await this.#moveSessions((isNews) => report('moving', '', isNews));
      await this.#others.moveMarks();
      for (let waitingFor: string | undefined; (waitingFor = await this.#drain(settled)) !== undefined;) {
        report('draining', waitingFor, false);
        await pause(Math.min(REPORT_INTERVAL, this.pace.forwarded), undefined, { signal });
      }
      await this.#others.moveRest();
      await this.#record(records.moving, records.after);
    }
    report('done');
    return { moved: this.#moved };
  }

  async #learn(): Promise<void> {
    const { namespace, records, hasTwoLayouts } = this.#partitions;
    const refuse = (problem: string) => new InvalidSessionOptionsError('RedisSessionModule', [problem]);
    if (!hasTwoLayouts) throw refuse('Option `partitions` must be { from, to } to move sessions to other partitions.');
    const recorded = await recordedPartitions(this.client, this.#partitions);
    if (this.#partitions.learn(recorded)) return;
    throw refuse(
      `The sessions in namespace ${JSON.stringify(namespace)} are in ${recorded.replace('>', ' to ')} partitions, which is ` +
        `neither ${records.before} nor ${records.after}. Give these numbers as \`from\` and \`to\`.`,
    );
  }

  async #record(now: string, next: string): Promise<void> {
    const { meta } = this.#partitions;
    if ((await this.#scripts.recordStage(meta, now, next)) === 'other') {
      throw new SessionStoreError('Another process has changed the partitions meanwhile');
    }
    this.#partitions.learn(next);
  }

  /** Gives the new partitions the groups and the epoch of the old ones. Their instances tell again what they want. */
  async #prepare(): Promise<void> {
    const groups = await groupStates((_, command) => command(this.client), this.#old.all);
    const epochs = await Promise.all(this.#old.all.map(({ epoch }) => this.client.hget(epoch, 'at')));
    const latest = Math.max(0, ...epochs.map(Number));
    for (const keys of this.#next.all) {
      if (this.#old.all.includes(keys)) continue;
      for (const { name } of groups) {
        await this.#limiter.run(() => this.#streams.createGroup(keys, name, 'oldest'), keys.prefix);
      }
      // An epoch that was raised since then is later, because instances raise it in both layouts.
      if (latest > 0) await this.client.hsetnx(keys.epoch, 'at', latest);
    }
  }

  /** Moves the sessions of which this finds none any more, whatever ends or changes its id meanwhile. */
  async #moveSessions(report: (isNews: boolean) => void): Promise<void> {
    for (;;) {
      let found = 0;
      const problems: unknown[] = [];
      for await (const keys of this.#others.scan((keys) => keys.shadow('*'))) {
        const ids = keys.map((key) => this.#leavingId(key)).filter((id) => id !== undefined);
        for (let i = 0; i < ids.length; i += MOVED_AT_ONCE) {
          const began = performance.now();
          const words = await Promise.all(ids.slice(i, i + MOVED_AT_ONCE).map((id) => this.#move(id, problems)));
          this.#moved += words.filter((word) => word === 'moved').length;
          found += words.filter((word) => word !== undefined && word !== 'over').length;
          report(false);
          // Redis has as much time for others.
          await pause(Math.max(1, performance.now() - began));
        }
        report(false);
      }
      if (found > 0) continue;
      if (problems.length === 0) return;
      const reason = problems[0] instanceof Error ? problems[0].message : String(problems[0]);
      throw new SessionStoreError(
        `${problems.length} sessions cannot be moved. Repair this, and run it again: ${reason}`,
      );
    }
  }

  async #move(id: string, problems: unknown[]): Promise<string | undefined> {
    try {
      const word = await this.#sessions.move(this.#old.of(id), this.#next.of(id), id);
      if (word === 'stopped') throw new SessionStoreError('Another process has changed the partitions meanwhile');
      return word;
    } catch (error) {
      if (error instanceof SessionStoreError) throw error;
      problems.push(error);
      return undefined;
    }
  }

  /** The id in a shadow key of the old layout, if its session has another place in the new one. */
  #leavingId(key: string): string | undefined {
    const id = key.slice(key.lastIndexOf(':') + 1);
    const keys = this.#old.of(id);
    return keys.shadow(id) === key && this.#next.of(id) !== keys ? id : undefined;
  }

  /** Lets the old partitions be emptied. What this still waits for; undefined when nothing is left there. */
  async #drain(settled: number): Promise<string | undefined> {
    await this.#sweeper.runOnce({ ahead: Number.MAX_SAFE_INTEGER / 2 });
    const stores = this.#leaving.flatMap(({ bucketList, ends }) => [bucketList, ends]);
    const counts = await Promise.all(stores.map((key) => this.client.zcard(key)));
    if (counts.some((count) => count > 0)) return 'ends to be recorded';
    await this.#others.moveLetters();
    const ask = <T>(_: SessionKeys, command: (client: Redis) => Promise<T>) => command(this.client);
    const groups = await groupStates(ask, this.#leaving);
    for (const group of groups) {
      const isBehind = (await oldestUnread(ask, group)) !== undefined;
      if (isBehind || group.pending > 0) return `the handlers of group ${JSON.stringify(group.name)}`;
    }
    // Without a group nobody reads them.
    const retention = groups.length > 0 ? Number.MAX_SAFE_INTEGER : this.pace.broadcast;
    const limits = { grace: this.pace.broadcast, retention, maxLength: Number.MAX_SAFE_INTEGER };
    for (const keys of this.#leaving) {
      for (let word = 'more'; word === 'more';) {
        [word] = await this.#limiter.run(() => this.#streams.trim(keys, limits, TRIMMED_PER_CALL), keys.prefix);
      }
      if ((await this.client.xlen(keys.events)) > 0) return 'instances to read the last events';
      if ((await this.client.xlen(keys.deadLetters)) > 0) return 'the last dead letters';
    }
    return performance.now() < settled ? 'forwarding marks' : undefined;
  }
}
