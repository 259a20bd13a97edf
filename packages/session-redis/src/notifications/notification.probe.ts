import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import { requireFlags } from './notification-flags.js';
import { shownError } from '@nest-session/core/store';

/** The result of a probe. */
export interface ProbeResult {
  /** Whether flags were missing and have been set: Redis may not have sent earlier notifications. */
  readonly flagsWereMissing: boolean;
  /** Why the flags could not be read or set; undefined when they could. */
  readonly refused: string | undefined;
  /** Whether the canary was heard; undefined without a canary, or when it could not be written. */
  readonly heard: boolean | undefined;
}

// A canary lives for one millisecond by Redis' clock, which may be set back meanwhile.
const LOOK_INTERVAL = 5;
const MOST_LOOKS = 200;

/** Sets the flags of `notify-keyspace-events`, and checks with a canary whether notifications arrive. */
export class NotificationProbe {
  /** The key of the canary whose notification is awaited. */
  #awaited: string | undefined;

  constructor(
    /** The connection on which notifications arrive. */
    private readonly subscriber: Redis,
    private readonly commands: Redis,
    private readonly flags: string,
    /** Prefix of the keys of canaries. */
    private readonly canary: string | undefined,
  ) {}

  isCanary(key: string): boolean {
    return this.canary !== undefined && key.startsWith(this.canary);
  }

  /** A canary of this or another instance has expired. */
  heard(key: string): void {
    if (key === this.#awaited) this.#awaited = undefined;
  }

  /** Never rejects. */
  async run(): Promise<ProbeResult> {
    try {
      const flagsWereMissing = await requireFlags(this.commands, this.flags);
      return { flagsWereMissing, refused: undefined, heard: await this.#hearsCanary() };
    } catch (error) {
      const refused =
        `CONFIG is not allowed (${shownError(error)}): ` +
        `set notify-keyspace-events to "${this.flags}" on the server`;
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
      // Redis sends the notification before the reply to this PING, or not at all.
      await this.subscriber.ping();
    } catch {
      return undefined;
    }
    return this.#awaited !== key;
  }
}
