import type { IncomingMessage } from 'node:http';
import { type BeforeApplicationShutdown, Inject, Injectable } from '@nestjs/common';
import { ModuleRef } from '@nestjs/core';
import { PollingLoop } from '../background/polling.loop.js';
import { lookAgain, SessionRepository } from '../repository/session.repository.js';
import type { TrackedSession } from '../session/tracked-session.js';
import { type CloseReason, type OpenConnection, OpenConnections, SessionEndListener } from './open-connections.js';
import type { RequestSession } from './request-session.js';
import { ResponseCommit } from './response-commit.js';
import { isDestroyed } from './response-hold.js';

/** Milliseconds between two rounds, and from the guard to the first look: a short response is over by then. */
const PAUSE = 500;

/** Milliseconds between two looks at a connection: of a store that tells of no ends, or that has lost its events. */
const BETWEEN_LOOKS = 60_000;

/** Milliseconds in which a request that has not begun to respond may still do so, such as the one that signs out. */
const TIME_TO_ANSWER = 2000;

/** The response or the socket of a request that needed a login. */
interface Carrier {
  /** Cuts it off, or leaves it to the request that has ended the session itself. */
  cut(): void;
  /** What the request has of its session; undefined where it can neither give it another id nor sign anybody in. */
  session(): TrackedSession | undefined;
}

/** A connection that lives as long as the login of its session. */
class GuardedConnection implements OpenConnection {
  /** When the store is asked for its session, by the monotonic clock. */
  lookAt = performance.now() + PAUSE;
  /** Whether an event has told its id. */
  isTold = false;
  /** The id before another request gave the session others, until it is known that it leads to them. */
  formerId: string | undefined;

  constructor(
    readonly carrier: Carrier,
    public principalName: string,
    public id: string,
  ) {}

  close(_reason: CloseReason): void {
    this.carrier.cut();
  }

  /** The next round looks. */
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
  readonly #rounds = new PollingLoop('The check of open responses', PAUSE, () => this.#round());
  #isRunning = false;
  readonly #sockets = new WeakMap<IncomingMessage, GuardedConnection>();
  readonly #all = new Set<GuardedConnection>();

  constructor(
    @Inject(OpenConnections) private readonly open: OpenConnections,
    @Inject(SessionEndListener) private readonly listener: SessionEndListener,
    @Inject(ModuleRef) private readonly moduleRef: ModuleRef,
  ) {}

  /** Registers the response of a request that a guard lets in, or its connection when it asked for one. */
  add({ request, response, existing }: RequestSession): void {
    if (existing?.principalName === undefined) return;
    const { principalName } = existing;
    // Its request may be giving it another one.
    const id = existing.storedId ?? existing.id;
    const commit = response instanceof ResponseCommit ? response : undefined;
    if (commit ? commit.isGuarded || isDestroyed(commit.response) : !this.#isNewSocket(request, id)) return;
    const connection = new GuardedConnection(commit ? responseOf(commit) : socketOf(request), principalName, id);
    if (commit) commit.isGuarded = true;
    else this.#sockets.set(request, connection);
    const left = this.#keep(connection);
    if (commit) commit.whenClosed(left);
    else request.socket.once('close', left);
  }

  /**
   * Watches a socket that is told of the end of its session, and of another id: nobody tells of a principal that is
   * removed outside of requests. Returns what stops that.
   */
  watch(id: string, principalName: string, cut: () => void): () => void {
    const connection = new GuardedConnection({ cut, session: () => undefined }, principalName, id);
    connection.lookAt = performance.now() + BETWEEN_LOOKS;
    return this.#keep(connection);
  }

  /** Returns what is to be called when the connection is closed. */
  #keep(connection: GuardedConnection): () => void {
    this.#all.add(connection);
    this.open.add(connection, [connection.id]);
    if (!this.#isRunning) this.#rounds.start();
    this.#isRunning = true;
    return () => this.#remove(connection);
  }

  /** Called by Nest. */
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
    return lookAgain(repository, id, principalName);
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
