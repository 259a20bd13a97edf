import type { SessionInfo } from '@nest-session/core';
import type { RequestConnection, ScriptsOn } from '@nest-session/redis-events/internal';
import type { SessionKeys } from '../keys/session-keys.js';
import type { SessionPartitions } from '../keys/session-partitions.js';
import type { SessionScripts } from '../scripts/session/session.scripts.js';
import { toListedInfo } from './session-hash.js';
import type { SessionEpochs } from './session-epochs.js';

// A page of 100 sessions blocks Redis for about 0.7 ms.
const PAGE_SIZE = 100;
const SMALLEST_PAGE = 25;

/** Reads the sessions that an index lists, page by page, without their attributes. The latest sign-in comes first. */
export class SessionIndexReader {
  readonly #pageSize: number;

  constructor(
    private readonly connection: RequestConnection,
    private readonly scripts: ScriptsOn<SessionScripts>,
    private readonly partitions: SessionPartitions,
    private readonly epochs: SessionEpochs,
  ) {
    this.#pageSize = Math.max(SMALLEST_PAGE, partitions.shareOf(PAGE_SIZE));
  }

  /** Reads the live sessions of all partitions. It holds one page of each partition in memory. */
  list(indexName: string, value: string): AsyncGenerator<SessionInfo> {
    return merged(this.partitions.all.map((keys) => this.#walk(keys, keys.index(indexName, value))));
  }

  /**
   * Reads the sessions of one partition, from the highest score down. A session that signs in again meanwhile moves up,
   * past the current page. So sessions with a higher score than the first page are read afterwards.
   */
  async *#walk(keys: SessionKeys, index: string): AsyncGenerator<Listed> {
    let after: string | undefined;
    for (;;) {
      const first = await this.#page(keys, index, { after });
      yield* first.sessions;
      let { last } = first;
      // A single page is read atomically, so nothing has moved.
      if (last === undefined) return;
      while (last !== undefined) {
        const page: Page = await this.#page(keys, index, { before: last, after });
        yield* page.sessions;
        ({ last } = page);
      }
      after = first.latest;
    }
  }

  async #page(keys: SessionKeys, index: string, bounds: Parameters<SessionScripts['list']>[3]): Promise<Page> {
    const [page] = await this.connection.run(
      (client) =>
        Promise.all([
          this.scripts(client).list(keys, index, this.#pageSize, bounds),
          this.epochs.isStale(keys) ? this.epochs.ask(client, keys) : undefined,
        ]),
      keys.prefix,
    );
    const infos = page.sessions.map(toListedInfo).filter((info) => info !== undefined);
    const sessions = infos.filter((info) => !this.epochs.ends(keys, info));
    return { ...page, sessions: sessions.map((info) => ({ info, score: info.authenticatedAt ?? info.creationTime })) };
  }
}

interface Listed {
  readonly info: SessionInfo;
  readonly score: number;
}

interface Page {
  readonly sessions: readonly Listed[];
  readonly last: string | undefined;
  readonly latest: string | undefined;
}

/** Merges the sources. The latest sign-in comes first. */
async function* merged(sources: readonly AsyncGenerator<Listed>[]): AsyncGenerator<SessionInfo> {
  const heads = await Promise.all(sources.map(nextOf));
  for (;;) {
    const latest = indexOfLatest(heads);
    const head = heads[latest];
    if (!head) return;
    yield head.info;
    heads[latest] = await nextOf(sources[latest]!);
  }
}

async function nextOf(source: AsyncGenerator<Listed>): Promise<Listed | undefined> {
  const { done, value } = await source.next();
  return done ? undefined : (value as Listed);
}

/** The index of the latest sign-in, or -1 if none is left. */
function indexOfLatest(heads: readonly (Listed | undefined)[]): number {
  let latest = -1;
  for (const [i, head] of heads.entries()) {
    if (head && !(head.score <= (heads[latest]?.score ?? -Infinity))) latest = i;
  }
  return latest;
}
