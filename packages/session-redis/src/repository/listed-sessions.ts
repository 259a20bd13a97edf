import { type SessionInfo, SessionStoreError } from '@nest-session/core';
import { LONGEST_REQUEST } from '@nest-session/core/internal';
import type { IndexChanges } from '@nest-session/core/store';
import {
  defineScripts,
  isReply,
  loadScript,
  logger,
  merged,
  type RequestConnection,
  type ScriptsOn,
  scriptsOn,
} from '@nest-session/redis-events/internal';
import type { Redis } from 'ioredis';
import type { SessionKeys } from '../keys/session-keys.js';
import type { SessionPartitions } from '../keys/session-partitions.js';
import { SCRIPT_SOURCES } from '../scripts/script-sources.js';
import type { SessionScripts } from '../scripts/session/session.scripts.js';
import { SessionEpochs } from './session-epochs.js';
import { toListedInfo } from './session-hash.js';

// Calls that block Redis for less than a millisecond.
const ENDED_PER_CALL = 50;
const PAGE_SIZE = 100;
const SMALLEST_PAGE = 25;
// 400 days. Browsers keep no cookie for longer.
const LONGEST_TAKEOVER = 400 * 86_400_000;

interface Listed {
  readonly info: SessionInfo;
  readonly score: number;
}

/** The sessions that an index lists, in all partitions. `value`: the hash of the value. */
export class ListedSessions {
  readonly #pageSize: number;

  constructor(
    private readonly connection: RequestConnection,
    private readonly scripts: ScriptsOn<SessionScripts>,
    private readonly partitions: SessionPartitions,
    private readonly epochs = new SessionEpochs(),
  ) {
    this.#pageSize = Math.max(SMALLEST_PAGE, partitions.shareOf(PAGE_SIZE));
  }

  /** Live sessions without attributes, the latest sign-in first. */
  async *list(indexName: string, value: string): AsyncGenerator<SessionInfo> {
    const sources = this.partitions.all.map((keys) => this.#walk(keys, keys.index(indexName, value)));
    for await (const { info } of merged(sources, (one, other) => other.score - one.score)) yield info;
  }

  async count(indexName: string, value: string): Promise<number> {
    return (await this.#sizesOf(indexName, value)).reduce((sum, size) => sum + size, 0);
  }

  /** Ends all but some sessions. Returns how many; `onProgress` is told of that after each batch. */
  async end(
    indexName: string,
    value: string,
    except: readonly string[],
    onProgress: (ended: number) => void = () => undefined,
  ): Promise<number> {
    const problems: string[] = [];
    let ended = 0;
    const sizes = await this.#sizesOf(indexName, value);
    for (const keys of this.partitions.all.filter((_, i) => sizes[i]! > 0)) {
      // A session that a stray key protects is skipped.
      const stays = except.filter((id) => this.partitions.of(id) === keys);
      const end = (client: Redis, latest: string | undefined) =>
        this.scripts(client).endListed(keys, keys.index(indexName, value), ENDED_PER_CALL, { latest, stays });
      let latest: string | undefined;
      do {
        const batch = await this.connection.write((client) => end(client, latest), keys.prefix);
        onProgress((ended += batch.ended));
        stays.push(...batch.foreign);
        if (batch.problem !== undefined) problems.push(batch.problem);
        ({ latest } = batch);
      } while (latest !== undefined);
    }
    if (problems[0] !== undefined) throw new SessionStoreError(`Redis failed: ${problems[0]}`);
    return ended;
  }

  /** Refuses sign-ins that began before, and with `takesOver` takeovers. To be called before `end()`. */
  async refuseBegun(indexName: string, value: string, takesOver: boolean): Promise<void> {
    await this.connection.writeInAll(this.partitions, (client, keys) =>
      leaveRevocationMark(client, keys.revocationMark(indexName, value), takesOver),
    );
  }

  /** A key of another type in the place of an index must not lock a user out: it is set aside, the write repeated. */
  async withoutStrayIndexes<T>(indexes: IndexChanges, write: () => Promise<T>): Promise<T> {
    try {
      return await write();
    } catch (error) {
      if (!(error instanceof SessionStoreError && isReply(error.cause, 'WRONGTYPE'))) throw error;
      await Promise.all([...indexes].map(async ([name, hash]) => hash !== null && this.#setAside(name, hash)));
      // Another write of the user may have set it aside.
      return write();
    }
  }

  async #setAside(name: string, hash: string): Promise<void> {
    const found = await this.connection.writeInAll(this.partitions, (client, keys) =>
      this.scripts(client).setAsideIndex(keys, name, hash),
    );
    for (const { type, key, listed } of found.filter((stray) => stray !== undefined)) {
      logger.warn(
        `An index was a ${type}, not a sorted set, as if another version of this library or another client wrote it: ` +
          `it is set aside as ${key}, and a new index lists ${listed} of its sessions`,
      );
    }
  }

  /** From the highest score down. Who signs in again moves up past the current page, so that is read afterwards. */
  async *#walk(keys: SessionKeys, index: string): AsyncGenerator<Listed, void> {
    let after: string | undefined;
    for (;;) {
      const first = await this.#page(keys, index, { after });
      yield* first.sessions;
      let { last } = first;
      // A single page is read atomically, so nothing has moved.
      if (last === undefined) return;
      while (last !== undefined) {
        const page = await this.#page(keys, index, { before: last, after });
        yield* page.sessions;
        ({ last } = page as { last: string | undefined });
      }
      after = first.latest;
    }
  }

  async #page(keys: SessionKeys, index: string, bounds: Parameters<SessionScripts['list']>[3]) {
    const read = (client: Redis) =>
      Promise.all([
        this.scripts(client).list(keys, index, this.#pageSize, bounds),
        this.epochs.isStale(keys) ? this.epochs.ask(client, keys) : undefined,
      ]);
    const [page] = await this.connection.run(read, keys.prefix);
    const infos = page.sessions.map(toListedInfo).filter((info) => info !== undefined);
    const live = infos.filter((info) => !this.epochs.ends(keys, info));
    return { ...page, sessions: live.map((info) => ({ info, score: info.authenticatedAt ?? info.creationTime })) };
  }

  #sizesOf(indexName: string, value: string): Promise<number[]> {
    return this.connection.runInAll(this.partitions, (client, keys) => client.zcard(keys.index(indexName, value)));
  }
}

const MARK = loadScript(SCRIPT_SOURCES, 'session/leave-revocation-mark');
const marksOn = scriptsOn((client) => defineScripts(client, { mark: MARK }));

/** Leaves a revocation mark, with the time of Redis. `takesOver`: for as long as takeovers must be refused. */
export async function leaveRevocationMark(client: Redis, key: string, takesOver: boolean): Promise<void> {
  await marksOn(client)('mark', [key], [takesOver ? LONGEST_TAKEOVER : LONGEST_REQUEST]);
}
