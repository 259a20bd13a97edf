import type {
  CreateReply,
  CreateSession,
  DeleteReply,
  IndexChanges,
  TouchReply,
  UpdateReply,
  UpdateSession,
} from '@nest-session/core/store';
import type { Redis } from 'ioredis';
import type { SessionKeys } from '../../keys/session-keys.js';
import type { SessionPartitions } from '../../keys/session-partitions.js';
import { defineScripts, loadScripts, type ScriptedRedis } from '../define-scripts.js';

/** How long the scripts keep ended sessions, and how many dead letters. */
export interface KeepingRules {
  /** Milliseconds by which the session hash outlives the session, so that handlers can still read the data. */
  readonly grace: number;
  /** Milliseconds for which the session hash is kept after the end was recorded. */
  readonly retention: number;
  /** About how many dead letters a partition keeps. */
  readonly deadLetters: number;
}

/** The outcome for one member of a bucket. */
export type ClaimOutcome = 'claimed' | 'alive' | 'already' | 'corrupt';

/** The reply of every script for one session. */
type Reply<Word extends string> = [outcome: Word, detail?: string | null];

const SCRIPTS = loadScripts('session', {
  createSession: 'create-session',
  saveSession: 'save-session',
  touchSession: 'touch-session',
  deleteSession: 'delete-session',
  claimExpired: 'claim-expired',
});

const SOURCES = {
  ...SCRIPTS,
  // For a save that can only end the session: like every end, it runs when Redis is out of memory.
  endSession: SCRIPTS.saveSession.replace('#!lua', '#!lua flags=allow-oom'),
};

/**
 * The scripts that change sessions, on one connection. Each is one typed function, and each call one round trip. All
 * keys of a call are in one partition: a new id is generated until it is in the partition of the id that it replaces.
 */
export class SessionScripts {
  readonly #client: ScriptedRedis<keyof typeof SOURCES>;

  constructor(
    client: Redis,
    private readonly partitions: SessionPartitions,
    private readonly rules: KeepingRules,
  ) {
    this.#client = defineScripts(client, SOURCES);
  }

  /** Loads the scripts into Redis, so that the first call of each also needs one round trip. */
  static async preload(client: Redis): Promise<void> {
    await Promise.all(Object.values(SOURCES).map((lua) => client.script('LOAD', lua)));
  }

  async create(session: CreateSession): Promise<CreateReply> {
    const { id, presentedIds, maxInactiveInterval, absoluteTimeout } = session;
    const partition = this.partitions.of(id);
    const marks = [id, ...presentedIds].map((each) => partition.forwardingMark(each));
    const keys = [...keysOf(partition, id), ...marks];
    const lists = [...list(written(session.attributes)), ...list(written(session.indexes))];
    const args = [id, maxInactiveInterval, absoluteTimeout, ...lists];
    const reply = await this.#run('createSession', partition, keys, args);
    const [outcome, creationTime] = reply as Reply<CreateReply['outcome']>;
    return outcome === 'created' ? { outcome, creationTime: Number(creationTime) } : { outcome };
  }

  async save(change: UpdateSession): Promise<UpdateReply> {
    const { id, newId = id, maxInactiveInterval = '', absoluteTimeout = '', keepsIdle = false, expected } = change;
    const partition = this.partitions.of(id);
    const renamed = [partition.session(newId), partition.shadow(newId), partition.forwardingMark(newId)];
    const keys = [...keysOf(partition, id), partition.forwardingMark(id), ...renamed];
    const expectation = expected === undefined ? 'any' : expected.text === undefined ? 'none' : 'text';
    const condition = [expectation, expected?.name ?? '', expected?.text ?? ''];
    const removed = [...change.attributes].filter(([, text]) => text === null).map(([name]) => [name]);
    // With an empty value the session leaves the index.
    const indexes = [...change.indexes].map(([name, value]) => [name, value ?? '']);
    const lists = [...list(written(change.attributes)), ...list(removed), ...list(indexes)];
    const args = [id, newId, maxInactiveInterval, absoluteTimeout, keepsIdle ? 1 : 0, ...condition, ...lists];
    const script = maxInactiveInterval === 0 || absoluteTimeout === 0 ? 'endSession' : 'saveSession';
    const reply = await this.#run(script, partition, keys, args);
    const [outcome, current] = reply as Reply<UpdateReply['outcome']>;
    return outcome === 'conflict' ? { outcome, current: current ?? undefined } : { outcome };
  }

  async touch(id: string): Promise<TouchReply> {
    const partition = this.partitions.of(id);
    const [outcome] = (await this.#run('touchSession', partition, keysOf(partition, id), [id])) as Reply<
      TouchReply['outcome']
    >;
    return { outcome };
  }

  async delete(id: string): Promise<DeleteReply> {
    const partition = this.partitions.of(id);
    const [outcome] = (await this.#run('deleteSession', partition, keysOf(partition, id), [id])) as Reply<
      DeleteReply['outcome']
    >;
    return { outcome };
  }

  /** `minute`: the bucket that holds the members; undefined when a key event named them. */
  async claimExpired(partition: SessionKeys, members: readonly string[], minute?: string): Promise<ClaimOutcome[]> {
    const sessions = members.flatMap((member) => {
      const id = partition.idOfMember(member);
      return [partition.session(id), partition.shadow(id)];
    });
    const keys = [partition.bucketList, partition.events, partition.deadLetters, ...sessions];
    const args = [this.rules.deadLetters, minute ?? '', ...members];
    return (await this.#run('claimExpired', partition, keys, args)) as ClaimOutcome[];
  }

  #run(
    script: keyof typeof SOURCES,
    { prefix }: SessionKeys,
    keys: readonly string[],
    args: readonly (string | number)[],
  ): Promise<unknown> {
    const { grace, retention } = this.rules;
    return this.#client[script](keys.length, ...keys, prefix, grace, retention, ...args);
  }
}

/** The first keys of every script for one session. */
function keysOf(partition: SessionKeys, id: string): string[] {
  return [partition.bucketList, partition.events, partition.session(id), partition.shadow(id)];
}

/** The changes that set a value. */
function written(changes: UpdateSession['attributes'] | IndexChanges): [name: string, text: string][] {
  return [...changes].filter((change): change is [string, string] => change[1] !== null);
}

/** A list as the scripts read it: its length, then its groups of values. */
function list(groups: readonly (readonly string[])[]): (string | number)[] {
  return [groups.length, ...groups.flat()];
}
