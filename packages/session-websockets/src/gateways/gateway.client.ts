import type { IncomingMessage } from 'node:http';
import { SessionStoreError } from '@nest-session/core';
import type { DetachedSession, RequestSessions } from '@nest-session/core/transport';
import type { CloseReason, OpenConnection, OpenConnections } from '../connections/open-connections.js';

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
    const { session } = opening;
    if (session.isUnavailable) {
      this.disconnect();
      throw new SessionStoreError('The session of a WebSocket could not be loaded');
    }
    void session.touch.send();
    this.#opening = opening;
    opening.attach();
    this.#id = session.existing?.id;
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
    this.#closing ??= reason;
    this.#hangUp?.(reason);
  }

  /** The session as it is now, for one message; null when there is none, undefined when it has ended. */
  async session(): Promise<DetachedSession | null | undefined> {
    if (this.#closing) return undefined;
    if (this.#isExcluded) return null;
    // What opened no session then never will: nothing is stored under a presented id.
    if (this.#id === undefined) return this.#sessions.none(this.#request);
    const current = await this.#sessions.detached(this.#request);
    const { existing, isUnavailable } = current.session;
    // Of several tokens, another one may open a session by now: it is not the one that the client has used here.
    if (isUnavailable || existing?.id === this.#id) return current;
    this.close('session ended');
    return undefined;
  }

  #belongTo(ids: readonly string[]): void {
    // It may have left while its session was being loaded.
    if (this.#isGone) return;
    this.#open.remove(this, this.#ids);
    this.#ids = ids;
    this.#open.add(this, ids);
  }
}
