import type { Redis } from 'ioredis';
import { defineScripts, loadScripts, type RunScript } from '@nest-session/redis-events/internal';
import { SCRIPT_SOURCES as SESSION_SOURCES } from '@nest-session/redis/internal';
import { LUA_SOURCES } from '../lua-sources.js';

export const SCRIPT_SOURCES = { ...SESSION_SOURCES, ...LUA_SOURCES };

/** Milliseconds that Spring keeps a session hash longer than the session, as library/spring-bucket has it. */
export const SPRING_GRACE = 300_000;

/** What became of a renewal. `unreadable`: the time of this name is in a form that Spring does not write. */
type RenewSessionReply =
  { readonly outcome: 'touched' | 'gone' } | { readonly outcome: 'unreadable'; readonly time: string };

/** The keys of a session. On a Cluster, where they are on several nodes, only the session hash. */
export type RenewedKeys = readonly [session: string, shadow: string, expirations: string] | readonly [session: string];

const SCRIPTS = loadScripts(SCRIPT_SOURCES, 'spring');

/** The scripts that change what Spring keeps, where no application of NestJS shares its sessions. */
export class SpringScripts {
  readonly #run: RunScript<keyof typeof SCRIPTS>;

  constructor(client: Redis) {
    this.#run = defineScripts(client, SCRIPTS);
  }

  /** Renews a live session. `prefix`: of all keys of the namespace. */
  async renew(keys: RenewedKeys, prefix: string, id: string): Promise<RenewSessionReply> {
    type Reply = [outcome: RenewSessionReply['outcome'], time?: string];
    const [outcome, time = ''] = await this.#run<Reply>('renew-session', keys, [prefix, id]);
    return outcome === 'unreadable' ? { outcome, time } : { outcome };
  }

  async removeLost(
    index: string,
    members: readonly { readonly stored: Buffer; readonly session: string }[],
  ): Promise<void> {
    const keys = [index, ...members.map(({ session }) => session)];
    // As bytes: those of Java are no text.
    const stored = members.map((member) => member.stored);
    await this.#run('remove-lost-members', keys, stored);
  }
}
