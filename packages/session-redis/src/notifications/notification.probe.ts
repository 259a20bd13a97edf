import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import { requireFlags } from './notification-flags.js';

/** What a proof has found out. */
export interface ProofResult {
  /** The flags were missing, and have been set: until now something may not have been announced. */
  readonly flagsWereMissing: boolean;
  /** Why the flags could be neither read nor set, if so. */
  readonly refused: string | undefined;
  /** Whether the canary was heard; undefined when there is none or it could not be tried. */
  readonly heard: boolean | undefined;
}

// A canary has one millisecond to live, but by Redis' clock, which may be set back meanwhile.
const LOOK_INTERVAL = 5;
const MOST_LOOKS = 200;

/** Sees to it that Redis announces, and finds out whether what it announces arrives. */
export class NotificationProbe {
  /** The key of the canary that is on its way. */
  #awaited: string | undefined;

  constructor(
    /** The connection on which notifications arrive. */
    private readonly subscriber: Redis,
    private readonly commands: Redis,
    private readonly flags: string,
    /** What the key of a canary begins with. */
    private readonly canary: string | undefined,
  ) {}

  isCanary(key: string): boolean {
    return this.canary !== undefined && key.startsWith(this.canary);
  }

  /** The key of a canary, this instance's or another's, was announced as expired. */
  heard(key: string): void {
    if (key === this.#awaited) this.#awaited = undefined;
  }

  /** Never rejects. */
  async run(): Promise<ProofResult> {
    try {
      const flagsWereMissing = await requireFlags(this.commands, this.flags);
      return { flagsWereMissing, refused: undefined, heard: await this.#hearsCanary() };
    } catch (error) {
      const refused = `CONFIG cannot be used (${String(error)}): set notify-keyspace-events to "${this.flags}" on the server`;
      return { flagsWereMissing: false, refused, heard: await this.#hearsCanary() };
    }
  }

  async #hearsCanary(): Promise<boolean | undefined> {
    if (this.canary === undefined) return undefined;
    const key = this.canary + randomUUID();
    this.#awaited = key;
    try {
      await this.commands.set(key, '', 'PX', 1);
      for (let looks = 1; (await this.commands.exists(key)) === 1; looks++) {
        if (looks === MOST_LOOKS) return undefined;
        await pause(LOOK_INTERVAL, undefined, { ref: false });
      }
      // Redis has announced it by now, if it does, and the answer to this comes behind that.
      await this.subscriber.ping();
    } catch {
      return undefined;
    }
    return this.#awaited !== key;
  }
}
