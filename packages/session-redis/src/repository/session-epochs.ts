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

// Milliseconds between two reads of an epoch, two confirmations of its signals, and two passes; of trust in an epoch.
const INTERVAL = 1000;
const LEASE = 2000;

interface Epoch {
  /** Epoch milliseconds; -Infinity: never raised. */
  readonly at: number;
  /** The epoch up to which the background work has ended all sessions. */
  readonly endedAt: number;
  /** The monotonic time at which Redis was asked. */
  readonly askedAt: number;
}

/** The epochs as this instance knows them, read or confirmed every second so that loads need not read them. */
@Injectable()
export class SessionEpochs {
  readonly #known = new Map<SessionKeys, Epoch>();
  onRaise: (() => void) | undefined;

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

  /** The known epoch was still current at a monotonic time. */
  confirm(keys: SessionKeys, at: number): void {
    const known = this.#known.get(keys);
    if (known && known.askedAt < at) this.#known.set(keys, { ...known, askedAt: at });
  }

  isStale(keys: SessionKeys): boolean {
    const known = this.#known.get(keys);
    return known === undefined || performance.now() - known.askedAt > LEASE;
  }

  ends(keys: SessionKeys, session: Pick<SessionRecord, 'creationTime' | 'authenticatedAt'>): boolean {
    const at = this.#known.get(keys)?.at;
    return at !== undefined && beganAt(session) <= at;
  }

  /** The epoch of a partition, while sessions are still to be ended. */
  pending(keys: SessionKeys): number | undefined {
    const known = this.#known.get(keys);
    return known && known.endedAt < known.at ? known.at : undefined;
  }
}

// Milliseconds between two reads of an epoch whose changes signals report.
const SLOW_INTERVAL = 300_000;

/** Keeps the epochs up to date by signals, or by a read every second. If both fail, each load reads its epoch. */
@Injectable()
export class SessionEpochsListener implements BackgroundService {
  readonly #loop = new PollingLoop('The check of the epochs', INTERVAL, () => this.#look());
  /** When epochs were read whose signals arrive: monotonic times. */
  readonly #followed = new Map<SessionKeys, number>();
  /** The last reads that have no reply yet. */
  readonly #asked = new Map<SessionKeys, object>();

  constructor(
    @InjectConnection('background') private readonly client: Redis,
    @Inject(SessionPartitions) private readonly partitions: Pick<SessionPartitions, 'all'>,
    @Inject(SessionEpochs) private readonly epochs: SessionEpochs,
    @Inject(PartitionSignals)
    private readonly signals: Pick<PartitionSignals<SessionKeys>, 'onSignal' | 'onConfirmation' | 'heardSince'>,
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

  stop(): Promise<void> {
    return this.#loop.stop();
  }

  async #look(): Promise<void> {
    const due = this.partitions.all.filter((keys) => !this.#asked.has(keys) && this.#isDue(keys));
    await settledWithin(INTERVAL, Promise.all(due.map((keys) => this.#ask(keys))));
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
    const question = this.epochs.ask(this.client, keys).then(
      () => true,
      () => false,
    );
    this.#asked.set(keys, question);
    const hasReply = await question;
    // A signal has arrived since then, so only the reply to the next read may be confirmed.
    if (this.#asked.get(keys) !== question) return;
    this.#asked.delete(keys);
    // If a signal may have been missed since then, the partition needs another read.
    if (hasReply && this.signals.heardSince(keys) <= askedAt) this.#followed.set(keys, askedAt);
  }
}

/** Ends every session that began until `at`, by default now. Returns until when that holds in all partitions. */
export async function raiseEpochs(
  connection: RequestConnection,
  scripts: ScriptsOn<SessionScripts>,
  partitions: SessionPartitions,
  at?: number,
): Promise<number> {
  // A signal from inside the script would be lost during a slot migration. If Redis has forgotten the script, the first
  // signal comes before the script.
  const replies = await connection.writeInAll(partitions, (client, keys) => {
    const signal = () => keys.hasSignals && client.spublish(keys.events, 'epoch');
    const raised = scripts(client).raiseEpoch(keys, at);
    return Promise.all([raised, signal(), raised.then(signal)]);
  });
  return Math.min(...replies.map(([epoch]) => Number(epoch)));
}

const ENDED_PER_CALL = 50;

/**
 * Ends the sessions that `endEverySession()` has made invalid, endless ones included, so that their ends are reported.
 * Any number of instances may do this at once. An unfinished pass is begun again.
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

  start(): void {
    this.#loop.start();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#loop.stop();
  }

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

  /** In milliseconds. The epoch itself may be of a time that was long ago even then. */
  async #sinceRaise(keys: SessionKeys, epoch: number): Promise<number> {
    const asked = this.client.hget(keys.epoch, 'raised');
    const [now, raised] = await Promise.all([redisTime(nodeWith(this.client, keys.prefix)), asked]);
    return now - Number(raised ?? epoch);
  }
}
