import { PartitionLayout } from './partition-layout.js';
import { SessionKeys } from './session-keys.js';

/** A change of the number of partitions while applications run. */
export interface Repartitioning {
  readonly from: number;
  readonly to: number;
}

/**
 * `before`: all sessions are in the old layout. `moving`: whoever writes a session moves it to the new one first, and new
 * sessions are made there. `after`: all sessions are in the new layout.
 */
export type MoveStage = 'before' | 'moving' | 'after';

/**
 * The partitions of a namespace: one layout, a fixed number of them. Two layouts while the sessions move from one to the
 * other. A session is in one place only, and moves from the old layout to the new one, never back: who reads the old place
 * first and then the new one misses none.
 */
export class SessionPartitions {
  /** The layouts in which sessions may be, the old one first. */
  readonly layouts: readonly PartitionLayout[];
  /** The keys of each partition. Layouts may have some partitions in common. */
  readonly all: readonly SessionKeys[];
  /** Whether there are two layouts. */
  readonly hasTwoLayouts: boolean;
  /** HASH: the version of the data format, and the number of partitions: see `records`. */
  readonly meta: string;
  /** What `meta` records of the partitions at each stage: `1`, `1>64` and `64`. */
  readonly records: Readonly<Record<MoveStage, string>>;
  /** A pattern of Redis that matches the shadow keys of all partitions. */
  readonly shadows: string;
  /** Prefixes of canaries: keys like shadow keys, but of no session, to test whether Redis announces expired ones. */
  readonly canaries: readonly string[];
  #stage: MoveStage = 'before';

  constructor(
    readonly namespace: string,
    counts: number | Repartitioning = 1,
  ) {
    const { from, to } = typeof counts === 'number' ? { from: counts, to: counts } : counts;
    this.hasTwoLayouts = from !== to;
    const known = new Map<string, SessionKeys>();
    const keysOf = (tag: string) => {
      const keys = known.get(tag) ?? new SessionKeys(namespace, tag);
      known.set(tag, keys);
      return keys;
    };
    const old = new PartitionLayout(from, keysOf);
    this.layouts = this.hasTwoLayouts ? [old, new PartitionLayout(to, keysOf)] : [old];
    this.all = [...known.values()];
    this.meta = `${namespace}:meta`;
    this.records = { before: `${from}`, moving: `${from}>${to}`, after: `${to}` };
    this.shadows = new SessionKeys(namespace, '*').shadow('*');
    if (from === 1) this.shadows = new SessionKeys(namespace).shadow('*');
    // A pattern has no alternatives. This one also matches foreign keys, which idOfShadow() tells apart.
    if (this.hasTwoLayouts && (from === 1 || to === 1)) this.shadows = `${namespace}:*sessions:expires:*`;
    this.canaries = this.all.map((keys) => keys.shadow('canary:'));
  }

  /** How far the move is, as this instance knows it. A script that changes a session checks this. */
  get stage(): MoveStage {
    return this.#stage;
  }

  /** Takes over what `meta` records. False when that belongs to none of the stages. */
  learn(recorded: string | null): boolean {
    const stages = Object.entries(this.records) as [MoveStage, string][];
    const [stage] = stages.find(([, record]) => record === recorded) ?? [];
    if (stage) this.#stage = stage;
    return stage !== undefined;
  }

  /** Whether the sessions are in several partitions, so that no script sees them all. */
  get isDivided(): boolean {
    if (this.hasTwoLayouts && this.stage === 'moving') return true;
    return this.#current.count > 1;
  }

  /** The partition of a session id in the newest layout. */
  of(id: string): SessionKeys {
    return this.layouts[this.layouts.length - 1]!.of(id);
  }

  /** The partitions of each layout, in the order in which to look for sessions that may move meanwhile. */
  get inOrder(): readonly SessionKeys[] {
    return this.hasTwoLayouts ? this.layouts.flatMap(({ all }) => all) : this.all;
  }

  /** The partitions of the old layout that the new one does not have. */
  get leaving(): readonly SessionKeys[] {
    const { all } = this.layouts[this.layouts.length - 1]!;
    return this.layouts[0]!.all.filter((keys) => !all.includes(keys));
  }

  /** Where a session may be, in the order in which to look: its partition in each layout. */
  placesOf(id: string): readonly SessionKeys[] {
    return this.layouts.map((layout) => layout.of(id));
  }

  /** Whether two ids are in one partition in each layout. */
  areBeside(id: string, other: string): boolean {
    return this.layouts.every((layout) => layout.of(id) === layout.of(other));
  }

  /** The ids by the partitions in which their sessions may be, in the order in which to look. */
  grouped(ids: readonly string[]): readonly (readonly [SessionKeys, readonly string[]])[] {
    if (ids.length === 1 && !this.hasTwoLayouts) return [[this.of(ids[0]!), ids]];
    return this.layouts.flatMap((layout) => {
      const groups = new Map<SessionKeys, string[]>();
      for (const id of ids) {
        const keys = layout.of(id);
        const group = groups.get(keys);
        if (group) group.push(id);
        else groups.set(keys, [id]);
      }
      return [...groups];
    });
  }

  /**
   * The share of one partition in a limit for the whole namespace: at least 1. With two layouts that of the one with fewer
   * partitions, so that the old one loses nothing because there is a new one.
   */
  shareOf(limit: number): number {
    return Math.ceil(limit / Math.min(...this.layouts.map(({ count }) => count)));
  }

  /** The session id in a shadow key; undefined for any other key. */
  idOfShadow(key: string): string | undefined {
    const id = key.slice(key.lastIndexOf(':') + 1);
    return this.layouts.some((layout) => layout.of(id).shadow(id) === key) ? id : undefined;
  }

  /** The layout that has all sessions unless they are moving. */
  get #current(): PartitionLayout {
    return this.layouts[this.stage === 'after' ? this.layouts.length - 1 : 0]!;
  }
}
