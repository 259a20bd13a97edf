import type { Redis } from 'ioredis';
import { isReply, type Pace, type PartitionKeys, type Partitions } from '@nest-session/redis-events/internal';
import { type ScannedKey, scannedKeys } from '../repartitioning/scanned-keys.js';
import type { ExpectedKey, Problem, VerificationScripts } from '../scripts/verification/verification.scripts.js';
import type { FoundKey, KeyKind } from './key-kind.js';
import { groupedBy } from './grouped-by.js';

const PER_CALL = 50;

type Kinds<Keys extends PartitionKeys> = readonly KeyKind<Keys>[];

/** A key, and its kind. */
interface Classified<Keys extends PartitionKeys> {
  readonly found: FoundKey<Keys>;
  readonly kind: KeyKind<Keys>;
}

/** Looks at every key of a namespace once, beside whatever uses it. */
export class VerificationRun<Keys extends PartitionKeys> {
  constructor(
    private readonly client: Redis,
    private readonly partitions: Partitions<Keys>,
    private readonly kinds: Kinds<Keys>,
    private readonly scripts: Pick<VerificationScripts, 'keys'>,
    private readonly pace: Pace,
  ) {}

  /** @param tell receives what was found, from time to time */
  async run(tell: (problems: readonly Problem[]) => void): Promise<void> {
    tell(await this.#verifyCommonKeys());
    for await (const keys of scannedKeys(this.client, this.partitions, '*')) {
      await this.pace.pass(keys.length);
      for (const [partition, its] of groupedBy(this.#classified(keys), ({ found }) => found.partition)) {
        for (let i = 0; i < its.length; i += PER_CALL) await this.#verify(partition, its.slice(i, i + PER_CALL), tell);
      }
    }
  }

  /** Those that belong to no partition. */
  #verifyCommonKeys(): Promise<Problem[]> {
    const { meta, instances, namespace } = this.partitions;
    const all: ExpectedKey[] = [
      { key: meta, type: 'hash', life: 'never' },
      { key: instances, type: 'zset', life: 'never' },
    ];
    return Promise.all(all.map((each) => this.scripts.keys(`${namespace}:`, [each]))).then((found) => found.flat());
  }

  #classified(keys: readonly ScannedKey<Keys>[]): Classified<Keys>[] {
    return keys.flatMap(({ key, partition, name }) => {
      for (const kind of this.kinds) {
        const match = kind.name.exec(name);
        if (match) return [{ kind, found: { key, partition, part: match[1] ?? '' } }];
      }
      return [];
    });
  }

  async #verify(
    partition: Keys,
    all: readonly Classified<Keys>[],
    tell: (problems: readonly Problem[]) => void,
  ): Promise<void> {
    const expected = all.map(({ found: { key }, kind: { type, life } }) => ({ key, type, life }));
    const problems = await this.scripts.keys(partition.prefix, expected);
    tell(problems);
    const strays = new Set(problems.filter(({ rule }) => rule === 'wrong-type').map(({ what }) => what));
    for (const [kind, its] of groupedBy(all, (each) => each.kind)) {
      const found = its.map((each) => each.found).filter(({ key }) => !strays.has(key));
      if (kind.verify && found.length > 0) {
        const parts = found.map(({ part }) => part);
        tell(await kind.verify(partition, parts));
      }
      for (const each of kind.contents ? found : []) await this.#look(kind.contents!(each), tell);
    }
  }

  async #look(
    looks: ReturnType<NonNullable<KeyKind<Keys>['contents']>>,
    tell: (problems: readonly Problem[]) => void,
  ): Promise<void> {
    try {
      for await (const { items, problems } of looks) {
        tell(problems);
        await this.pace.pass(items);
      }
    } catch (error) {
      // Somebody has replaced, or removed, the key since it was looked at.
      if (!isReply(error, 'WRONGTYPE') && !isReply(error, 'NOGROUP') && !isReply(error, 'ERR no such')) throw error;
    }
  }
}
