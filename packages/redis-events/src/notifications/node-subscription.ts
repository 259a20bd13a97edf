import { setTimeout as pause } from 'node:timers/promises';
import { shownError } from '@nest-session/core/internal';
import { isFaultOfServer, RETRY } from '../connection/until-sound.js';
import type { KeyspaceNotification } from './keyspace-notification.js';
import type { KeyspaceState, ResolvedSubscription } from './keyspace-subscription.options.js';
import { NotificationProbe, type ProbeConnections, type ProbeResult } from './notification.probe.js';

/** Receives reports about the part of a subscription on one node. */
export interface NodeReports {
  receive(notification: KeyspaceNotification): void;
  /** Called when the state of the part has changed. */
  changed(): void;
  /** Called when notifications of the node may have been missed. */
  missed(since: number | undefined): void;
}

/** The part of a subscription on one node. It subscribes, and checks that notifications of the node arrive. */
export class NodeSubscription {
  readonly #probe: NotificationProbe;
  #state: KeyspaceState = 'connecting';
  #reason: string | undefined;
  /** Counts lost connections and the end, because the result of a check is valid for one connection only. */
  #gone = 0;
  #isSubscribed = false;
  /** The monotonic time of the next check. */
  #nextCheck = 0;

  constructor(
    private readonly connections: ProbeConnections,
    private readonly resolved: ResolvedSubscription,
    private readonly reports: NodeReports,
    /** Milliseconds between two checks. */
    private readonly interval: number,
    /** When notifications of the whole subscription last arrived. */
    private lastHeard: number | undefined,
  ) {
    this.#probe = new NotificationProbe(connections, resolved.flags, resolved.canaries);
  }

  get state(): KeyspaceState {
    return this.#state;
  }

  get reason(): string | undefined {
    return this.#reason;
  }

  get heardAt(): number | undefined {
    return this.lastHeard;
  }

  get channels(): readonly string[] {
    return this.resolved.channels;
  }

  get patterns(): readonly string[] {
    return this.resolved.patterns;
  }

  /** Called when there is no connection, because it was lost or is not ready yet. */
  disconnected(reason?: string): void {
    this.#gone++;
    this.#isSubscribed = false;
    this.#nextCheck = 0;
    this.#report('connecting', reason);
  }

  /** Called when it is closed: a check that runs subscribes to nothing more. */
  closed(): void {
    this.#gone++;
  }

  receive(notification: KeyspaceNotification): void {
    const { event, key } = notification;
    if (!this.resolved.hears(event)) return;
    if (!this.#probe.isCanary(key)) this.reports.receive(notification);
    else if (event === 'expired') this.#probe.heard(key);
  }

  /**
   * Subscribes on a new connection, and checks that notifications arrive if a check is due. Never rejects. Not
   * re-entrant.
   */
  async check(): Promise<void> {
    if (performance.now() < this.#nextCheck) return;
    const gone = this.#gone;
    const isNew = !this.#isSubscribed;
    if (!isNew || (await this.#subscribe())) {
      const result = await this.#probe.run();
      if (gone === this.#gone) this.#conclude(result, isNew);
    }
    if (gone === this.#gone) this.#nextCheck = performance.now() + this.interval;
  }

  async #subscribe(): Promise<boolean> {
    const gone = this.#gone;
    const { subscriber } = this.connections;
    while (gone === this.#gone) {
      try {
        if (this.channels.length > 0) await subscriber.subscribe(...this.channels);
        if (gone === this.#gone && this.patterns.length > 0) await subscriber.psubscribe(...this.patterns);
        this.#isSubscribed = gone === this.#gone;
        return this.#isSubscribed;
      } catch (error) {
        if (gone !== this.#gone) break;
        if (!isFaultOfServer(error)) {
          this.#report('refused', `the channel is not allowed (${shownError(error)})`);
          break;
        }
        await pause(RETRY, undefined, { ref: false });
      }
    }
    return false;
  }

  #conclude({ heard, refused, flagsWereMissing }: ProbeResult, isNew: boolean): void {
    const before = this.#state;
    if (heard === false) {
      // After a failover the old server may stay connected, but keys no longer expire there. A new connection finds the
      // new server.
      if (!isNew && (before === 'listening' || refused === undefined)) {
        return this.connections.subscriber.disconnect(true);
      }
      this.#report('silent', refused ?? `no notification arrives, although "${this.resolved.flags}" is set`);
    } else if (heard === undefined && refused !== undefined) {
      this.#report('unproven', refused);
    } else {
      this.#report('listening');
    }
    if (isNew || flagsWereMissing || (before === 'silent' && heard)) this.reports.missed(this.lastHeard);
    if (this.#state === 'listening') this.lastHeard = Date.now();
  }

  #report(state: KeyspaceState, reason?: string): void {
    if (state === this.#state && reason === this.#reason) return;
    [this.#state, this.#reason] = [state, reason];
    this.reports.changed();
  }
}
