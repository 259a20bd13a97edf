import type { Redis } from 'ioredis';
import type { SessionKeys } from '../keys/session.keys.js';
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
  readonly presentedId: string | undefined;
  /** Seconds. */
  readonly maxInactiveInterval: number;
  /** Seconds; negative: none. */
  readonly absoluteTimeout: number;
  readonly attributes: Pairs;
  readonly indexes: Pairs;
}

export interface SaveArguments {
  readonly id: string;
  readonly newId: string | undefined;
  /** Seconds; 0 ends the session. */
  readonly maxInactiveInterval: number | undefined;
  /** Seconds from the creation; negative: none. */
  readonly absoluteTimeout: number | undefined;
  /** Not an access: does not renew. */
  readonly keepsIdle?: boolean | undefined;
  readonly attributes: Pairs;
  readonly removed: readonly string[];
  /** An empty value takes the session out of that index. */
  readonly indexes: Pairs;
  readonly expected: { readonly name: string; readonly text: string | undefined } | undefined;
}

export type CreateReply = ['created', creationTime: string] | ['collision'] | ['gone'];
export type SaveReply = ['saved'] | ['gone'] | ['collision'] | ['conflict', current?: string | null];
export type TouchReply = ['touched'] | ['moved'] | ['gone'];
export type DeleteReply = ['deleted'] | ['gone'];
export type ClaimWord = 'claimed' | 'alive' | 'already' | 'corrupt';

type Run = (numberOfKeys: number, ...keysAndArguments: (string | number)[]) => Promise<unknown>;

const SOURCES = {
  createSession: loadScript('create-session'),
  saveSession: loadScript('save-session'),
  touchSession: loadScript('touch-session'),
  deleteSession: loadScript('delete-session'),
  claimExpired: loadScript('claim-expired'),
};

/** The five scripts that change sessions, on one connection: one typed function each, one round trip per call. */
export class SessionScripts {
  readonly #client: Redis & Record<keyof typeof SOURCES, Run>;
  readonly #shared: readonly (string | number)[];

  constructor(
    client: Redis,
    private readonly keys: SessionKeys,
    times: KeepingTimes,
  ) {
    for (const [name, lua] of Object.entries(SOURCES)) client.defineCommand(name, { lua });
    this.#client = client as Redis & Record<keyof typeof SOURCES, Run>;
    this.#shared = [keys.prefix, times.grace, times.retention];
  }

  /** Has Redis keep the scripts, so that the first call of each needs one round trip as well. */
  static async preload(client: Redis): Promise<void> {
    await Promise.all(Object.values(SOURCES).map((lua) => client.script('LOAD', lua)));
  }

  async create(session: CreateArguments): Promise<CreateReply> {
    const { id, presentedId = id, maxInactiveInterval, absoluteTimeout } = session;
    const keys = [...this.#sessionKeys(id), this.keys.moved(presentedId)];
    const lists = [...list(session.attributes), ...list(session.indexes)];
    return (await this.#run('createSession', keys, [
      id,
      maxInactiveInterval,
      absoluteTimeout,
      ...lists,
    ])) as CreateReply;
  }

  async save(changes: SaveArguments): Promise<SaveReply> {
    const { id, newId = id, maxInactiveInterval = '', absoluteTimeout = '', keepsIdle = false, expected } = changes;
    const keys = [...this.#sessionKeys(id), this.keys.moved(id), this.keys.session(newId), this.keys.shadow(newId)];
    const expectation = expected === undefined ? 'any' : expected.text === undefined ? 'none' : 'text';
    const lists = [
      ...list(changes.attributes),
      ...list(changes.removed.map((name) => [name])),
      ...list(changes.indexes),
    ];
    const condition = [expectation, expected?.name ?? '', expected?.text ?? ''];
    const fixed = [id, newId, maxInactiveInterval, absoluteTimeout, keepsIdle ? 1 : 0, ...condition];
    return (await this.#run('saveSession', keys, [...fixed, ...lists])) as SaveReply;
  }

  async touch(id: string): Promise<TouchReply> {
    return (await this.#run('touchSession', this.#sessionKeys(id), [id])) as TouchReply;
  }

  async delete(id: string): Promise<DeleteReply> {
    return (await this.#run('deleteSession', this.#sessionKeys(id), [id])) as DeleteReply;
  }

  /** `minute`: the bucket in which the members were found; undefined when a key event named them. */
  async claimExpired(members: readonly string[], minute?: string): Promise<ClaimWord[]> {
    const sessions = members.flatMap((member) => {
      const id = member.replace(/^expires:/, '');
      return [this.keys.session(id), this.keys.shadow(id)];
    });
    const keys = [this.keys.bucketList, this.keys.events, this.keys.deadLetters, ...sessions];
    return (await this.#run('claimExpired', keys, [minute ?? '', ...members])) as ClaimWord[];
  }

  #sessionKeys(id: string): string[] {
    return [this.keys.bucketList, this.keys.events, this.keys.session(id), this.keys.shadow(id)];
  }

  #run(script: keyof typeof SOURCES, keys: readonly string[], args: readonly (string | number)[]): Promise<unknown> {
    return this.#client[script](keys.length, ...keys, ...this.#shared, ...args);
  }
}

/** A list as the scripts read it: its length, then its groups. */
function list(groups: readonly (readonly string[])[]): (string | number)[] {
  return [groups.length, ...groups.flat()];
}
