import { setTimeout as delay } from 'node:timers/promises';
import { ClientDisconnectedError, SessionConflictError } from '../errors/session.errors.js';
import type { ContentBounds, IndexChanges, SessionChange, UpdateSession, WriteReply } from './session-change.js';
import { type StepBefore, TurnQueue } from './turn.queue.js';

interface UpdatedAttribute {
  /** null removes the attribute. */
  readonly text: string | null;
  readonly indexes: IndexChanges;
}

export interface AttributeUpdate {
  readonly id: string;
  readonly name: string;
  readonly known: string | undefined;
  readonly access: Pick<UpdateSession, 'keepsIdle' | 'memo' | 'bounds'>;
  readonly client: { readonly isAborted?: boolean } | undefined;
  /** Computes the update from the attribute's current text. May throw, and may be called again. */
  apply(text: string | undefined): UpdatedAttribute;
}

/** How the store answered an update: `text` is what this update has made of the attribute. */
export type UpdateResult =
  | { readonly outcome: 'saved'; readonly text: string | undefined }
  | { readonly outcome: 'full'; readonly bound: keyof ContentBounds }
  | { readonly outcome: 'gone'; readonly rotated?: boolean | undefined };

interface WaitingUpdate extends AttributeUpdate {
  readonly begin: number;
  resolve(result: UpdateResult): void;
  reject(error: unknown): void;
}

/** The text that the store has after a turn, and the memo that knows it; undefined when that is not known. */
type Known = { readonly text: string | undefined; readonly memo: UpdateSession['memo'] } | undefined;

const DEFAULT_TIMEOUT = 5000;

// Nothing else runs in this process while a batch is computed.
const LARGEST_BATCH = 32;
// Milliseconds.
const LONGEST_PAUSE = 50;

/**
 * Updates of one attribute of a session wait for each other. What has gathered in the meantime is written together, as
 * if one had followed the other: only updates of other instances can be in conflict, and an instance has one write of
 * an attribute under way. One that is only set is written without all that: the last one to write it wins.
 */
export class ConcurrentUpdates {
  readonly #turns: TurnQueue<Known>;
  readonly #waiting = new Map<string, WaitingUpdate[]>();

  constructor(
    private readonly write: (change: SessionChange) => Promise<WriteReply>,
    private readonly timeout = DEFAULT_TIMEOUT,
  ) {
    this.#turns = new TurnQueue(timeout);
  }

  get size(): number {
    return this.#turns.size;
  }

  /**
   * @throws SessionConflictError when it takes too long; ClientDisconnectedError when it would wait for a client that
   *   has left; SessionStoreError when the store failed; what `apply()` throws
   */
  run(update: AttributeUpdate): Promise<UpdateResult> {
    return new Promise((resolve, reject) => {
      this.#add({ ...update, begin: performance.now(), resolve, reject });
    });
  }

  #add(update: WaitingUpdate): void {
    // By the id that the request knows: an update of an old id must not start from what was stored since the rotation.
    const key = `${update.id}:${update.name}`;
    const waiting = this.#waiting.get(key);
    if (waiting && waiting.length < LARGEST_BATCH) {
      waiting.push(update);
      return;
    }
    const batch = [update];
    this.#waiting.set(key, batch);
    void this.#turns.run(key, (before) => {
      if (this.#waiting.get(key) === batch) this.#waiting.delete(key);
      return this.#make(batch, before);
    });
  }

  async #make(batch: readonly WaitingUpdate[], before: StepBefore<Known> | undefined): Promise<Known> {
    const { id, name, known: loaded, access } = batch.at(-1)!;
    const stored = before?.status === 'fulfilled' ? before.value : undefined;
    let known = stored ? stored.text : loaded;
    const { memo } = stored ?? access;
    let waiting = batch;
    for (let conflicts = 0; ; conflicts++) {
      // A random part of the pause ("full jitter"), so that instances do not meet again.
      if (conflicts > 0) await delay(Math.random() * Math.min(LONGEST_PAUSE, 2 ** conflicts));
      if (before || conflicts > 0) waiting = waiting.filter((update) => this.#isWaiting(update));
      const { last, settle } = applied(waiting, known);
      if (!last) {
        settle();
        return { text: known, memo };
      }
      const keepsIdle = waiting.every((update) => update.access.keepsIdle);
      const common = { ...(keepsIdle && { keepsIdle }), ...(memo && { memo }), bounds: access.bounds };
      const attributes = new Map([[name, last.text]]);
      const expected = { name, text: known };
      try {
        const reply = await this.write({ kind: 'update', id, ...common, attributes, indexes: last.indexes, expected });
        if (reply.outcome === 'conflict') {
          known = reply.current;
          continue;
        }
        if (reply.outcome === 'saved' || reply.outcome === 'forwarded') {
          settle();
          return { text: last.text ?? undefined, memo };
        }
        if (reply.outcome === 'full' && waiting.length > 1) return await this.#makeEach(waiting, { text: known, memo });
        const rotated = 'rotated' in reply ? reply.rotated : undefined;
        const result = reply.outcome === 'full' ? reply : ({ outcome: 'gone', rotated } as const);
        for (const update of waiting) update.resolve(result);
      } catch (error) {
        for (const update of waiting) update.reject(error);
      }
      return undefined;
    }
  }

  /** Settles updates one by one, because the session has no room for all of them. */
  async #makeEach(updates: readonly WaitingUpdate[], before: NonNullable<Known>): Promise<Known> {
    let known = before;
    for (const update of updates) known = (await this.#make([update], { status: 'fulfilled', value: known })) ?? known;
    return known;
  }

  #isWaiting({ name, client, begin, reject }: WaitingUpdate): boolean {
    if (client?.isAborted) reject(new ClientDisconnectedError());
    else if (performance.now() - begin > this.timeout) reject(new SessionConflictError(name, this.timeout));
    else return true;
    return false;
  }
}

/** Leaves out updates that throw; `last`: undefined when all did. Call `settle()` once the store has it. */
function applied(
  updates: readonly WaitingUpdate[],
  known: string | undefined,
): { last: UpdatedAttribute | undefined; settle(): void } {
  let last: UpdatedAttribute | undefined;
  const results = updates.map(({ apply, resolve, reject }) => {
    try {
      const updated = apply(last ? (last.text ?? undefined) : known);
      last = updated;
      return () => resolve({ outcome: 'saved', text: updated.text ?? undefined });
    } catch (error) {
      return () => reject(error);
    }
  });
  return { last, settle: () => results.forEach((settle) => settle()) };
}
