import { DeadlinePartitions, DeadlineScripts } from '@nest-session/deadlines/redis/internal';
import { groupedBy, isReply, Pace, type PartitionKeys, type Partitions } from '@nest-session/redis-events/internal';
import {
  batchesOf,
  keepingRules,
  pages,
  type ResolvedRedisSessionOptions,
  type SessionPartitions,
  SessionScripts,
} from '@nest-session/redis/internal';
import type { Redis } from 'ioredis';
import { scannedKeys } from '../repartitioning/scanned-keys.js';
import { type Problem, VerificationScripts } from '../scripts/verification/verification.scripts.js';
import { deadlineKinds, eventKinds, type FoundKey, type KeyKind, PER_CALL, sessionKinds } from './key-kinds.js';
import type { Rule } from './rules.js';

export interface VerifyOptions {
  readonly repair?: boolean;
  /** Keys and members in a second at most. @default 20,000 */
  readonly rate?: number;
  readonly signal?: AbortSignal | undefined;
  readonly onProgress?: (looked: number) => void;
}

interface Finding {
  readonly rule: Rule;
  count: number;
  /** The first three: keys, ids, members or positions. */
  readonly examples: string[];
}

export interface Verification {
  /** Ordered by rule; what was mended is among them. */
  readonly findings: readonly Finding[];
  /** What is left after it was mended; empty unless `repair` was asked for. */
  readonly left: readonly Finding[];
  readonly looked: number;
}

export interface VerifiedStore {
  readonly client: Redis;
  readonly partitions: SessionPartitions | DeadlinePartitions;
  readonly options: Pick<ResolvedRedisSessionOptions, 'grace' | 'events' | 'expirations'>;
}

const RATE = 20_000;
// Mending one thing can show another: a stray key hid what it stood for.
const MOST_PASSES = 5;
const EXAMPLES = 3;
const ASIDE_FOR = 30 * 86_400_000;

/** Beside the applications that use the namespace. It changes nothing unless `repair` is asked for. */
export async function verify(
  store: VerifiedStore,
  { repair = false, rate = RATE, signal, onProgress = () => undefined }: VerifyOptions = {},
): Promise<Verification> {
  const pace = new Pace(rate, signal);
  const pass = async () => {
    const found = new Map<Rule, Finding>();
    for await (const problems of problemsOf(store, pace, repair)) {
      for (const problem of problems) count(found, problem);
      onProgress(pace.passed);
    }
    return [...found.values()].toSorted((one, other) => (one.rule < other.rule ? -1 : 1));
  };
  const findings = await pass();
  let left = repair && findings.length > 0 ? await pass() : [];
  for (let i = 2; i < MOST_PASSES && left.length > 0; i++) left = await pass();
  return { findings, left, looked: pace.passed };
}

function count(found: Map<Rule, Finding>, { rule, what }: Problem): void {
  const finding = found.get(rule) ?? { rule, count: 0, examples: [] };
  found.set(rule, finding);
  finding.count++;
  if (finding.examples.length < EXAMPLES) finding.examples.push(what);
}

type Problems = AsyncIterable<readonly Problem[]>;

function problemsOf({ client, options, partitions }: VerifiedStore, pace: Pace, mends: boolean): Problems {
  const scripts = new VerificationScripts(client, mends);
  const ofEvents = eventKinds(client, scripts);
  if (partitions instanceof DeadlinePartitions) {
    const kinds = deadlineKinds(client, partitions, scripts, mends ? new DeadlineScripts(client) : undefined);
    return problemsIn(partitions, [...ofEvents, ...kinds], { client, scripts, pace });
  }
  const claims = mends ? new SessionScripts(client, partitions, keepingRules(options, partitions)) : undefined;
  const rules = { grace: options.grace, retention: options.events.retention };
  const kinds = sessionKinds(client, partitions, scripts, claims, rules);
  return problemsIn(partitions, [...ofEvents, ...kinds], { client, scripts, pace });
}

interface Tools {
  readonly client: Redis;
  readonly scripts: VerificationScripts;
  readonly pace: Pace;
}

type KnownKey<Keys extends PartitionKeys> = FoundKey<Keys> & { readonly kind: KeyKind<Keys> };

async function* problemsIn<Keys extends PartitionKeys>(
  partitions: Partitions<Keys>,
  kinds: readonly KeyKind<Keys>[],
  tools: Tools,
): Problems {
  const { client, scripts, pace } = tools;
  const { meta, instances, namespace } = partitions;
  // They belong to no partition, and may be on two nodes.
  yield scripts.find('verify-keys', [meta], `${namespace}:`, ASIDE_FOR, 'hash', 'never');
  yield scripts.find('verify-keys', [instances], `${namespace}:`, ASIDE_FOR, 'zset', 'never');
  for await (const keys of scannedKeys(client, partitions, '*')) {
    await pace.pass(keys.length);
    const known = keys.flatMap(({ key, partition, name }): KnownKey<Keys>[] => {
      const kind = kinds.find((each) => each.name.test(name));
      return kind ? [{ key, partition, kind, part: kind.name.exec(name)![1] ?? '' }] : [];
    });
    for (const [partition, its] of groupedBy(known, (each) => each.partition)) {
      for (const some of batchesOf(its, PER_CALL)) yield* problemsAmong(partition, some, tools);
    }
  }
}

async function* problemsAmong<Keys extends PartitionKeys>(
  partition: Keys,
  all: readonly KnownKey<Keys>[],
  tools: Tools,
): Problems {
  const names = all.map(({ key }) => key);
  const expected = all.flatMap(({ kind: { type, life } }) => [type, life]);
  const problems = await tools.scripts.find('verify-keys', names, partition.prefix, ASIDE_FOR, ...expected);
  yield problems;
  const strays = new Set(problems.filter(({ rule }) => rule === 'wrong-type').map(({ what }) => what));
  const sound = all.filter(({ key }) => !strays.has(key));
  for (const [kind, its] of groupedBy(sound, (each) => each.kind)) {
    if (kind.verify)
      yield kind.verify(
        partition,
        its.map(({ part }) => part),
      );
    for (const each of its) yield* problemsInside(each, tools);
  }
}

async function* problemsInside<Keys extends PartitionKeys>(found: KnownKey<Keys>, tools: Tools): Problems {
  const { items: verifyItems, contents } = found.kind;
  try {
    if (verifyItems) {
      for await (const items of itemsOf(found, tools.client)) {
        if (items.length > 0) yield verifyItems(found, items);
        await tools.pace.pass(items.length);
      }
    }
    for await (const { items, problems } of contents?.(found) ?? []) {
      yield problems;
      await tools.pace.pass(items);
    }
  } catch (error) {
    // Somebody has replaced, or removed, the key since it was looked at.
    if (!isReply(error, 'WRONGTYPE') && !isReply(error, 'NOGROUP') && !isReply(error, 'ERR no such')) throw error;
  }
}

function itemsOf<Keys extends PartitionKeys>({ key, kind }: KnownKey<Keys>, client: Redis): AsyncIterable<string[]> {
  return pages(async (cursor) => {
    if (kind.type === 'set') return client.sscan(key, cursor, 'COUNT', PER_CALL);
    const isHash = kind.type === 'hash';
    const scan = isHash ? client.hscan(key, cursor, 'COUNT', PER_CALL) : client.zscan(key, cursor, 'COUNT', PER_CALL);
    const [next, entries] = await scan;
    return [next, entries.filter((_, i) => i % 2 === 0)];
  });
}
