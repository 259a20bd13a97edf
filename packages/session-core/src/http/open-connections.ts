import { setImmediate as nextTurn } from 'node:timers/promises';
import { type BeforeApplicationShutdown, Inject, Injectable } from '@nestjs/common';
import { ModuleRef } from '@nestjs/core';
import { PollingLoop } from '../background/polling.loop.js';
import { SessionEventDispatcher } from '../events/session-event.dispatcher.js';
import { SessionDestroyedEvent, type SessionEvent, SessionIdChangedEvent } from '../events/session.events.js';
import { SessionRepository } from '../repository/session.repository.js';
import { SessionExtension } from './session-extension.js';

/** Why the application closes a connection. */
export type CloseReason = 'session ended' | 'session id changed' | 'too many messages';

/** A connection that belongs to one session, or to one of several until its session is loaded. */
export interface OpenConnection {
  /** Closes the connection because of this session. Called at most once for each of its sessions. */
  readonly close: (reason: CloseReason, id: string) => void;
  /**
   * Whether the connection goes on with its session, which has this id from now on, and this principal; null: nobody
   * knows whose it is now. Without it, the connection is closed.
   */
  readonly follow?: (id: string, principalName: string | undefined | null) => boolean;
  /** Called in place of `close()` when a search did not find the session, which may have been rotated. */
  readonly doubt?: () => void;
}

/** The open connections of this instance, by the ids of their sessions. */
@Injectable()
export class OpenConnections {
  readonly #byId = new Map<string, Set<OpenConnection>>();
  /** Those that are being told of what has become of their session: one may remove another one. */
  #told: { readonly id: string; readonly connections: Set<OpenConnection> } | undefined;

  /** The ids of all sessions that have a connection. */
  get ids(): string[] {
    return [...this.#byId.keys()];
  }

  /** Registers a connection, which is then closed when a session with one of these ids ends. */
  add(connection: OpenConnection, ids: readonly string[]): void {
    for (const id of ids) {
      const connections = this.#byId.get(id) ?? new Set();
      this.#byId.set(id, connections.add(connection));
    }
  }

  /** Removes a connection from the connections of these sessions. */
  remove(connection: OpenConnection, ids: readonly string[]): void {
    for (const id of ids) {
      const connections = this.#byId.get(id);
      connections?.delete(connection);
      if (connections?.size === 0) this.#byId.delete(id);
      if (this.#told?.id === id) this.#told.connections.delete(connection);
    }
  }

  /**
   * Closes all connections of a session, also when a listener of the application throws.
   * @throws the first error of a listener
   */
  close(id: string, reason: CloseReason): void {
    this.#take(id, (connection) => connection.close(reason, id));
  }

  /** Closes those of a session that has got another id, but for what follows it. @throws as `close()` does */
  move(id: string, laterId: string, principalName: string | undefined | null): void {
    this.#take(id, (connection) => {
      if (connection.follow?.(laterId, principalName)) this.add(connection, [laterId]);
      else connection.close('session id changed', id);
    });
  }

  /** Closes those of a session that was not found, or lets them look for it themselves. @throws as `close()` does */
  miss(id: string): void {
    this.#take(id, (connection) => {
      if (!connection.doubt) return connection.close('session ended', id);
      this.add(connection, [id]);
      connection.doubt();
    });
  }

  #take(id: string, act: (connection: OpenConnection) => void): void {
    const connections = this.#byId.get(id);
    if (!connections) return;
    this.#byId.delete(id);
    const errors: unknown[] = [];
    const before = this.#told;
    this.#told = { id, connections };
    for (const connection of connections) {
      try {
        act(connection);
      } catch (error) {
        errors.push(error);
      }
    }
    this.#told = before;
    if (errors.length > 0) throw errors[0];
  }
}

/** How many sessions one call of the store looks up. */
const BATCH_SIZE = 100;
/** The pause between two searches, in milliseconds. */
const PAUSE = 1000;

/**
 * Closes the connections of a session on every instance when the session ends. When it is rotated, it closes those that
 * do not follow: a socket that was opened with a planted token must not follow the login of its victim.
 */
@Injectable()
export class SessionEndListener implements BeforeApplicationShutdown {
  readonly #search = new PollingLoop('The search for connections of ended sessions', PAUSE, () => this.#closeEnded());

  #gaps = 0;
  #isEnding = false;
  #isListening = false;

  constructor(
    @Inject(OpenConnections) private readonly connections: OpenConnections,
    @Inject(ModuleRef) private readonly moduleRef: ModuleRef,
    @Inject(SessionEventDispatcher) private readonly dispatcher: SessionEventDispatcher,
    @Inject(SessionExtension) extension: SessionExtension,
  ) {
    // The end events of these sessions may come minutes later.
    extension.onEveryEnd = () => this.search();
    dispatcher.addOwnHandlers({
      events: [
        handlerOf('onDestroyed', SessionDestroyedEvent, (event) => this.onDestroyed(event)),
        handlerOf('onIdChanged', SessionIdChangedEvent, (event) => this.onIdChanged(event)),
      ],
      gaps: [{ name: nameOf('search'), handle: () => this.search() }],
    });
  }

  /**
   * From now on, every store tells of the ends of sessions. Not before there is a connection to close: a store may have
   * to ask for the events, and to keep them.
   */
  listen(): void {
    if (this.#isListening) return;
    this.#isListening = true;
    void this.dispatcher.wantBroadcast();
  }

  async onDestroyed({ sessionId }: SessionDestroyedEvent): Promise<void> {
    // A store in memory tells of the end before the message is answered that has ended the session.
    await nextTurn();
    this.connections.close(sessionId, 'session ended');
  }

  onIdChanged(event: SessionIdChangedEvent): void {
    this.connections.move(event.previousSessionId, event.sessionId, principalAfter(event));
  }

  /**
   * Searches for ended sessions, and repeats until the store replies. Called when events come late or were missed, for
   * example because Redis was down.
   */
  search(): void {
    this.#gaps++;
    // The store is closed soon.
    if (!this.#isEnding) this.#search.start();
  }

  /** Stops the search. Called by Nest. */
  beforeApplicationShutdown(): Promise<void> {
    this.#isEnding = true;
    return this.#search.stop();
  }

  async #closeEnded(): Promise<void> {
    const repository = this.moduleRef.get<SessionRepository>(SessionRepository, { strict: false });
    const { ids } = this.connections;
    const gaps = this.#gaps;
    while (ids.length > 0) {
      const batch = ids.splice(0, BATCH_SIZE);
      const sessions = await repository.findByIds(batch);
      for (const [index, id] of batch.entries()) if (!sessions[index]) this.connections.miss(id);
    }
    // Go on after another gap, because sessions that this step has found may have ended in it. stop() waits for this
    // step, so do not await it.
    if (this.#gaps === gaps) void this.#search.stop();
  }
}

function handlerOf<E extends SessionEvent>(
  name: string,
  eventClass: abstract new (...args: never[]) => E,
  handle: (event: E) => unknown,
) {
  const handles = (event: SessionEvent) => event instanceof eventClass;
  const wants = (wanted: abstract new (...args: never[]) => SessionEvent) =>
    wanted === eventClass || wanted.prototype instanceof eventClass;
  const called = { name: nameOf(name), module: 'SessionModule' };
  return { ...called, broadcast: true, handles, wants, handle: (event: SessionEvent) => handle(event as E) };
}

/** Null: unknown. */
function principalAfter(event: SessionIdChangedEvent): string | undefined | null {
  // The session has ended meanwhile, or has yet another id: the next event tells which.
  if (event.dataLost) return null;
  try {
    return event.principalName;
  } catch {
    // It cannot be decrypted here: for this instance, nobody is signed in.
    return undefined;
  }
}

/** As log lines and metrics name a handler. */
function nameOf(method: string): string {
  return `${SessionEndListener.name}.${method}`;
}
