import { SessionStoreError } from '@nest-session/core';
import type { RequestConnection, ScriptsOn } from '@nest-session/redis-events/internal';
import type { SessionKeys } from '../keys/session-keys.js';
import type { SessionPartitions } from '../keys/session-partitions.js';
import type { SessionScripts } from '../scripts/session/session.scripts.js';
import { leaveRevocationMark } from './leave-revocation-mark.js';

// A call blocks Redis for about 0.8 ms.
const ENDED_AT_ONCE = 50;

/** A call that ends sessions. */
interface Ending {
  readonly except: readonly string[];
  /** What has failed until now. */
  readonly problems: string[];
  readonly count: (ended: number) => void;
}

/** Counts and ends the sessions that an index lists, in all partitions. */
export class ListedSessions {
  constructor(
    private readonly connection: RequestConnection,
    private readonly scripts: ScriptsOn<SessionScripts>,
    private readonly partitions: SessionPartitions,
  ) {}

  async count(indexName: string, value: string): Promise<number> {
    return (await this.#sizesOf(indexName, value)).reduce((sum, size) => sum + size, 0);
  }

  /**
   * Ends all sessions except some ids. Returns the number of sessions that this call ended, which `onProgress` receives
   * after each batch.
   */
  async end(
    indexName: string,
    value: string,
    except: readonly string[],
    onProgress: (ended: number) => void = () => undefined,
  ): Promise<number> {
    const problems: string[] = [];
    let ended = 0;
    const count = (batch: number) => onProgress((ended += batch));
    const sizes = await this.#sizesOf(indexName, value);
    const listing = this.partitions.all.filter((_, i) => sizes[i]! > 0);
    for (const keys of listing) await this.#endIn(keys, keys.index(indexName, value), { except, problems, count });
    if (problems[0] !== undefined) throw new SessionStoreError(`Redis failed: ${problems[0]}`);
    return ended;
  }

  /**
   * Refuses what would be listed under the value later although it began before: sign-ins of requests, and with
   * `takesOver` the takeovers of another library's sessions. To be called before `end()`, which ends what came first.
   */
  async refuseBegun(indexName: string, value: string, takesOver: boolean): Promise<void> {
    await this.connection.writeInAll(this.partitions, (client, keys) =>
      leaveRevocationMark(client, keys.revocationMark(indexName, value), takesOver),
    );
  }

  /** Ends what an index of one partition lists, in batches. A session that a stray key protects is skipped. */
  async #endIn(keys: SessionKeys, index: string, { except, problems, count }: Ending): Promise<void> {
    const stays = except.filter((id) => this.partitions.of(id) === keys);
    let latest: string | undefined;
    do {
      const bounds = { latest, stays };
      const batch = await this.connection.write(
        (client) => this.scripts(client).endListed(keys, index, ENDED_AT_ONCE, bounds),
        keys.prefix,
      );
      count(batch.ended);
      stays.push(...batch.foreign);
      if (batch.problem !== undefined) problems.push(batch.problem);
      ({ latest } = batch);
    } while (latest !== undefined);
  }

  #sizesOf(indexName: string, value: string): Promise<number[]> {
    return this.connection.runInAll(this.partitions, (client, keys) => client.zcard(keys.index(indexName, value)));
  }
}
