import type { Redis } from 'ioredis';
import { fieldOf, sessionIdOf, toStreamEntry } from '../delivery/stream-entry.js';
import { pages } from '../expiration/scan-pages.js';
import type { PartitionLayout } from '../keys/partition-layout.js';
import { SessionKeys } from '../keys/session-keys.js';
import type { SessionPartitions } from '../keys/session-partitions.js';
import type { RepartitioningScripts } from '../scripts/repartitioning/repartitioning.scripts.js';
import type { BackgroundLimiter } from '../timing/background.limiter.js';

const SCANNED_PER_CALL = 500;
const LETTERS_PER_CALL = 50;

/** What moves to other partitions besides sessions. */
export class OtherKeys {
  readonly #old: PartitionLayout;
  readonly #next: PartitionLayout;

  constructor(
    private readonly client: Redis,
    private readonly partitions: SessionPartitions,
    private readonly scripts: RepartitioningScripts,
    private readonly limiter: BackgroundLimiter,
    /** Most bytes of the dead letters of a partition. */
    private readonly deadLetterSize: number,
  ) {
    const { layouts } = partitions;
    [this.#old, this.#next] = [layouts[0]!, layouts[layouts.length - 1]!];
  }

  /** The marks that outlive the move: those of takeovers and of revocations. */
  async moveMarks(): Promise<void> {
    for await (const keys of this.scan((partition) => partition.takeoverMark('*'))) {
      for (const key of keys) await this.limiter.run(() => this.#moveTakeover(key), key);
    }
    for await (const keys of this.scan((partition) => `${revocationsOf(partition)}*`)) {
      for (const key of keys) await this.limiter.run(() => this.#moveRevocation(key), key);
    }
  }

  async #moveTakeover(key: string): Promise<void> {
    const id = key.slice(key.lastIndexOf(':') + 1);
    const [from, to] = [this.#old.of(id), this.#next.of(id)];
    if (from.takeoverMark(id) !== key || from === to) return;
    if ((await this.client.renamenx(key, to.takeoverMark(id))) === 0) await this.client.unlink(key);
  }

  async #moveRevocation(key: string): Promise<void> {
    const from = this.#old.all.find((keys) => key.startsWith(revocationsOf(keys)));
    const left = await this.client.pttl(key);
    if (!from || left < 0) return;
    const name = key.slice(from.prefix.length);
    // What is taken over may be in any partition.
    await Promise.all(this.#next.all.map(({ prefix }) => this.client.set(prefix + name, '', 'PX', left, 'NX')));
    if (this.partitions.leaving.includes(from)) await this.client.unlink(key);
  }

  /** Dead letters. */
  async moveLetters(): Promise<void> {
    for (const keys of this.partitions.leaving) await this.#moveLettersOf(keys);
  }

  async #moveLettersOf(from: SessionKeys): Promise<void> {
    for (;;) {
      const letters = await this.client.xrange(from.deadLetters, '-', '+', 'COUNT', LETTERS_PER_CALL);
      for (const letter of letters) {
        const entry = toStreamEntry(from, letter);
        const id = sessionIdOf(entry) ?? from.idOfMember(fieldOf(entry, 'member') ?? '');
        const move = () => this.scripts.moveDeadLetter(from, this.#next.of(id), entry.position, this.deadLetterSize);
        await this.limiter.run(move, from.prefix);
      }
      if (letters.length === 0) return;
    }
  }

  /** Counts, and the ledgers that no sign-in has taken along: they are made anew. */
  async moveRest(): Promise<void> {
    const [first] = this.#next.all as [SessionKeys];
    for (const keys of this.partitions.leaving) {
      await this.scripts.moveCounts(keys.dropped, first.dropped);
      await this.scripts.moveCounts(keys.lostDeadLetters, first.lostDeadLetters);
    }
    const ledgerOf = (keys: SessionKeys) => keys.ledger('*');
    for await (const keys of this.scan(ledgerOf)) {
      for (const key of keys) {
        const from = this.#old.all.find((each) => key.startsWith(each.ledger('')));
        const principal = from && key.slice(from.ledger('').length);
        if (principal !== undefined && this.#next.of(principal) !== from) await this.client.unlink(key);
      }
    }
  }

  /** The keys of the old layout that match a pattern of its partitions, page by page. */
  async *scan(patternIn: (keys: SessionKeys) => string): AsyncIterable<string[]> {
    const any = this.#old.count === 1 ? this.#old.all[0]! : new SessionKeys(this.partitions.namespace, '*');
    const options = ['MATCH', patternIn(any), 'COUNT', SCANNED_PER_CALL] as const;
    yield* pages((cursor) => this.limiter.run(() => this.client.scan(cursor, ...options), any.prefix));
  }
}

/** The beginning of the revocation marks of a partition. */
function revocationsOf(keys: SessionKeys): string {
  return keys.revocationMark('', '').slice(0, -1);
}
