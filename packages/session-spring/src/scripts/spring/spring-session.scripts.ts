import type { Redis } from 'ioredis';
import { defineScripts, loadScripts, type ScriptsByName } from '@nest-session/redis-events/internal';
import { SCRIPT_SOURCES } from '../script-sources.js';

/** What became of a renewal. `unreadable`: the time of this name is in a form that Spring does not write. */
export type RenewSessionReply =
  { readonly outcome: 'touched' | 'gone' } | { readonly outcome: 'unreadable'; readonly time: string };

/** The keys of a session. On a Cluster, where they are on several nodes, only the session hash. */
export type RenewedKeys = readonly [session: string, shadow: string, expirations: string] | readonly [session: string];

const SOURCES = loadScripts(SCRIPT_SOURCES, 'spring', { springRenewSession: 'renew-session' });

/** The scripts that write sessions of Spring, as Spring does. */
export class SpringSessionScripts {
  readonly #scripts: ScriptsByName<keyof typeof SOURCES>;

  constructor(client: Redis) {
    this.#scripts = defineScripts(client, SOURCES);
  }

  /** Renews a live session. `prefix`: of all keys of the namespace. */
  async renew(keys: RenewedKeys, prefix: string, id: string): Promise<RenewSessionReply> {
    const reply = await this.#scripts.springRenewSession(keys.length, keys, [prefix, id]);
    const [outcome, time = ''] = reply as [outcome: RenewSessionReply['outcome'], time?: string];
    return outcome === 'unreadable' ? { outcome, time } : { outcome };
  }
}
