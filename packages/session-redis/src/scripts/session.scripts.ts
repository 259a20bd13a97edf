import type { Redis } from 'ioredis';
import type { SessionKeys } from '../keys/session.keys.js';
import type { SessionPartitions } from '../keys/session.partitions.js';
import { loadScript } from './script.loader.js';

/** How long the scripts keep what has ended; milliseconds. */
export interface KeepingTimes {
  /** By how much a session's data outlives the session, so that whoever hears of its end can still read it. */
  readonly grace: number;
  /** How long the data is kept after the end was recorded. */
  readonly retention: number;
}

export type Pairs = readonly (readonly [name: string, text: string])[];

export interface CreateArguments {
  readonly id: string;
  readonly presentedIds: readonly string[];
  /** Seconds. */
  readonly maxInactiveInterval: number;
  /** Seconds; negative: none. */
  readonly absoluteTimeout: number;
  readonly attributes: Pairs;
  readonly indexes: Pairs;
}

export interface SaveArguments {
  readonly id: string;
  readonly newId?: string | undefined;
  /** Seconds; 0 ends the session. */
  readonly maxInactiveInterval?: number | undefined;
  /** Seconds from the creation; negative: none. */
  readonly absoluteTimeout?: number | undefined;
  /** Not an access: does not renew. */
  readonly keepsIdle?: boolean | undefined;
  readonly attributes: Pairs;
  readonly removed: readonly string[];
  /** An empty value takes the session out of that index. */
  readonly indexes: Pairs;
  readonly expected?: { readonly name: string; readonly text: string | undefined } | undefined;
}

export type CreateReply = ['created', creationTime: string] | ['collision'] | ['gone'];
export type SaveReply = ['saved'] | ['moved'] | ['gone'] | ['collision'] | ['conflict', current?: string | null];
export type TouchReply = ['touched'] | ['moved'] | ['gone'];
export type DeleteReply = ['deleted'] | ['moved'] | ['gone'];
export type ClaimWord = 'claimed' | 'alive' | 'already' | 'corrupt';

type Run = (numberOfKeys: number, ...keysAndArguments: (string | number)[]) => Promise<unknown>;

const SOURCES = {
  createSession: loadScript('create-session'),
  saveSession: loadScript('save-session'),
  touchSession: loadScript('touch-session'),
  deleteSession: loadScript('delete-session'),
  claimExpired: loadScript('claim-expired'),
};

/**
 * The five scripts that change sessions, on one connection: one typed function each, one round trip per call. All that a
 * call names is in one partition: an id that replaces another is drawn into the partition of that one.
 */
export class SessionScripts {
  readonly #client: Redis & Record<keyof typeof SOURCES, Run>;

  constructor(
    client: Redis,
    private readonly partitions: SessionPartitions,
    private readonly times: KeepingTimes,
  ) {
    for (const [name, lua] of Object.entries(SOURCES)) client.defineCommand(name, { lua });
    this.#client = client as Redis & Record<keyof typeof SOURCES, Run>;
  }

  /** Has Redis keep the scripts, so that the first call of each needs one round trip as well. */
  static async preload(client: Redis): Promise<void> {
    await Promise.all(Object.values(SOURCES).map((lua) => client.script('LOAD', lua)));
  }

  async create(session: CreateArguments): Promise<CreateReply> {
    const { id, presentedIds, maxInactiveInterval, absoluteTimeout } = session;
    const partition = this.partitions.of(id);
    const marks = [id, ...presentedIds].map((each) => partition.moved(each));
    const keys = [...keysOf(partition, id), ...marks];
    const lists = [...list(session.attributes), ...list(session.indexes)];
    const args = [id, maxInactiveInterval, absoluteTimeout, ...lists];
    return (await this.#run('createSession', partition, keys, args)) as CreateReply;
  }

  async save(changes: SaveArguments): Promise<SaveReply> {
    const { id, newId = id, maxInactiveInterval = '', absoluteTimeout = '', keepsIdle = false, expected } = changes;
    const partition = this.partitions.of(id);
    const renamed = [partition.session(newId), partition.shadow(newId), partition.moved(newId)];
    const keys = [...keysOf(partition, id), partition.moved(id), ...renamed];
    const expectation = expected === undefined ? 'any' : expected.text === undefined ? 'none' : 'text';
    const lists = [
      ...list(changes.attributes),
      ...list(changes.removed.map((name) => [name])),
      ...list(changes.indexes),
    ];
    const condition = [expectation, expected?.name ?? '', expected?.text ?? ''];
    const fixed = [id, newId, maxInactiveInterval, absoluteTimeout, keepsIdle ? 1 : 0, ...condition];
    return (await this.#run('saveSession', partition, keys, [...fixed, ...lists])) as SaveReply;
  }

  async touch(id: string): Promise<TouchReply> {
    const partition = this.partitions.of(id);
    return (await this.#run('touchSession', partition, keysOf(partition, id), [id])) as TouchReply;
  }

  async delete(id: string): Promise<DeleteReply> {
    const partition = this.partitions.of(id);
    return (await this.#run('deleteSession', partition, keysOf(partition, id), [id])) as DeleteReply;
  }

  /** `minute`: the bucket in which the members were found; undefined when a key event named them. */
  async claimExpired(partition: SessionKeys, members: readonly string[], minute?: string): Promise<ClaimWord[]> {
    const sessions = members.flatMap((member) => {
      const id = member.replace(/^expires:/, '');
      return [partition.session(id), partition.shadow(id)];
    });
    const keys = [partition.bucketList, partition.events, partition.deadLetters, ...sessions];
    return (await this.#run('claimExpired', partition, keys, [minute ?? '', ...members])) as ClaimWord[];
  }

  #run(
    script: keyof typeof SOURCES,
    { prefix }: SessionKeys,
    keys: readonly string[],
    args: readonly (string | number)[],
  ): Promise<unknown> {
    const { grace, retention } = this.times;
    return this.#client[script](keys.length, ...keys, prefix, grace, retention, ...args);
  }
}

/** What every script for a session is given first. */
function keysOf(partition: SessionKeys, id: string): string[] {
  return [partition.bucketList, partition.events, partition.session(id), partition.shadow(id)];
}

/** A list as the scripts read it: its length, then its groups. */
function list(groups: readonly (readonly string[])[]): (string | number)[] {
  return [groups.length, ...groups.flat()];
}
