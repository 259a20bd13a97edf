import { SessionStoreError } from '@nest-session/core';
import type { IndexChanges } from '@nest-session/core/store';
import { isReply, logger, type RequestConnection, type ScriptsOn } from '@nest-session/redis-events/internal';
import type { SessionPartitions } from '../keys/session-partitions.js';
import type { SessionScripts } from '../scripts/session/session.scripts.js';

/**
 * Keeps a key of another type in the place of an index from locking a user out, such as an index that another version
 * of this library wrote in another form: it is set aside, and the index is built anew.
 */
export class StrayIndexes {
  constructor(
    private readonly connection: RequestConnection,
    private readonly scripts: ScriptsOn<SessionScripts>,
    private readonly partitions: SessionPartitions,
  ) {}

  /** Makes a write that changes these indexes. When it fails for such keys, it is made once more without them. */
  async outOfTheWayOf<T>(indexes: IndexChanges, write: () => Promise<T>): Promise<T> {
    try {
      return await write();
    } catch (error) {
      if (!(error instanceof SessionStoreError && isReply(error.cause, 'WRONGTYPE'))) throw error;
      await this.#setAside(listing(indexes));
      // Also where there was nothing to set aside: another write of the user may just have done that.
      return write();
    }
  }

  async #setAside(indexes: readonly [name: string, hash: string][]): Promise<void> {
    const each = this.partitions.all.flatMap((keys) => indexes.map(([name, hash]) => ({ keys, name, hash })));
    const found = await Promise.all(
      each.map(({ keys, name, hash }) =>
        this.connection.write((client) => this.scripts(client).setAsideIndex(keys, name, hash), keys.prefix),
      ),
    );
    const strays = found.filter((stray) => stray !== undefined);
    for (const { type, key, listed } of strays) {
      logger.warn(
        `An index was a ${type}, not a sorted set, as if another version of this library or another client wrote it: ` +
          `it is set aside as ${key}, and a new index lists ${listed} of its sessions`,
      );
    }
  }
}

/** Those that list the session from then on. */
function listing(indexes: IndexChanges): [name: string, hash: string][] {
  return [...indexes].flatMap(([name, hash]) => (hash === null ? [] : [[name, hash]]));
}
