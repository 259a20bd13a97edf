import { Inject, Injectable } from '@nestjs/common';
import { FORWARDING_TIME } from '@nest-session/core/internal';
import { PollingLoop } from '@nest-session/core/store';
import type { Redis } from 'ioredis';
import {
  BackgroundLimiter,
  type BackgroundService,
  InjectConnection,
  nodeWith,
  partitionsByNode,
} from '@nest-session/redis-events/internal';
import { BACKGROUND_SESSION_SCRIPTS } from '../configuration/redis-session.tokens.js';
import type { SessionKeys } from '../keys/session-keys.js';
import { SessionPartitions } from '../keys/session-partitions.js';
import { SessionEpochs } from '../repository/session-epochs.js';
import type { SessionScripts } from '../scripts/session/session.scripts.js';
import { pages } from './scan-pages.js';

// Milliseconds.
const INTERVAL = 1000;
const SCANNED_PER_CALL = 1000;
const ENDED_PER_CALL = 50;

/** It runs when Redis is out of memory: otherwise each instance would scan all keys every second. */
const RECORD_END = `#!lua flags=allow-oom
redis.call('HSET', KEYS[1], 'ended', ARGV[1])`;

/**
 * Ends the sessions that `endEverySession()` has made invalid, endless ones included, so that their ends are reported.
 * Any number of instances may do this at once. A pass that an instance did not finish is begun again, by any instance.
 */
@Injectable()
export class OlderSessionSweeper implements BackgroundService {
  /** By partition, the epoch for which a pass has found nothing. */
  readonly #clean = new Map<SessionKeys, number>();
  readonly #stopping = new AbortController();

  readonly #loop = new PollingLoop('The end of every session', INTERVAL, () =>
    this.runOnce({ signal: this.#stopping.signal }),
  );

  constructor(
    @InjectConnection('background') private readonly client: Redis,
    @Inject(BACKGROUND_SESSION_SCRIPTS) private readonly scripts: SessionScripts,
    @Inject(SessionPartitions) private readonly partitions: SessionPartitions,
    @Inject(SessionEpochs) private readonly epochs: SessionEpochs,
    @Inject(BackgroundLimiter) private readonly limiter: BackgroundLimiter,
  ) {}

  /** Ends what an epoch makes invalid, about once a second. */
  start(): void {
    this.#loop.start();
  }

  /** Resolves when all open calls have their replies. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#loop.stop();
  }

  /** Makes a pass over each partition with sessions that may have to be ended. */
  async runOnce({ signal }: { readonly signal?: AbortSignal } = {}): Promise<{ readonly ended: number }> {
    const nodes = [...partitionsByNode(this.client, this.partitions.all).values()];
    const counts = await Promise.all(nodes.map((its) => this.#endIn(its, signal)));
    return { ended: counts.reduce((sum, count) => sum + count, 0) };
  }

  async #endIn(partitions: readonly SessionKeys[], signal: AbortSignal | undefined): Promise<number> {
    let ended = 0;
    for (const keys of partitions) {
      const epoch = this.epochs.pending(keys);
      if (epoch === undefined || signal?.aborted) continue;
      // A request that loaded its session before the epoch was raised can rotate it past a scan.
      const isLast = (await this.#sinceRaise(keys, epoch)) >= FORWARDING_TIME;
      if (isLast || this.#clean.get(keys) !== epoch) ended += await this.#pass(keys, epoch, isLast, signal);
    }
    return ended;
  }

  async #pass(keys: SessionKeys, epoch: number, isLast: boolean, signal: AbortSignal | undefined): Promise<number> {
    let ended = 0;
    for await (const ids of this.#ids(keys)) {
      for (let i = 0; i < ids.length; i += ENDED_PER_CALL) {
        if (signal?.aborted) return ended;
        const batch = ids.slice(i, i + ENDED_PER_CALL);
        ended += await this.limiter.run(() => this.scripts.endOlder(keys, batch), keys.prefix);
      }
    }
    if (ended > 0) return ended;
    this.#clean.set(keys, epoch);
    if (isLast) await this.client.eval(RECORD_END, 1, keys.epoch, epoch);
    return 0;
  }

  /** How long ago an epoch was raised, in milliseconds. It may be of a time that was long ago even then. */
  async #sinceRaise(keys: SessionKeys, epoch: number): Promise<number> {
    const [[now], raised] = await Promise.all([
      nodeWith(this.client, keys.prefix).time(),
      this.client.hget(keys.epoch, 'raised'),
    ]);
    return Number(now) * 1000 - Number(raised ?? epoch);
  }

  /** The ids of all session hashes. Those of sessions that are there the whole time come at least once. */
  async *#ids(keys: SessionKeys): AsyncIterable<string[]> {
    const prefix = keys.session('');
    const all = ['MATCH', `${prefix}*`, 'COUNT', SCANNED_PER_CALL, 'TYPE', 'hash'] as const;
    const scan = (cursor: string) => nodeWith(this.client, keys.prefix).scan(cursor, ...all);
    const read = (cursor: string) => this.limiter.run(() => scan(cursor), keys.prefix);
    for await (const found of pages(read)) {
      yield found.map((key) => key.slice(prefix.length));
    }
  }
}
