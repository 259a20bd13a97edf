import { Inject, Injectable } from '@nestjs/common';
import { beganAt, FORWARDING_TIME } from '@nest-session/core/internal';
import { PollingLoop, type SessionRecord } from '@nest-session/core/store';
import {
  BackgroundLimiter,
  type BackgroundService,
  InjectConnection,
  nodeWith,
  partitionsByNode,
  redisTime,
  PartitionSignals,
  type RequestConnection,
  type ScriptsOn,
  settledWithin,
} from '@nest-session/redis-events/internal';
import type { Redis } from 'ioredis';
import { BACKGROUND_SESSION_SCRIPTS } from '../configuration/redis-session.tokens.js';
import { storedSessionIds } from '../keys/scan-pages.js';
import type { SessionKeys } from '../keys/session-keys.js';
import { SessionPartitions } from '../keys/session-partitions.js';
import type { SessionScripts } from '../scripts/session/session.scripts.js';

/** Milliseconds between two reads of an epoch, and between two confirmations if signals would report a change. */
const EPOCH_INTERVAL = 1000;
// Milliseconds for which a known epoch is trusted.
const LEASE = 2000;

interface Epoch {
  /** Epoch milliseconds. -Infinity if the epoch was never raised. */
  readonly at: number;
  /** The epoch up to which the background work has ended all sessions. */
  readonly endedAt: number;
  /** The monotonic time at which Redis was asked. */
  readonly askedAt: number;
}

/**
 * The epoch of each partition, as this instance knows it. A session that began before its epoch has ended. Either a
 * poll reads the epochs every second, or a subscription to them is confirmed as often, so loads do not have to read
 * them.
 */
@Injectable()
export class SessionEpochs {
  readonly #known = new Map<SessionKeys, Epoch>();
  /** Called when an epoch was raised. */
  onRaise: (() => void) | undefined;

  /** Reads the epoch of a partition. */
  async ask(client: Redis, keys: SessionKeys): Promise<void> {
    const askedAt = performance.now();
    const [at, endedAt] = await client.hmget(keys.epoch, 'at', 'ended');
    // Replies on two connections may arrive in another order than the requests.
    const known = this.#known.get(keys);
    if ((known?.askedAt ?? 0) > askedAt) return;
    const epoch = { at: Number(at ?? -Infinity), endedAt: Number(endedAt ?? -Infinity), askedAt };
    this.#known.set(keys, epoch);
    if (known && epoch.at > known.at) this.onRaise?.();
  }

  /** Confirms that the known epoch of a partition was still current at a monotonic time. */
  confirm(keys: SessionKeys, at: number): void {
    const known = this.#known.get(keys);
    if (known && known.askedAt < at) this.#known.set(keys, { ...known, askedAt: at });
  }

  /** Whether a load has to read the epoch of its partition. */
  isStale(keys: SessionKeys): boolean {
    const known = this.#known.get(keys);
    return known === undefined || performance.now() - known.askedAt > LEASE;
  }

  /** Whether a session has ended by the epoch of its partition. */
  ends(keys: SessionKeys, session: Pick<SessionRecord, 'creationTime' | 'authenticatedAt'>): boolean {
    const at = this.#known.get(keys)?.at;
    return at !== undefined && beganAt(session) <= at;
  }

  /** The epoch of a partition that still has sessions to end; undefined if there are none. */
  pending(keys: SessionKeys): number | undefined {
    const known = this.#known.get(keys);
    return known && known.endedAt < known.at ? known.at : undefined;
  }
}

/** The signals that the listener needs. */
export type EpochSignals = Pick<PartitionSignals<SessionKeys>, 'onSignal' | 'onConfirmation' | 'heardSince'>;

// Milliseconds between two reads of an epoch whose changes signals report.
const SLOW_INTERVAL = 300_000;

/**
 * Keeps the epochs up to date that loads compare with. It follows the signals of a partition, or reads the epoch once a
 * second. If both fail, each load reads the epoch.
 */
@Injectable()
export class SessionEpochsListener implements BackgroundService {
  readonly #loop = new PollingLoop('The check of the epochs', EPOCH_INTERVAL, () => this.#look());
  /** The partitions whose epoch was read after their signals arrived, with the monotonic time of the read. */
  readonly #followed = new Map<SessionKeys, number>();
  /** The last read of each partition's epoch that its node has not replied to yet. */
  readonly #asked = new Map<SessionKeys, object>();

  constructor(
    @InjectConnection('background') private readonly client: Redis,
    @Inject(SessionPartitions) private readonly partitions: Pick<SessionPartitions, 'all'>,
    @Inject(SessionEpochs) private readonly epochs: SessionEpochs,
    @Inject(PartitionSignals) private readonly signals: EpochSignals,
  ) {
    signals.onSignal((keys, signal) => {
      if (signal !== 'missed' && signal !== 'epoch') return;
      this.#followed.delete(keys);
      void this.#ask(keys);
    });
    signals.onConfirmation((confirmed, since) => {
      for (const keys of confirmed) if (this.#followed.has(keys)) this.epochs.confirm(keys, since);
    });
  }

  start(): void {
    this.#loop.start();
  }

  /** Resolves when all open calls have their replies. */
  stop(): Promise<void> {
    return this.#loop.stop();
  }

  async #look(): Promise<void> {
    const due = this.partitions.all.filter((keys) => !this.#asked.has(keys) && this.#isDue(keys));
    await settledWithin(EPOCH_INTERVAL, Promise.all(due.map((keys) => this.#ask(keys))));
  }

  #isDue(keys: SessionKeys): boolean {
    const askedAt = this.#followed.get(keys) ?? -Infinity;
    const isKnown = askedAt >= this.signals.heardSince(keys) && performance.now() - askedAt < SLOW_INTERVAL;
    // Another instance may end the last session, so keep reading.
    return !isKnown || this.epochs.pending(keys) !== undefined;
  }

  /** Never rejects. */
  async #ask(keys: SessionKeys): Promise<void> {
    const askedAt = performance.now();
    const question = {};
    const isLast = () => this.#asked.get(keys) === question;
    this.#asked.set(keys, question);
    try {
      await this.epochs.ask(this.client, keys);
      // A signal has arrived since then, so only the reply to the next read may be confirmed.
      if (!isLast()) return;
    } catch {
      return;
    } finally {
      if (isLast()) this.#asked.delete(keys);
    }
    // If a signal may have been missed since then, the partition needs another read.
    if (this.signals.heardSince(keys) <= askedAt) this.#followed.set(keys, askedAt);
  }
}

/**
 * Says that every session that was created and signed in to until a time is over, and tells the instances. They record
 * the ends. Returns the time until which that holds in all partitions; it is later than `at` if sessions were ended so
 * before.
 * @param at epoch milliseconds, by default now
 */
export async function raiseEpochs(
  connection: RequestConnection,
  scripts: ScriptsOn<SessionScripts>,
  partitions: SessionPartitions,
  at?: number,
): Promise<number> {
  // Send the signal together with the script, whatever the replies will be. A signal from inside the script would be
  // lost during a slot migration. Send it again after the reply: if Redis has forgotten the script, the first signal
  // comes before the script.
  const replies = await connection.writeInAll(partitions, (client, keys) => {
    const signal = () => keys.hasSignals && client.spublish(keys.events, 'epoch');
    const raised = scripts(client).raiseEpoch(keys, at);
    return Promise.all([raised, signal(), raised.then(signal)]);
  });
  return Math.min(...replies.map(([epoch]) => Number(epoch)));
}

// Milliseconds.
const INTERVAL = 1000;
const ENDED_PER_CALL = 50;

/**
 * Ends the sessions that `endEverySession()` has made invalid, endless ones included, so that their ends are reported.
 * Any number of instances may do this at once. A pass that an instance did not finish is begun again, by any instance.
 */
@Injectable()
export class OlderSessionSweeper implements BackgroundService {
  /** By partition, the epoch for which a pass has found nothing. */
  readonly #clean = new Map<SessionKeys, number>();
  readonly #stopping = new AbortController();

  readonly #loop = new PollingLoop('The end of every session', INTERVAL, () => this.runOnce(this.#stopping));

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
    let ended = 0;
    const endIn = async (partitions: readonly SessionKeys[]) => {
      for (const keys of partitions) if (!signal?.aborted) ended += await this.#pass(keys, signal);
    };
    await Promise.all([...partitionsByNode(this.client, this.partitions.all).values()].map(endIn));
    return { ended };
  }

  async #pass(keys: SessionKeys, signal: AbortSignal | undefined): Promise<number> {
    const epoch = this.epochs.pending(keys);
    if (epoch === undefined) return 0;
    // A request that loaded its session before the epoch was raised can rotate it past a scan.
    const isLast = (await this.#sinceRaise(keys, epoch)) >= FORWARDING_TIME;
    if (!isLast && this.#clean.get(keys) === epoch) return 0;
    let ended = 0;
    const paced = <T>(call: () => Promise<T>) => this.limiter.run(call, keys.prefix);
    for await (const ids of storedSessionIds(this.client, keys, paced)) {
      for (let i = 0; i < ids.length; i += ENDED_PER_CALL) {
        if (signal?.aborted) return ended;
        const batch = ids.slice(i, i + ENDED_PER_CALL);
        ended += await paced(() => this.scripts.endOlder(keys, batch));
      }
    }
    if (ended > 0) return ended;
    this.#clean.set(keys, epoch);
    if (isLast) await this.scripts.finishEpoch(keys, epoch);
    return 0;
  }

  /** How long ago an epoch was raised, in milliseconds. It may be of a time that was long ago even then. */
  async #sinceRaise(keys: SessionKeys, epoch: number): Promise<number> {
    const asked = this.client.hget(keys.epoch, 'raised');
    const [now, raised] = await Promise.all([redisTime(nodeWith(this.client, keys.prefix)), asked]);
    return now - Number(raised ?? epoch);
  }
}
