import slotOf from 'cluster-key-slot';
import { SessionKeys } from './session-keys.js';

const SLOTS = 16_384;

/**
 * The partitions that the sessions of a namespace fall into, a fixed number of them. All keys of a partition are in one
 * slot of Redis Cluster, where one script may touch them; the slots of all partitions are spread evenly.
 */
export class SessionPartitions {
  /** The keys of each. */
  readonly all: readonly SessionKeys[];
  /** HASH: the version of the data format, and how many partitions there are. */
  readonly meta: string;
  /** What the shadow keys of all partitions match, as a pattern of Redis. */
  readonly shadows: string;
  /** What the shadow of no session begins with: written to find out whether Redis announces expired shadows. */
  readonly canary: string;

  constructor(
    readonly namespace: string,
    count = 1,
  ) {
    const [tags, anyTag] = count === 1 ? [[''], ''] : [tagsOf(count), '*'];
    this.all = tags.map((tag) => new SessionKeys(namespace, tag));
    this.meta = `${namespace}:meta`;
    this.shadows = new SessionKeys(namespace, anyTag).shadow('*');
    this.canary = this.all[0]!.shadow('canary:');
  }

  /** The keys of the partition in which the session of an id is: of the whole id, since not all ids are random. */
  of(id: string): SessionKeys {
    return this.all[slotOf(id) % this.all.length]!;
  }

  /** What each partition gets of something that is limited for the whole namespace: at least one. */
  shareOf(limit: number): number {
    return Math.ceil(limit / this.all.length);
  }

  /** The id of a shadow key; undefined for any other key, such as one of another application. */
  idOfShadow(key: string): string | undefined {
    const id = key.slice(key.lastIndexOf(':') + 1);
    return this.of(id).shadow(id) === key ? id : undefined;
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
