import type { IncomingMessage } from 'node:http';
import { SessionStoreError } from '@nest-session/core';
import type { CloseReason, DetachedSession, OpenConnection, RequestSessions } from '@nest-session/core/internal';
import { TwoPrincipalsError } from '../connections/refusals.js';

/** How many messages of a client may wait for their session. More may come while the store is slow, or in an attack. */
export const MOST_WAITING = 10_000;

/** How many messages share a load. They are handled in one go, and all other work of the process waits meanwhile. */
export const MOST_SHARING = 100;

interface SharedLoad {
  messages: number;
  readonly found: Promise<readonly DetachedSession[]>;
}

/** A client of a gateway, with the session that its handshake presented, for as long as the session lives. */
export class GatewayClient implements OpenConnection {
  #ids: readonly string[] = [];
  #id: string | undefined;
  /** Why a presented session closes the connection, by its id, while it is not yet known which of them is opened. */
  #endedInLoad: Map<string, CloseReason> | undefined;
  #closing: CloseReason | undefined;
  #isGone = false;
  #hangUp: ((reason: CloseReason) => void) | undefined;
  #opening: DetachedSession | undefined;
  #unwatch: (() => void) | undefined;
  #isExcluded = false;
  /** The last load, until it is sent. A load that was already sent could miss what was stored before a new message. */
  #next: SharedLoad | undefined;
  #last: Promise<unknown> = Promise.resolve();
  #waiting = 0;

  constructor(
    private readonly sessions: RequestSessions,
    private readonly request: IncomingMessage,
  ) {}

  get closing(): CloseReason | undefined {
    return this.#closing;
  }

  get isGone(): boolean {
    return this.#isGone;
  }

  /** The id of the session that the handshake opened; undefined if it opened none. */
  get id(): string | undefined {
    return this.#id;
  }

  /** The session as the handshake found it; null if the request is excluded, undefined after `forgetOpening()`. */
  get opening(): DetachedSession | null | undefined {
    return this.#isExcluded ? null : this.#opening;
  }

  /**
   * Loads the session of the handshake.
   * @throws SessionStoreError when the store failed, because the client would stay unidentified while it is connected;
   *   TwoPrincipalsError when the handshake presents the sessions of two users, and that is refused
   */
  async load(): Promise<void> {
    this.#isExcluded = this.sessions.excludes(this.request);
    if (this.#isExcluded) return;
    // Register before the load, so that no end after it is missed.
    const ended = (this.#endedInLoad = new Map<string, CloseReason>());
    this.#belongTo(this.sessions.loader.presentedIds(this.request));
    const opening = await detachedOf(this.sessions, this.request).catch((error: unknown) => {
      this.disconnect();
      throw error;
    });
    void opening.touch?.send();
    this.#opening = opening;
    opening.attach();
    this.#endedInLoad = undefined;
    this.#id = opening.existing?.id;
    this.#belongTo(this.#id === undefined ? [] : [this.#id]);
    // The end of another session may be told late: that of a sign-out before the client came, for example.
    const reason = this.#id === undefined ? undefined : ended.get(this.#id);
    if (reason) this.#close(reason);
    else this.#watch(opening.existing?.storedPrincipal);
  }

  /** From now on, the connection is closed when its session is not that of its user any more. */
  #watch(principalName: string | undefined): void {
    if (this.#id === undefined || principalName === undefined || this.#isGone) return;
    const cut = () => this.#close('session ended');
    this.#unwatch = this.sessions.guarded.watch(this.request, this.#id, principalName, cut);
  }

  connect(hangUp: (reason: CloseReason) => void): void {
    this.#hangUp = hangUp;
    if (this.#closing) hangUp(this.#closing);
  }

  /** Releases the session after the gateways have received it. An idle client must not keep it in memory. */
  forgetOpening(): void {
    this.#opening = undefined;
  }

  readonly disconnect = (): void => {
    this.#belongTo([]);
    this.#unwatch?.();
    this.#isGone = true;
  };

  close(reason: CloseReason, id: string): void {
    if (this.#endedInLoad) this.#endedInLoad.set(id, reason);
    else this.#close(reason);
  }

  #close(reason: CloseReason): void {
    if (this.#closing) return;
    this.#closing = reason;
    this.#unwatch?.();
    this.#hangUp?.(reason);
  }

  /**
   * Loads the current session for one message. Returns null if the request is excluded, and undefined while the client
   * is being closed. However many messages arrive at once, at most one load is in progress.
   */
  async session(): Promise<DetachedSession | null | undefined> {
    if (this.#closing) return undefined;
    if (this.#isExcluded) return null;
    // A token that opened no session then never will, because nothing is stored under a presented id.
    if (this.#id === undefined) return this.sessions.none(this.request);
    if (++this.#waiting > MOST_WAITING) this.#refuseMessages(this.#id);
    try {
      const current = await this.#load(this.#id);
      if (current && !current.isUnavailable && !current.existing) this.#close('session ended');
      return this.#closing ? undefined : current;
    } finally {
      this.#waiting--;
    }
  }

  /** Its later messages are not counted, because it is being closed. */
  #refuseMessages(id: string): void {
    this.sessions.reportLimit('waitingMessages', this.request, id);
    this.#close('too many messages');
  }

  async #load(id: string): Promise<DetachedSession | undefined> {
    const load = (this.#next ??= this.#share(id));
    const place = load.messages++;
    if (load.messages === MOST_SHARING) this.#next = undefined;
    return (await load.found)[place];
  }

  #share(id: string): SharedLoad {
    const found = this.#last.then(() => {
      if (this.#next === load) this.#next = undefined;
      return this.#closing ? [] : this.sessions.detachedAgain(this.request, id, load.messages);
    });
    const load: SharedLoad = { messages: 0, found };
    const settled = () => undefined;
    this.#last = found.then(settled, settled);
    return load;
  }

  #belongTo(ids: readonly string[]): void {
    // The client may have disconnected while its session was loading.
    if (this.#isGone) return;
    this.sessions.open.remove(this, this.#ids);
    this.#ids = ids;
    this.sessions.open.add(this, ids);
  }
}

/** Null: the request is excluded. @throws SessionStoreError or TwoPrincipalsError, as `GatewayClient.load()` */
export async function openingOf(sessions: RequestSessions, request: IncomingMessage): Promise<DetachedSession | null> {
  return sessions.excludes(request) ? null : detachedOf(sessions, request);
}

async function detachedOf(sessions: RequestSessions, request: IncomingMessage): Promise<DetachedSession> {
  const opening = await sessions.detached(request);
  if (!opening.isUnavailable) return opening;
  if (opening.hasTwoPrincipals) throw new TwoPrincipalsError();
  throw new SessionStoreError('The session of a WebSocket could not be loaded');
}
