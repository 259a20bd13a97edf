import type { IncomingMessage } from 'node:http';
import { type BeforeApplicationShutdown, type ExecutionContext, Inject, Injectable } from '@nestjs/common';
import { ModuleRef } from '@nestjs/core';
import { PollingLoop } from '../background/polling.loop.js';
import { lookAgain, SessionRepository } from '../repository/session.repository.js';
import { GraphqlOperation } from './graphql-operation.js';
import { type CloseReason, type OpenConnection, OpenConnections } from './open-connections.js';
import { isUpgrade } from './request-of.js';
import type { RequestSession } from './request-session.js';
import { ResponseCommit } from './response-commit.js';
import { isDestroyed } from './response-functions.js';
import { SessionEndListener } from './session-end.listener.js';

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
  /** The id under which the store has the session, as far as the request knows; undefined: it has none to look for. */
  storedId(): string | undefined;
}

/** A connection that lives as long as the login of its session. */
class GuardedConnection implements OpenConnection {
  /** When the store is asked for its session, by the monotonic clock. */
  lookAt = performance.now() + PAUSE;
  /** Whether an event has told its id. */
  isTold = false;

  constructor(
    readonly carrier: Carrier,
    readonly principalName: string,
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
    if (principalName !== null && principalName !== this.principalName) return false;
    this.id = id;
    this.isTold = true;
    return true;
  }
}

/**
 * Ends what a guard has let in when the login ends: a response that is still open, and the connection of a subscription
 * of GraphQL. It follows the session to later ids of the same principal.
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
  add(context: ExecutionContext, session: RequestSession): void {
    const { request, existing } = session;
    if (existing?.principalName === undefined || !mayLast(context)) return;
    const { id, principalName } = existing;
    const commit = isUpgrade(request) ? undefined : ResponseCommit.of(request);
    if (commit ? commit.isGuarded || isDestroyed(commit.response) : !this.#isNewSocket(request, id)) return;
    const connection = new GuardedConnection(commit ? responseOf(commit) : socketOf(request, id), principalName, id);
    if (commit) commit.isGuarded = true;
    else this.#sockets.set(request, connection);
    this.#all.add(connection);
    this.open.add(connection, [connection.id]);
    const left = () => this.#remove(connection);
    if (commit) commit.whenClosed(left);
    else request.socket.once('close', left);
    if (this.#isRunning) return;
    this.#isRunning = true;
    this.#rounds.start();
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
    const { id, carrier, principalName } = connection;
    const storedId = carrier.storedId();
    // It is not stored yet.
    if (storedId === undefined) return;
    const repository = this.moduleRef.get<SessionRepository>(SessionRepository, { strict: false });
    const found = await lookAgain(repository, id, principalName).catch(() => undefined);
    // An event has told meanwhile.
    if (connection.id !== id || !this.#all.has(connection)) return;
    if (found === 'forwarded' && storedId !== id && !connection.isTold) this.#rename(connection, storedId);
    if (found === 'alive') connection.lookAt = now + BETWEEN_LOOKS;
    if (found !== 'gone') return;
    this.#remove(connection);
    connection.close('session ended');
  }

  /** The request itself has given its session another id. */
  #rename(connection: GuardedConnection, id: string): void {
    this.open.remove(connection, [connection.id]);
    connection.id = id;
    this.open.add(connection, [id]);
  }
}

/** Not a message of a gateway, whose socket is closed anyway, nor what is answered once over a connection. */
function mayLast(context: ExecutionContext): boolean {
  const type = context.getType<string>();
  if (type !== 'graphql') return type === 'http';
  const operation = GraphqlOperation.of(context);
  return operation.isSubscription || !isUpgrade(operation.incoming);
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
    storedId: () => (session.existing?.storedId === session.existing?.id ? session.existing?.id : undefined),
  };
}

function socketOf({ socket }: IncomingMessage, id: string): Carrier {
  return { cut: () => void socket.destroy(), storedId: () => id };
}
