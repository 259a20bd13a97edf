import slotOf from 'cluster-key-slot';
import type { SessionKeys } from './session-keys.js';

const SLOTS = 16_384;

/**
 * A fixed number of partitions. All keys of a partition are in one slot of Redis Cluster, so that one script can use them.
 * The slots of the partitions are spread evenly.
 */
export class PartitionLayout {
  /** The keys of each partition. */
  readonly all: readonly SessionKeys[];

  /** `keysOf`: the keys with a hash tag, which partitions of several layouts may have. */
  constructor(
    readonly count: number,
    keysOf: (tag: string) => SessionKeys,
  ) {
    const tags = count === 1 ? [''] : tagsOf(count);
    this.all = tags.map(keysOf);
  }

  /** The partition of a session id. It depends on the whole id, because not all ids are random. */
  of(id: string): SessionKeys {
    // A microsecond that an application with one partition need not spend.
    return this.all[this.count === 1 ? 0 : slotOf(id) % this.count]!;
  }
}

/** For each partition a hash tag that begins with its number and has a slot in its share of all slots. */
function tagsOf(count: number): string[] {
  return Array.from({ length: count }, (_, partition) => {
    for (let attempt = 0; ; attempt++) {
      const tag = `${partition}-${attempt}`;
      if (Math.floor((slotOf(tag) * count) / SLOTS) === partition) return tag;
    }
  });
}
