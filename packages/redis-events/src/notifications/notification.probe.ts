import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import { isAnswer } from '../connection/reply.errors.js';
import { isFaultOfServer } from '../connection/until-sound.js';
import { requireFlags } from './notification-flags.js';
import { shownError } from '@nest-session/core/internal';

/** The result of a probe. */
export interface ProbeResult {
  /** Whether flags were missing and have been set, so that Redis may not have sent earlier notifications. */
  readonly flagsWereMissing: boolean;
  /** Why the flags could not be read or set; undefined if they could. */
  readonly refused: string | undefined;
  /** Whether the notification of the canary arrived; undefined without a canary, or if it could not be written. */
  readonly heard: boolean | undefined;
}

// Milliseconds.
const PAUSE_AFTER_ERROR = 100;
// A canary lives for one millisecond by Redis' clock. The clock may be set back meanwhile, so look again.
const LOOK_INTERVAL = 5;
const MOST_LOOKS = 200;
// A prefix with a hash tag has keys on one node only. For any other prefix, a key on the node is soon found.
const MOST_DRAWS = 2000;

/** The connections for the probe of one node. */
export interface ProbeConnections {
  /** The connection on which its notifications arrive. */
  readonly subscriber: Redis;
  /** Returns a connection to the node for other commands. @throws Error if there is none */
  readonly commands: () => Redis;
  /** Whether a key is on the node. */
  readonly has: (key: string) => boolean;
}

/** Sets the flags of `notify-keyspace-events`, and checks with a canary whether notifications arrive. */
export class NotificationProbe {
  /** The key of the canary whose notification is awaited. */
  #awaited: string | undefined;

  constructor(
    private readonly connections: ProbeConnections,
    private readonly flags: string,
    /** Prefixes of the keys of canaries. */
    private readonly canaries: readonly string[],
  ) {}

  isCanary(key: string): boolean {
    return this.canaries.some((prefix) => key.startsWith(prefix));
  }

  /** Called when a canary of this or another instance has expired. */
  heard(key: string): void {
    if (key === this.#awaited) this.#awaited = undefined;
  }

  /** Runs the probe. Never rejects. While the node has a connection for notifications, waits for one for commands. */
  async run(): Promise<ProbeResult> {
    for (;;) {
      try {
        const flagsWereMissing = await requireFlags(this.connections.commands(), this.flags);
        return { flagsWereMissing, refused: undefined, heard: await this.#hearsCanary() };
      } catch (error) {
        const isAnswered = isAnswer(error) && !isFaultOfServer(error);
        if (isAnswered || this.connections.subscriber.status !== 'ready') {
          const refused =
            `CONFIG is not allowed (${shownError(error)}): ` +
            `set notify-keyspace-events to "${this.flags}" on the server`;
          return { flagsWereMissing: false, refused, heard: await this.#hearsCanary() };
        }
        await pause(PAUSE_AFTER_ERROR, undefined, { ref: false });
      }
    }
  }

  async #hearsCanary(): Promise<boolean | undefined> {
    const key = this.#canaryOfNode();
    if (key === undefined) return undefined;
    this.#awaited = key;
    try {
      const commands = this.connections.commands();
      await commands.set(key, '', 'PX', 1);
      for (let looks = 1; (await commands.exists(key)) === 1; looks++) {
        if (looks === MOST_LOOKS) return undefined;
        await pause(LOOK_INTERVAL, undefined, { ref: false });
      }
      // Redis sends the notification before the reply to this PING or not at all.
      await this.connections.subscriber.ping();
    } catch {
      return undefined;
    }
    return this.#awaited !== key;
  }

  /** Returns a new key that is on the node, or undefined if it finds none. */
  #canaryOfNode(): string | undefined {
    for (let draws = 0; draws < MOST_DRAWS && this.canaries.length > 0; draws++) {
      const key = this.canaries[draws % this.canaries.length]! + randomUUID();
      if (this.connections.has(key)) return key;
    }
    return undefined;
  }
}
