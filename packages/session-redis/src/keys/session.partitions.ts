import slotOf from 'cluster-key-slot';
import { SessionKeys } from './session.keys.js';

const SLOTS = 16_384;

/**
 * The partitions that the sessions of a namespace fall into, a fixed number of them. All keys of a partition are in one
 * slot of Redis Cluster, where one script may touch them; the slots of all partitions are spread evenly.
 */
export class SessionPartitions {
  /** The keys of each. */
  readonly all: readonly SessionKeys[];

  constructor(
    readonly namespace: string,
    count = 1,
  ) {
    this.all = count === 1 ? [new SessionKeys(namespace)] : tagsOf(count).map((tag) => new SessionKeys(namespace, tag));
  }

  /** The keys of the partition in which the session of an id is: of the whole id, since not all ids are random. */
  of(id: string): SessionKeys {
    return this.all[slotOf(id) % this.all.length]!;
  }
}

/** For each partition a hash tag that begins with its number, and whose slot is in its share of all slots. */
function tagsOf(count: number): string[] {
  return Array.from({ length: count }, (_, partition) => {
    for (let attempt = 0; ; attempt++) {
      const tag = `${partition}-${attempt}`;
      if (Math.floor((slotOf(tag) * count) / SLOTS) === partition) return tag;
    }
  });
}
