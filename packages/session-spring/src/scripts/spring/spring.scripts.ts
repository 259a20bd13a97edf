import type { Redis } from 'ioredis';
import { defineScripts, loadScripts, type RunScript } from '@nest-session/redis-events/internal';
import { SCRIPT_SOURCES as SESSION_SOURCES } from '@nest-session/redis/internal';
import { LUA_SOURCES } from '../lua-sources.js';

/** Of this package, and of those below. */
export const SCRIPT_SOURCES = { ...SESSION_SOURCES, ...LUA_SOURCES };

/** Milliseconds that Spring keeps a session hash longer than the session, as library/spring-bucket has it. */
export const SPRING_GRACE = 300_000;

/** What became of a renewal. `unreadable`: the time of this name is in a form that Spring does not write. */
type RenewSessionReply =
  { readonly outcome: 'touched' | 'gone' } | { readonly outcome: 'unreadable'; readonly time: string };

/** The keys of a session. On a Cluster, where they are on several nodes, only the session hash. */
export type RenewedKeys = readonly [session: string, shadow: string, expirations: string] | readonly [session: string];

const SCRIPTS = loadScripts(SCRIPT_SOURCES, 'spring');

/**
 * The scripts that renew sessions as Spring does, and that look for what Spring leaves behind, each at one moment: what
 * they find was there. With `mends`, they mend it at the same moment, and return which of those that they were given it
 * is.
 */
export class SpringScripts {
  readonly #run: RunScript<keyof typeof SCRIPTS>;
  readonly #mends: 0 | 1;

  constructor(client: Redis, mends = false) {
    this.#run = defineScripts(client, SCRIPTS);
    this.#mends = mends ? 1 : 0;
  }

  /** Renews a live session. `prefix`: of all keys of the namespace. */
  async renew(keys: RenewedKeys, prefix: string, id: string): Promise<RenewSessionReply> {
    type Reply = [outcome: RenewSessionReply['outcome'], time?: string];
    const [outcome, time = ''] = await this.#run<Reply>('renew-session', keys, [prefix, id]);
    return outcome === 'unreadable' ? { outcome, time } : { outcome };
  }

  /** Members of a set or a sorted set, as they are stored, whose key is gone. */
  async lostMembers<Member extends { readonly stored: Buffer; readonly key: string }>(
    place: string,
    all: readonly Member[],
  ): Promise<Member[]> {
    // As bytes: those of Java are no text.
    const args = [this.#mends, ...all.map(({ stored }) => stored)];
    return chosen(all, await this.#run('remove-lost-members', [place, ...all.map(({ key }) => key)], args));
  }

  /** Buckets without a time to live. They get as long as Spring keeps what has ended. */
  async lastingBuckets<Bucket extends { readonly key: string }>(all: readonly Bucket[]): Promise<Bucket[]> {
    const keys = all.map(({ key }) => key);
    return chosen(all, await this.#run('mend-lasting-buckets', keys, [this.#mends]));
  }

  async incompleteSessions<Keys extends { readonly session: string; readonly shadow: string }>(
    all: readonly Keys[],
  ): Promise<Keys[]> {
    const keys = all.flatMap(({ session, shadow }) => [session, shadow]);
    return chosen(all, await this.#run('remove-incomplete-sessions', keys, [this.#mends]));
  }
}

function chosen<T>(all: readonly T[], numbers: readonly number[]): T[] {
  return numbers.map((number) => all[number - 1]!);
}
