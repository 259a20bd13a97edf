import { SessionStoreError } from '@nest-session/core';
import type { Redis } from 'ioredis';
import type { MoveStage, SessionPartitions } from '../keys/session-partitions.js';
import { defineScripts, type ScriptedRedis } from './define-scripts.js';
import { RepartitionedError } from './repartitioned.error.js';
import { loadScript } from './script.loader.js';

/** What a script is for: a session, a new one, one that is taken over, or the ledger of a principal. */
export type ScriptKind = 'session' | 'new' | 'takeover' | 'ledger';

/** Names and values for one layout each, the old one first. */
export type InLayouts<T> = readonly [old: T, next: T];

interface Where {
  readonly kind: ScriptKind;
  /** The stage of the move at which the caller has decided what to do; by default that of now. */
  readonly stage?: MoveStage | undefined;
  /** Of the keys of the partition. */
  readonly prefixes?: InLayouts<string>;
}

const REPARTITIONED = /^REPARTITIONED (\S+)/;

/**
 * Runs scripts where their session is while the sessions move from one layout of the partitions to another one; on one
 * server only, because the keys are in two slots. See includes/in-layouts.lua.
 */
export class ScriptsInLayouts<Name extends string> {
  readonly #client: ScriptedRedis<string>;

  constructor(
    client: Redis,
    sources: Readonly<Record<Name, string>>,
    private readonly partitions: SessionPartitions,
  ) {
    const scripts = Object.entries<string>(sources).map(([name, lua]) => [`${name}InLayouts`, inLayouts(lua)]);
    this.#client = defineScripts(client, Object.fromEntries(scripts) as Record<string, string>);
  }

  /** @throws RepartitionedError when the move is further than this instance knew: the caller begins again */
  async run(
    name: Name,
    keys: InLayouts<readonly string[]>,
    args: readonly (string | number)[],
    { kind, stage = this.partitions.stage, prefixes = ['', ''] }: Where,
  ): Promise<unknown> {
    const { records, meta } = this.partitions;
    const all = [...keys.flat(), meta];
    try {
      const where = [kind, stage, records[stage], ...prefixes];
      return await this.#client[`${name}InLayouts`]!(all.length, all, args, where);
    } catch (error) {
      const [, recorded] = (error instanceof Error && REPARTITIONED.exec(error.message)) || [];
      if (recorded === undefined) throw error;
      if (this.partitions.learn(recorded)) throw new RepartitionedError();
      const expected = Object.values(records).join(', ');
      throw new SessionStoreError(`The partitions are recorded as ${recorded}, which is none of: ${expected}`);
    }
  }
}

/** The script as a function, and what decides where it runs. */
function inLayouts(source: string): string {
  const end = source.indexOf('\n');
  const [flags, body] = [source.slice(0, end), source.slice(end)];
  return `${flags}\nlocal function run(KEYS, ARGV)${body}end\n${loadScript('includes/in-layouts')}`;
}
