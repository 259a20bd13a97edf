import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { InvalidSessionOptionsError, SessionStoreError } from '@nest-session/core';
import {
  isReply,
  LivingInstances,
  partitionsByNode,
  recordedPartitions,
  refuse,
  shownCount,
} from '@nest-session/redis-events/internal';
import {
  type RedisSessionModuleOptions,
  resolveRedisSessionOptions,
  SessionPartitions,
} from '@nest-session/redis/internal';
import type { Redis } from 'ioredis';
import { withConnections } from '../command/store-access.js';
import { EventCopy } from './event-copy.js';
import { KeyRepartition } from './key-repartition.js';
import {
  ALL_ASIDE,
  aside,
  inBatches,
  inPlace,
  isAside,
  isOfEvents,
  type ScannedKey,
  scannedKeys,
} from './scanned-keys.js';

/**
 * Moves all sessions and events of a namespace to another number of partitions while its applications are stopped. It
 * also works on a Redis Cluster. `options` are those of `RedisSessionModule.forRoot()`, and `partitions` is ignored. No
 * application starts until it has resolved. It can end at any time, even by a crash, and be run again. Resolves to the
 * number of live sessions that it has moved, which is 0 if they were moved before.
 * @throws InvalidSessionOptionsError if an application runs, or if there are not `from` partitions; SessionStoreError
 *   if Redis cannot be reached, or fails, or if stray keys are in the way
 */
export async function repartition(
  options: RedisSessionModuleOptions,
  { from, to, signal, onProgress }: RepartitionOptions,
): Promise<{ readonly moved: number }> {
  if (from === to) {
    throw new InvalidSessionOptionsError('RedisSessionModule', ['Options `from` and `to` must be different numbers.']);
  }
  const resolved = resolveRedisSessionOptions({ ...options, partitions: to });
  const target = new SessionPartitions(resolved.namespace, resolved.partitions);
  const name = `${hostname()}:${process.pid}:${randomUUID()}`;
  return withConnections(resolved, ({ background }) =>
    new RepartitionRun(background, target, name).run({ from, signal, onProgress }),
  );
}

const KEYS_AT_ONCE = 50;

/** The progress of `repartition()`. */
export interface RepartitionProgress {
  /** `events` copies the events that are not handled yet, `sessions` moves the sessions, and `done` is the end. */
  readonly step: 'events' | 'sessions' | 'done';
  /** The number of live sessions that this run has moved. */
  readonly moved: number;
}

/** Options of `repartition()`. */
export interface RepartitionOptions {
  /** The current number of partitions. If unset, the number that Redis records. */
  readonly from?: number | undefined;
  /** The new number of partitions. Set the option `partitions` of the applications to it afterwards. */
  readonly to: number;
  /** Ends the run. Call `repartition()` again to continue. */
  readonly signal?: AbortSignal | undefined;
  /** Called at each step, and from time to time during a step. */
  readonly onProgress?: ((progress: RepartitionProgress) => void) | undefined;
}

/** The next step, as `meta` records it: `1>64>copy`. Each can be interrupted at any point and started again. */
const STEPS = ['copy', 'drop', 'place', 'keys'] as const;
type Step = (typeof STEPS)[number];

export class RepartitionRun {
  readonly #instances: LivingInstances;

  /** @param name the name of this run among the names of instances */
  constructor(
    private readonly client: Redis,
    private readonly to: SessionPartitions,
    name: string,
  ) {
    this.#instances = new LivingInstances({ run: (command) => command(client) }, to, name);
  }

  async run({ from, signal, onProgress }: Omit<RepartitionOptions, 'to'>): Promise<{ moved: number }> {
    let total = 0;
    const report = (step: RepartitionProgress['step'], moved = 0) => {
      signal?.throwIfAborted();
      total += moved;
      onProgress?.({ step, moved: total });
    };
    await this.#instances.sign();
    this.#instances.start();
    try {
      for (let next = await this.#begin(from); next !== undefined;) {
        const { old, step } = next;
        const shown = step === 'keys' ? 'sessions' : 'events';
        report(shown);
        await this.#do(step, new SessionPartitions(this.to.namespace, old), (moved) => report(shown, moved));
        const following = STEPS[STEPS.indexOf(step) + 1];
        // An instance that had lost its connection may be back.
        await this.#refuseInstances();
        await this.#record(following ? `${old}>${this.to.count}>${following}` : `${this.to.count}`);
        next = following && { old, step: following };
      }
    } finally {
      await this.#instances.stop();
    }
    report('done');
    return { moved: total };
  }

  /** Returns the next step, or undefined if all is done. From then on no instance starts. */
  async #begin(from: number | undefined): Promise<{ readonly old: number; readonly step: Step } | undefined> {
    const { count } = this.to;
    const recorded = await recordedPartitions(this.client, this.to);
    if (recorded === `${count}`) return undefined;
    const [old, to = `${count}`, step] = recorded.split('>') as [string, string?, Step?];
    if (to !== `${count}`) refuse(this.to, `are being moved from ${old} to ${to} partitions. Finish that first.`);
    if (from !== undefined && old !== `${from}`) refuse(this.to, `are in ${shownCount(old)}, not in ${from}.`);
    await checkRights(this.client, this.to);
    const next = { old: Number(old), step: step ?? 'copy' };
    if (step) {
      await this.#refuseInstances();
      return next;
    }
    // The order matters: an instance that starts gives a sign of life before it reads the record.
    const record = `${old}>${count}>${next.step}`;
    await this.#record(record);
    try {
      await this.#refuseInstances();
    } catch (error) {
      await this.#record(old);
      throw error;
    }
    if ((await recordedPartitions(this.client, this.to)) !== record) refuse(this.to, 'are being moved by another run.');
    return next;
  }

  async #do(step: Step, from: SessionPartitions, report: (moved?: number) => void): Promise<void> {
    switch (step) {
      case 'copy':
        await this.#forEach(this.to, ALL_ASIDE, isAside, ({ key }) => this.client.unlink(key));
        return new EventCopy(this.client, from, this.to).run(report);
      case 'drop':
        return this.#forEach(from, 'events*', isOfEvents, ({ key }) => this.client.unlink(key));
      case 'place':
        return this.#forEach(this.to, ALL_ASIDE, isAside, (found) => this.client.rename(found.key, inPlace(found)));
      case 'keys': {
        const problems = await new KeyRepartition(this.client, from, this.to).run(report);
        for (const [key, reason] of problems)
          throw new SessionStoreError(
            `${problems.size} keys have another type, for example ${JSON.stringify(key)}: ${reason}. Remove them, and run ` +
              'this again to continue.',
          );
      }
    }
  }

  async #forEach(
    partitions: SessionPartitions,
    pattern: string,
    isMeant: (scanned: ScannedKey) => boolean,
    act: (scanned: ScannedKey) => Promise<unknown>,
  ): Promise<void> {
    for await (const found of scannedKeys(this.client, partitions, pattern)) {
      await inBatches(found.filter(isMeant), KEYS_AT_ONCE, act);
    }
  }

  async #refuseInstances(): Promise<void> {
    const names = await this.#instances.others();
    // One that was cut off compares its number of partitions when it finds itself forgotten.
    if (names.length === 0) return this.#instances.forgetSilent();
    refuse(
      this.to,
      `cannot move while instances are alive: ${names.map((name) => JSON.stringify(name)).join(', ')}. Stop all of them, and ` +
        'run this again. An instance that was killed counts as alive for 30 s.',
    );
  }

  async #record(partitions: string): Promise<void> {
    await this.client.hset(this.to.meta, 'partitions', partitions);
  }
}

// A move needs rights that an application does not. These commands name a key that does not exist, and write nothing,
// so a missing right is noticed before the move begins.
async function checkRights(client: Redis, partitions: SessionPartitions): Promise<void> {
  for (const [keys] of partitionsByNode(client, partitions.all).values()) {
    const key = aside(keys!, `${keys!.prefix}rights`);
    const tried = [
      client.dump(key),
      client.restore(key, 0, ''),
      client.zscan(key, '0'),
      client.xgroup('CREATE', key, 'none', '0'),
      client.xclaim(key, 'none', 'none', 0, '0'),
    ];
    for (const reply of await Promise.allSettled<unknown>(tried)) {
      // Redis compares the rights before the arguments.
      if (reply.status === 'rejected' && isReply(reply.reason, 'NOPERM')) throw reply.reason as Error;
    }
  }
}
