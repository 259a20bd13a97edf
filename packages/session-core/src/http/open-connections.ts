import type { IncomingMessage } from 'node:http';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { type BeforeApplicationShutdown, Inject, Injectable } from '@nestjs/common';
import { ModuleRef } from '@nestjs/core';
import type { BoundDevices } from '../device/bound-devices.js';
import { PollingLoop } from '../background/polling.loop.js';
import { SessionEventDispatcher } from '../events/session-event.dispatcher.js';
import { SessionDestroyedEvent, type SessionEvent, SessionIdChangedEvent } from '../events/session.events.js';
import { lookAgain, SessionRepository } from '../repository/session.repository.js';
import { TrackedSession } from '../session/tracked-session.js';
import type { RequestSession } from './request-session.js';
import { ResponseCommit } from './response-commit.js';
import { isDestroyed } from './response-hold.js';
import { SessionExtension } from './session-extension.js';

// What ends when a session ends: sockets, server-sent events and other open responses, and subscriptions.

export type CloseReason = 'session ended' | 'session id changed' | 'too many messages';

/** A connection that belongs to one session, or to one of several until its session is loaded. */
export interface OpenConnection {
  /** Closes the connection because of this session. Called at most once for each of its sessions. */
  readonly close: (reason: CloseReason, id: string) => void;
  /** Whether the connection goes on, although its session has another id now; null: nobody knows whose it is. */
  readonly follow?: (id: string, principalName: string | undefined | null) => boolean;
  /** Called in place of `close()` when a search did not find the session, which may have been rotated. */
  readonly doubt?: () => void;
}

@Injectable()
export class OpenConnections {
  readonly #byId = new Map<string, Set<OpenConnection>>();
  /** Those that are being told of what has become of their session: one may remove another one. */
  #told: { readonly id: string; readonly connections: Set<OpenConnection> } | undefined;

  get ids(): string[] {
    return [...this.#byId.keys()];
  }

  add(connection: OpenConnection, ids: readonly string[]): void {
    for (const id of ids) {
      const connections = this.#byId.get(id) ?? new Set();
      this.#byId.set(id, connections.add(connection));
    }
  }

  remove(connection: OpenConnection, ids: readonly string[]): void {
    for (const id of ids) {
      const connections = this.#byId.get(id);
      connections?.delete(connection);
      if (connections?.size === 0) this.#byId.delete(id);
      if (this.#told?.id === id) this.#told.connections.delete(connection);
    }
  }

  /** Also when a listener of the application throws. @throws its first error */
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
const BETWEEN_SEARCHES = 1000;

/**
 * Closes the connections of a session on every instance when the session ends. When it is rotated, it closes those that
 * do not follow: a socket that was opened with a planted token must not follow the login of its victim.
 */
@Injectable()
export class SessionEndListener implements BeforeApplicationShutdown {
  readonly #search = new PollingLoop('The search for connections of ended sessions', BETWEEN_SEARCHES, () =>
    this.#closeEnded(),
  );

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
    const onDestroyed = (event: SessionEvent) => this.onDestroyed(event);
    const onIdChanged = (event: SessionEvent) => this.onIdChanged(event as SessionIdChangedEvent);
    dispatcher.addOwnHandlers({
      events: [
        { name: 'SessionEndListener.onDestroyed', eventClass: SessionDestroyedEvent, handle: onDestroyed },
        { name: 'SessionEndListener.onIdChanged', eventClass: SessionIdChangedEvent, handle: onIdChanged },
      ],
      gaps: [{ name: 'SessionEndListener.search', handle: () => this.search() }],
    });
  }

  /** Not before there is a connection to close: a store may have to ask for the events, and to keep them. */
  listen(): void {
    if (this.#isListening) return;
    this.#isListening = true;
    void this.dispatcher.wantBroadcast();
  }

  async onDestroyed({ sessionId }: Pick<SessionEvent, 'sessionId'>): Promise<void> {
    // A store in memory tells of the end before the message is answered that has ended the session.
    await nextTurn();
    this.connections.close(sessionId, 'session ended');
  }

  onIdChanged(event: SessionIdChangedEvent): void {
    this.connections.move(event.previousSessionId, event.sessionId, principalAfter(event));
  }

  /** Repeats until the store replies. Called when events come late or were missed. */
  search(): void {
    this.#gaps++;
    // The store is closed soon.
    if (!this.#isEnding) this.#search.start();
  }

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

/** Milliseconds between two rounds, and from the guard to the first look: a short response is over by then. */
const BETWEEN_ROUNDS = 500;

/** Milliseconds between two looks at a connection: of a store that tells of no ends, or that has lost its events. */
const BETWEEN_LOOKS = 60_000;

/** Milliseconds in which a request that has not begun to respond may still do so, such as the one that signs out. */
const TIME_TO_ANSWER = 2000;

interface Carrier {
  /** Cuts it off, or leaves it to the request that has ended the session itself. */
  cut(): void;
  /** What the request has of its session; undefined where it can neither give it another id nor sign anybody in. */
  session(): TrackedSession | undefined;
}

class GuardedConnection implements OpenConnection {
  /** When the store is asked for its session, by the monotonic clock. */
  lookAt = performance.now() + BETWEEN_ROUNDS;
  isTold = false;
  /** The id before another request gave the session others, until it is known that it leads to them. */
  formerId: string | undefined;

  constructor(
    readonly carrier: Carrier,
    /** What has opened it; undefined where that needs no proof. */
    readonly opener: IncomingMessage | undefined,
    public principalName: string,
    public id: string,
  ) {}

  close(_reason: CloseReason): void {
    this.carrier.cut();
  }

  doubt(): void {
    this.lookAt = -Infinity;
  }

  follow(id: string, principalName: string | undefined | null): boolean {
    // Its own request may sign in somebody else: it goes on as theirs.
    const isOwn = this.carrier.session()?.id === id;
    if (isOwn) this.principalName = principalName ?? this.principalName;
    if (principalName !== null && principalName !== this.principalName) return false;
    if (!isOwn) {
      this.formerId ??= this.id;
      this.doubt();
    }
    this.id = id;
    this.isTold = true;
    return true;
  }
}

/**
 * Ends what a guard has let in when the login ends: a response that is still open, and the connection of a subscription
 * of GraphQL. It follows the session to later ids of the same principal, unless the former one was closed.
 */
@Injectable()
export class GuardedConnections implements BeforeApplicationShutdown {
  readonly #rounds = new PollingLoop('The check of open responses', BETWEEN_ROUNDS, () => this.#round());
  #isRunning = false;
  readonly #sockets = new WeakMap<IncomingMessage, GuardedConnection>();
  readonly #all = new Set<GuardedConnection>();

  constructor(
    @Inject(OpenConnections) private readonly open: OpenConnections,
    @Inject(SessionEndListener) private readonly listener: SessionEndListener,
    @Inject(ModuleRef) private readonly moduleRef: ModuleRef,
  ) {}

  /** By what the openers of connections prove their browsers. */
  devices: BoundDevices | undefined;

  add({ request, response, existing, isAdmitted }: RequestSession): void {
    if (existing?.principalName === undefined) return;
    const { principalName } = existing;
    // Its request may be giving it another one.
    const id = existing.storedId ?? existing.id;
    const commit = response instanceof ResponseCommit ? response : undefined;
    if (commit ? commit.isGuarded || isDestroyed(commit.response) : !this.#isNewSocket(request, id)) return;
    const carrier = commit ? responseOf(commit) : socketOf(request);
    const connection = new GuardedConnection(carrier, isAdmitted ? undefined : request, principalName, id);
    if (commit) commit.isGuarded = true;
    else this.#sockets.set(request, connection);
    const left = this.#keep(connection);
    if (commit) commit.whenClosed(left);
    else request.socket.once('close', left);
  }

  /** A socket is told of the end of its session, but nobody tells it of a user or a proof that is missing since. */
  watch(opener: IncomingMessage, id: string, principalName: string, cut: () => void): () => void {
    const connection = new GuardedConnection({ cut, session: () => undefined }, opener, principalName, id);
    connection.lookAt = performance.now() + BETWEEN_LOOKS;
    return this.#keep(connection);
  }

  #keep(connection: GuardedConnection): () => void {
    this.#all.add(connection);
    this.open.add(connection, [connection.id]);
    if (!this.#isRunning) this.#rounds.start();
    this.#isRunning = true;
    return () => this.#remove(connection);
  }

  beforeApplicationShutdown(): Promise<void> {
    return this.#rounds.stop();
  }

  /** A client may subscribe several times, and as another user with what it sends over the connection. */
  #isNewSocket(request: IncomingMessage, id: string): boolean {
    return !request.socket.destroyed && this.#sockets.get(request)?.id !== id;
  }

  #remove(connection: GuardedConnection): void {
    this.open.remove(connection, [connection.id]);
    this.#all.delete(connection);
  }

  async #round(): Promise<void> {
    const now = performance.now();
    const due = [...this.#all].filter(({ lookAt }) => lookAt <= now);
    if (due.length > 0) {
      // From here on, ends are told, and rotations. An end between the load and this is seen.
      this.listener.listen();
      await Promise.all(due.map((each) => this.#look(each, now)));
    }
    if (this.#all.size > 0) return;
    this.#isRunning = false;
    void this.#rounds.stop();
  }

  /** Leaves it to the next round where the store cannot be asked, or knows the session under a later id only. */
  async #look(connection: GuardedConnection, now: number): Promise<void> {
    const session = connection.carrier.session();
    // Who is signed in is not stored yet.
    if (session?.changesPrincipal || (session && session.storedId === undefined)) return;
    if (session && !connection.isTold) this.#catchUp(connection, session);
    const { id } = connection;
    const found = await this.#find(connection).catch(() => undefined);
    // An event has told, or the request itself has changed it, meanwhile.
    if (connection.id !== id || !this.#all.has(connection)) return;
    if (session && !connection.isTold && session.storedId !== id) return;
    if (found === 'alive') connection.lookAt = now + BETWEEN_LOOKS;
    if (found !== 'gone') return;
    this.#remove(connection);
    connection.close('session ended');
  }

  async #find(connection: GuardedConnection): Promise<'alive' | 'forwarded' | 'gone'> {
    const { id, formerId, principalName } = connection;
    const repository = this.moduleRef.get<SessionRepository>(SessionRepository, { strict: false });
    if (formerId !== undefined) {
      if ((await lookAgain(repository, formerId, principalName)) === 'gone') return 'gone';
      // Another rotation may follow meanwhile, and close the id after this one.
      if (connection.id === id) connection.formerId = undefined;
    }
    const found = await lookAgain(repository, id, principalName);
    return found === 'alive' && !(await this.#opens(repository, connection)) ? 'gone' : found;
  }

  /** Whether its opener has proven its browser, in case that has registered since. */
  async #opens(repository: SessionRepository, { id, opener }: GuardedConnection): Promise<boolean> {
    if (!this.devices || !opener) return true;
    const session = await repository.findById(id);
    return !session || this.devices.opens(opener, TrackedSession.of(session));
  }

  /** The request itself has given its session another id, and may have signed somebody in. */
  #catchUp(connection: GuardedConnection, { storedId, storedPrincipal }: TrackedSession): void {
    connection.principalName = storedPrincipal ?? connection.principalName;
    if (storedId === undefined || storedId === connection.id) return;
    this.open.remove(connection, [connection.id]);
    connection.id = storedId;
    this.open.add(connection, [storedId]);
  }
}

function responseOf(commit: ResponseCommit): Carrier {
  const { response, session } = commit;
  return {
    cut: () => {
      // It answers that the session has ended.
      if (session.existing?.isOver) return;
      if (commit.headersSent) return void response.destroy();
      const timer = setTimeout(() => response.destroy(), TIME_TO_ANSWER).unref();
      commit.whenClosed(() => clearTimeout(timer));
    },
    session: () => session.existing,
  };
}

function socketOf({ socket }: IncomingMessage): Carrier {
  return { cut: () => void socket.destroy(), session: () => undefined };
}
