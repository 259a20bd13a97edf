import type { Redis } from 'ioredis';
import type { SessionKeys } from '../../keys/session-keys.js';
import { defineScripts, loadScripts, type ScriptedRedis } from '../define-scripts.js';

export type MoveLetterReply = 'moved' | 'gone';
export type RecordStageReply = 'recorded' | 'other';

const SOURCES = loadScripts('repartitioning', {
  moveDeadLetter: 'move-dead-letter',
  moveCounts: 'move-counts',
  recordStage: 'record-stage',
});

/** The scripts that move what is not a session to other partitions; on one server only. Each is one typed function. */
export class RepartitioningScripts {
  readonly #client: ScriptedRedis<keyof typeof SOURCES>;

  constructor(client: Redis) {
    this.#client = defineScripts(client, SOURCES);
  }

  /** `maxSize`: most bytes of the dead letters of a partition. */
  async moveDeadLetter(
    from: SessionKeys,
    to: SessionKeys,
    position: string,
    maxSize: number,
  ): Promise<MoveLetterReply> {
    const keys = [from.deadLetters, to.deadLetters];
    return (await this.#client.moveDeadLetter(2, keys, [position, maxSize])) as MoveLetterReply;
  }

  /** Adds the counts of a hash to those of another one. */
  async moveCounts(from: string, to: string): Promise<void> {
    await this.#client.moveCounts(2, [from, to]);
  }

  async recordStage(meta: string, now: string, next: string): Promise<RecordStageReply> {
    return (await this.#client.recordStage(1, [meta], [now, next])) as RecordStageReply;
  }
}
