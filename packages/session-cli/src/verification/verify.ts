import { DeadlinePartitions, DeadlineScripts } from '@nest-session/deadlines/redis/internal';
import {
  type Finding,
  FindingCounter,
  isReply,
  Pace,
  type PartitionKeys,
  type Partitions,
} from '@nest-session/redis-events/internal';
import {
  batchesOf,
  keepingRules,
  pages,
  type ResolvedRedisSessionOptions,
  type SessionPartitions,
  SessionScripts,
} from '@nest-session/redis/internal';
import type { Redis } from 'ioredis';
import { groupedBy, scannedKeys } from '../repartitioning/scanned-keys.js';
import { type ExpectedKey, type Problem, VerificationScripts } from '../scripts/verification/verification.scripts.js';
import { deadlineKinds } from './deadline-kinds.js';
import { eventKinds } from './event-kinds.js';
import { type FoundKey, type KeyKind, type Look, PER_CALL } from './key-kind.js';
import type { Rule } from './rules.js';
import { sessionKinds } from './session-kinds.js';

/** How a namespace is verified. */
export interface VerifyOptions {
  /** Mends what it finds. @default false */
  readonly repair?: boolean;
  /** Keys and members in a second at most. @default 20,000 */
  readonly rate?: number;
  readonly signal?: AbortSignal | undefined;
  /** Receives how many keys and members have been looked at, from time to time. */
  readonly onProgress?: (looked: number) => void;
}

/** What `verify()` has found. */
export interface Verification {
  /** Ordered by rule; what was mended is among them. */
  readonly findings: readonly Finding<Rule>[];
  /** What is left after it was mended; empty unless `repair` was asked for. */
  readonly left: readonly Finding<Rule>[];
  /** The number of keys and members that were looked at. */
  readonly looked: number;
}

/** The store that is verified. */
export interface VerifiedStore {
  readonly client: Redis;
  readonly partitions: SessionPartitions | DeadlinePartitions;
  /** How long data is kept that is mended. */
  readonly options: Pick<ResolvedRedisSessionOptions, 'grace' | 'events' | 'expirations'>;
}

const RATE = 20_000;
// Mending one thing can show another: a stray key hid what it stood for.
const MOST_PASSES = 5;

/**
 * Looks for what breaks a rule of the data model, beside the applications that use the namespace. It changes nothing
 * unless `repair` is asked for.
 */
export async function verify(
  store: VerifiedStore,
  { repair = false, rate = RATE, signal, onProgress = () => undefined }: VerifyOptions = {},
): Promise<Verification> {
  const pace = new Pace(rate, signal);
  const pass = async () => {
    const counter = new FindingCounter<Rule>();
    await verifyOnce(store, pace, repair, (problems) => {
      counter.add(problems);
      onProgress(pace.passed);
    });
    return counter.all;
  };
  const findings = await pass();
  let left = repair && findings.length > 0 ? await pass() : [];
  for (let i = 2; i < MOST_PASSES && left.length > 0; i++) left = await pass();
  return { findings, left, looked: pace.passed };
}

/** Receives what was found, from time to time. */
type Tell = (problems: readonly Problem[]) => void;

async function verifyOnce(
  { client, options, partitions }: VerifiedStore,
  pace: Pace,
  mends: boolean,
  tell: Tell,
): Promise<void> {
  const scripts = new VerificationScripts(client, mends);
  const ofEvents = eventKinds(client, scripts);
  if (partitions instanceof DeadlinePartitions) {
    const kinds = deadlineKinds(client, partitions, scripts, mends ? new DeadlineScripts(client) : undefined);
    return new Pass(client, partitions, [...ofEvents, ...kinds], scripts, pace, tell).run();
  }
  const claims = mends ? new SessionScripts(client, partitions, keepingRules(options, partitions)) : undefined;
  const rules = { grace: options.grace, retention: options.events.retention };
  const kinds = sessionKinds(client, partitions, scripts, claims, rules);
  return new Pass(client, partitions, [...ofEvents, ...kinds], scripts, pace, tell).run();
}

/** A key, and its kind. */
interface Classified<Keys extends PartitionKeys> {
  readonly found: FoundKey<Keys>;
  readonly kind: KeyKind<Keys>;
}

/** Looks at every key of a namespace once, beside whatever uses it. */
class Pass<Keys extends PartitionKeys> {
  constructor(
    private readonly client: Redis,
    private readonly partitions: Partitions<Keys>,
    private readonly kinds: readonly KeyKind<Keys>[],
    private readonly scripts: VerificationScripts,
    private readonly pace: Pace,
    private readonly tell: Tell,
  ) {}

  async run(): Promise<void> {
    const { meta, instances, namespace } = this.partitions;
    // Those that belong to no partition, and may be on two nodes.
    const common: ExpectedKey[] = [
      { key: meta, type: 'hash', life: 'never' },
      { key: instances, type: 'zset', life: 'never' },
    ];
    for (const each of common) this.tell(await this.scripts.keys(`${namespace}:`, [each]));
    for await (const keys of scannedKeys(this.client, this.partitions, '*')) {
      await this.pace.pass(keys.length);
      const known = keys.flatMap(({ key, partition, name }) => this.#classified(key, partition, name));
      for (const [partition, its] of groupedBy(known, ({ found }) => found.partition)) {
        for (const some of batchesOf(its, PER_CALL)) await this.#verify(partition, some);
      }
    }
  }

  #classified(key: string, partition: Keys, name: string): Classified<Keys>[] {
    const kind = this.kinds.find((each) => each.name.test(name));
    return kind ? [{ kind, found: { key, partition, part: kind.name.exec(name)![1] ?? '' } }] : [];
  }

  async #verify(partition: Keys, all: readonly Classified<Keys>[]): Promise<void> {
    const expected = all.map(({ found: { key }, kind: { type, life } }) => ({ key, type, life }));
    const problems = await this.scripts.keys(partition.prefix, expected);
    this.tell(problems);
    const strays = new Set(problems.filter(({ rule }) => rule === 'wrong-type').map(({ what }) => what));
    for (const [kind, its] of groupedBy(all, (each) => each.kind)) {
      const found = its.map((each) => each.found).filter(({ key }) => !strays.has(key));
      const parts = found.map(({ part }) => part);
      if (kind.verify && found.length > 0) this.tell(await kind.verify(partition, parts));
      for (const each of found) await this.#look(kind, each);
    }
  }

  async #look(kind: KeyKind<Keys>, found: FoundKey<Keys>): Promise<void> {
    try {
      if (kind.items) for await (const look of this.#items(kind, found)) await this.#note(look);
      if (kind.contents) for await (const look of kind.contents(found)) await this.#note(look);
    } catch (error) {
      // Somebody has replaced, or removed, the key since it was looked at.
      if (!isReply(error, 'WRONGTYPE') && !isReply(error, 'NOGROUP') && !isReply(error, 'ERR no such')) throw error;
    }
  }

  async *#items({ type, items: verifyItems }: KeyKind<Keys>, found: FoundKey<Keys>): AsyncIterable<Look> {
    const { key } = found;
    const read = async (cursor: string): Promise<[string, string[]]> => {
      if (type === 'set') return this.client.sscan(key, cursor, 'COUNT', PER_CALL);
      const scan =
        type === 'hash'
          ? this.client.hscan(key, cursor, 'COUNT', PER_CALL)
          : this.client.zscan(key, cursor, 'COUNT', PER_CALL);
      const [next, entries] = await scan;
      return [next, entries.filter((_, i) => i % 2 === 0)];
    };
    for await (const items of pages(read)) {
      if (items.length > 0) yield { items: items.length, problems: await verifyItems!(found, items) };
    }
  }

  async #note({ items, problems }: Look): Promise<void> {
    this.tell(problems);
    await this.pace.pass(items);
  }
}
