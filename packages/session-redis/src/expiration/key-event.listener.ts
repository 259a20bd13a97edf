import { Logger } from '@nestjs/common';
import type { Redis } from 'ioredis';
import type { SessionKeys } from '../keys/session.keys.js';
import type { SessionScripts } from '../scripts/session.scripts.js';
import { enableExpiredEvents } from './keyspace-notifications.js';

// Every instance hears every event, so a claim for each would cost Redis more than the sweep they save.
const COLLECTING_TIME = 75;

/**
 * Hears from Redis that shadow keys have expired, and has the ends of their sessions recorded at once instead of at the
 * next sweep. It only makes things faster: what it misses, or what cannot be announced at all, the sweeper finds.
 */
export class KeyEventListener {
  readonly #logger = new Logger('SessionKeyEvents');
  readonly #due = new Set<string>();
  #timer: NodeJS.Timeout | undefined;
  #claiming: Promise<void> = Promise.resolve();
  #lastState = '';
  readonly #onMessage = (_channel: string, key: string) => this.#onExpired(key);
  readonly #onReady = () => void this.#subscribe();

  constructor(
    private readonly subscriber: Redis,
    private readonly scripts: SessionScripts,
    private readonly keys: SessionKeys,
    private readonly batchSize: number,
    /** Called after each subscription, for what happened before it. */
    private readonly catchUp: () => Promise<unknown>,
  ) {}

  start(): void {
    this.subscriber.on('message', this.#onMessage).on('ready', this.#onReady);
    this.subscriber.connect().catch(() => undefined);
  }

  /** Resolves when the claims that were sent have been answered. */
  async stop(): Promise<void> {
    this.subscriber.off('message', this.#onMessage).off('ready', this.#onReady);
    clearTimeout(this.#timer);
    this.#due.clear();
    await this.#claiming;
  }

  /** Anew for each connection: a server that was restarted has forgotten the setting. */
  async #subscribe(): Promise<void> {
    try {
      const refused = await enableExpiredEvents(this.subscriber).then(
        () => undefined,
        (error: unknown) => String(error),
      );
      await this.subscriber.subscribe(`__keyevent@${this.subscriber.options.db ?? 0}__:expired`);
      this.#report(
        refused === undefined
          ? 'Redis announces expired sessions'
          : `Redis may not announce expired sessions, they are found by the cleanup job: CONFIG is not allowed (${refused}). ` +
              'Set notify-keyspace-events to "Ex" on the server to hear of them within a second',
      );
      await this.catchUp();
    } catch (error) {
      // The connection went again, and the next one subscribes; or the user has no right to the channel.
      if (this.subscriber.status !== 'ready') return;
      this.#report(`Expired sessions are found by the cleanup job alone: ${String(error)}`);
    }
  }

  /** One line for each state, not for each connection. */
  #report(state: string): void {
    if (state !== this.#lastState) this.#logger.log(state);
    this.#lastState = state;
  }

  #onExpired(key: string): void {
    const id = this.keys.idOfShadow(key);
    if (id === undefined) return;
    this.#due.add(`expires:${id}`);
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      this.#claiming = this.#claiming.then(() => this.#claim());
    }, COLLECTING_TIME).unref();
  }

  async #claim(): Promise<void> {
    const due = [...this.#due];
    this.#due.clear();
    try {
      for (let i = 0; i < due.length; i += this.batchSize) {
        await this.scripts.claimExpired(due.slice(i, i + this.batchSize));
      }
    } catch (error) {
      this.#logger.warn(`Expired sessions are left to the cleanup job: ${String(error)}`);
    }
  }
}
