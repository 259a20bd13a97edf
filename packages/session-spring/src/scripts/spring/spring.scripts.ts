import type { Redis } from 'ioredis';
import { defineScripts, loadScripts, type ScriptsByName } from '@nest-session/redis-events/internal';
import { SCRIPT_SOURCES } from '../script-sources.js';

/** A member of a set or a sorted set, as it is stored, and the key that it names. */
export interface NamedKey {
  readonly stored: Buffer;
  readonly key: string;
}

/** The keys of one session. */
export interface SessionKeyPair {
  readonly session: string;
  readonly shadow: string;
}

/** Milliseconds that the indexed repository keeps the session hash longer than the session. */
export const SPRING_GRACE = 300_000;

const SOURCES = loadScripts(SCRIPT_SOURCES, 'spring', {
  springLostMembers: 'remove-lost-members',
  springBuckets: 'expire-buckets',
  springIncomplete: 'remove-incomplete-sessions',
});

/**
 * The scripts that look for what Spring leaves behind, each at one moment: what they find was there. With `mends`, they
 * mend it at the same moment. They return which of those that they were given it is.
 */
export class SpringScripts {
  readonly #scripts: ScriptsByName<keyof typeof SOURCES>;
  readonly #mends: 0 | 1;

  constructor(client: Redis, mends: boolean) {
    this.#scripts = defineScripts(client, SOURCES);
    this.#mends = mends ? 1 : 0;
  }

  /** Members whose key is gone. */
  async lostMembers<Member extends NamedKey>(place: string, all: readonly Member[]): Promise<Member[]> {
    const [keys, members] = [all.map(({ key }) => key), all.map(({ stored }) => stored)];
    // As bytes: those of Java are no text.
    const args = [this.#mends, ...members] as unknown as string[];
    return chosen(all, await this.#scripts.springLostMembers(keys.length + 1, place, keys, args));
  }

  /** Buckets without a time to live. They get as long as Spring keeps what has ended. */
  async lastingBuckets<Bucket extends { readonly key: string }>(all: readonly Bucket[]): Promise<Bucket[]> {
    const keys = all.map(({ key }) => key);
    return chosen(all, await this.#scripts.springBuckets(keys.length, keys, [this.#mends, SPRING_GRACE]));
  }

  /** Sessions without one of their times. */
  async incompleteSessions<Keys extends SessionKeyPair>(all: readonly Keys[]): Promise<Keys[]> {
    const keys = all.flatMap(({ session, shadow }) => [session, shadow]);
    return chosen(all, await this.#scripts.springIncomplete(keys.length, keys, [this.#mends]));
  }
}

function chosen<T>(all: readonly T[], numbers: unknown): T[] {
  return (numbers as number[]).map((number) => all[number - 1]!);
}
