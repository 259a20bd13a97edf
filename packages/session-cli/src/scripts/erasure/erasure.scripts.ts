import type { Redis } from 'ioredis';
import { defineScripts, loadScripts, type RunScript } from '@nest-session/redis-events/internal';
import { SCRIPT_SOURCES, type SessionKeys } from '@nest-session/redis/internal';
import { LUA_SOURCES } from '../lua-sources.js';

type ErasedSession = 'live' | 'ended';

export interface SessionToErase {
  readonly id: string;
  readonly was: ErasedSession;
}

const SCRIPTS = loadScripts({ ...SCRIPT_SOURCES, ...LUA_SOURCES }, 'erasure');

export class ErasureScripts {
  readonly #run: RunScript<keyof typeof SCRIPTS>;

  constructor(client: Redis) {
    this.#run = defineScripts(client, SCRIPTS);
  }

  /** Returns the ids that are sessions of the principal. `erases`: they are gone afterwards. */
  async sessions(
    { bucketList, events, prefix }: SessionKeys,
    ids: readonly string[],
    { hash, text }: { readonly hash: string; readonly text: string },
    erases: boolean,
  ): Promise<SessionToErase[]> {
    const args = [erases ? 1 : 0, prefix, hash, text, ...ids];
    const reply = await this.#run<string[]>('erase-sessions', [bucketList, events], args);
    return Array.from({ length: reply.length / 2 }, (_, i) => ({
      id: reply[2 * i]!,
      was: reply[2 * i + 1] as ErasedSession,
    }));
  }

  async events({ events }: SessionKeys, positions: readonly string[]): Promise<void> {
    await this.#run('erase-events', [events], positions);
  }
}
