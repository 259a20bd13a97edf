import type { IncomingMessage } from 'node:http';
import { SessionStoreError } from '@nest-session/core';
import type { DetachedSession, RequestSessions } from '@nest-session/core/internal';
import type { CloseReason, OpenConnection, OpenConnections } from '../connections/open-connections.js';

/** How many messages of a client may wait for their session: as many come while the store is slow, or on purpose. */
export const MOST_WAITING = 10_000;

/** How many messages share a load at most: they are handled one right after the other, and others have to wait for them. */
export const MOST_SHARING = 100;

/** A load that messages share. */
interface SharedLoad {
  messages: number;
  readonly found: Promise<readonly DetachedSession[]>;
}

/** A client of a gateway and its session: the one that its handshake presented, for as long as that lives. */
export class GatewayClient implements OpenConnection {
  readonly #sessions: RequestSessions;
  readonly #open: OpenConnections;
  readonly #request: IncomingMessage;
  /** The ids by which it is known to be open. */
  #ids: readonly string[] = [];
  #id: string | undefined;
  #closing: CloseReason | undefined;
  #isGone = false;
  #hangUp: ((reason: CloseReason) => void) | undefined;
  #opening: DetachedSession | undefined;
  #isExcluded = false;
  /** The last load, while it is not sent yet: only then does it see what was stored before a message. */
  #next: SharedLoad | undefined;
  /** Settles with the last load. */
  #last: Promise<unknown> = Promise.resolve();
  #waiting = 0;

  constructor(sessions: RequestSessions, open: OpenConnections, request: IncomingMessage) {
    this.#sessions = sessions;
    this.#open = open;
    this.#request = request;
  }

  /** Why it must be closed, if its session has ended meanwhile. */
  get closing(): CloseReason | undefined {
    return this.#closing;
  }

  /** The id of the session that it has been found to be open in; undefined when there is none. */
  get id(): string | undefined {
    return this.#id;
  }

  /** The session as the handshake found it; null when the request is excluded, undefined when it was forgotten. */
  get opening(): DetachedSession | null | undefined {
    return this.#isExcluded ? null : this.#opening;
  }

  /**
   * Loads the session of its handshake.
   * @throws SessionStoreError when the store failed: who the client is would stay unknown for as long as it is connected
   */
  async load(): Promise<void> {
    this.#isExcluded = this.#sessions.excludes(this.#request);
    if (this.#isExcluded) return;
    // Before the load: an end that comes after it must not be missed.
    this.#belongTo(this.#sessions.loader.presentedIds(this.#request));
    const opening = await this.#sessions.detached(this.#request);
    if (opening.isUnavailable) {
      this.disconnect();
      throw new SessionStoreError('The session of a WebSocket could not be loaded');
    }
    void opening.touch.send();
    this.#opening = opening;
    opening.attach();
    this.#id = opening.existing?.id;
    this.#belongTo(this.#id === undefined ? [] : [this.#id]);
  }

  /** From now on, `hangUp` closes it. */
  connect(hangUp: (reason: CloseReason) => void): void {
    this.#hangUp = hangUp;
    if (this.#closing) hangUp(this.#closing);
  }

  /** The gateways know of it. An idle client must not keep a session that may be large in memory. */
  forgetOpening(): void {
    this.#opening = undefined;
  }

  /** It was closed, by whomever. */
  readonly disconnect = (): void => {
    this.#belongTo([]);
    this.#isGone = true;
  };

  close(reason: CloseReason): void {
    if (this.#closing) return;
    this.#closing = reason;
    this.#hangUp?.(reason);
  }

  /**
   * The session as it is now, for one message; null when there is none, undefined when the client is being closed. However
   * many messages come at once, one load is under way at most.
   */
  async session(): Promise<DetachedSession | null | undefined> {
    if (this.#closing) return undefined;
    if (this.#isExcluded) return null;
    // What opened no session then never will: nothing is stored under a presented id.
    if (this.#id === undefined) return this.#sessions.none(this.#request);
    if (++this.#waiting > MOST_WAITING) this.close('too many messages');
    try {
      const current = await this.#load(this.#id);
      if (current && !current.isUnavailable && !current.existing) this.close('session ended');
      return this.#closing ? undefined : current;
    } finally {
      this.#waiting--;
    }
  }

  /** Undefined when the client is being closed. */
  async #load(id: string): Promise<DetachedSession | undefined> {
    const load = (this.#next ??= this.#share(id));
    const place = load.messages++;
    if (load.messages === MOST_SHARING) this.#next = undefined;
    return (await load.found)[place];
  }

  #share(id: string): SharedLoad {
    const found = this.#last.then(() => {
      if (this.#next === load) this.#next = undefined;
      return this.#closing ? [] : this.#sessions.detachedAgain(this.#request, id, load.messages);
    });
    const load: SharedLoad = { messages: 0, found };
    const settled = () => undefined;
    this.#last = found.then(settled, settled);
    return load;
  }

  #belongTo(ids: readonly string[]): void {
    // It may have left while its session was being loaded.
    if (this.#isGone) return;
    this.#open.remove(this, this.#ids);
    this.#ids = ids;
    this.#open.add(this, ids);
  }
}
