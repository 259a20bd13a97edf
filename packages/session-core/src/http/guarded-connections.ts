import type { IncomingMessage } from 'node:http';
import { type BeforeApplicationShutdown, Inject, Injectable } from '@nestjs/common';
import { ModuleRef } from '@nestjs/core';
import { PollingLoop } from '../background/polling.loop.js';
import { lookAgain, SessionRepository } from '../repository/session.repository.js';
import { type CloseReason, type OpenConnection, OpenConnections } from './open-connections.js';
import { isUpgrade } from './request-of.js';
import type { RequestSession } from './request-session.js';
import { ResponseCommit } from './response-commit.js';
import { isDestroyed } from './response-functions.js';
import { SessionEndListener } from './session-end.listener.js';

/** Milliseconds between two rounds. A short response is over before the second one. */
const PAUSE = 500;

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
  /** Whether a round has seen it. */
  isOld = false;
  /** Whether an event has told its id. */
  isTold = false;

  constructor(
    readonly carrier: Carrier,
    readonly principalName: string,
    public id: string,
    readonly doubt: () => void,
  ) {}

  close(_reason: CloseReason): void {
    this.carrier.cut();
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
  readonly #known = new WeakMap<IncomingMessage, GuardedConnection>();
  /**
   * Those of which nobody has seen yet that their session was alive after they were registered: it may have ended, or
   * have got another id, between the load and the guard, and before this instance listened.
   */
  readonly #unconfirmed = new Set<GuardedConnection>();

  constructor(
    @Inject(OpenConnections) private readonly open: OpenConnections,
    @Inject(SessionEndListener) private readonly listener: SessionEndListener,
    @Inject(ModuleRef) private readonly moduleRef: ModuleRef,
  ) {}

  /** Registers the response of a request that a guard lets in, or its connection when it asked for one. */
  add(session: RequestSession): void {
    const { request, existing } = session;
    const known = this.#known.get(request);
    const isSocket = isUpgrade(request);
    if (existing?.principalName === undefined || (known && (!isSocket || known.id === existing.id))) return;
    const commit = isSocket ? undefined : ResponseCommit.of(request);
    if (commit ? isDestroyed(commit.response) : request.socket.destroyed) return;
    const carrier = commit ? responseOf(commit) : socketOf(request, existing.id);
    const connection: GuardedConnection = new GuardedConnection(carrier, existing.principalName, existing.id, () =>
      this.#doubt(connection),
    );
    this.#known.set(request, connection);
    this.open.add(connection, [connection.id]);
    this.#doubt(connection);
    const left = () => this.#remove(connection);
    if (commit) commit.whenClosed(left);
    else request.socket.once('close', left);
  }

  /** Called by Nest. */
  beforeApplicationShutdown(): Promise<void> {
    return this.#rounds.stop();
  }

  #doubt(connection: GuardedConnection): void {
    this.#unconfirmed.add(connection);
    if (this.#isRunning) return;
    this.#isRunning = true;
    this.#rounds.start();
  }

  #remove(connection: GuardedConnection): void {
    this.open.remove(connection, [connection.id]);
    this.#unconfirmed.delete(connection);
  }

  async #round(): Promise<void> {
    const old = [...this.#unconfirmed].filter(({ isOld }) => isOld);
    for (const each of this.#unconfirmed) each.isOld = true;
    if (old.length > 0) {
      // An end from here on is told, and an earlier one is seen.
      this.listener.listen();
      await Promise.all(old.map((each) => this.#confirm(each)));
    }
    if (this.#unconfirmed.size > 0) return;
    this.#isRunning = false;
    void this.#rounds.stop();
  }

  /** Leaves it to the next round where the store cannot be asked, or knows the session under a later id only. */
  async #confirm(connection: GuardedConnection): Promise<void> {
    const { id, carrier, principalName } = connection;
    const storedId = carrier.storedId();
    // It is not stored yet.
    if (storedId === undefined) return;
    const repository = this.moduleRef.get<SessionRepository>(SessionRepository, { strict: false });
    const found = await lookAgain(repository, id, principalName).catch(() => undefined);
    // An event has told meanwhile.
    if (connection.id !== id || !this.#unconfirmed.has(connection)) return;
    if (found === 'forwarded' && storedId !== id && !connection.isTold) this.#rename(connection, storedId);
    if (found === 'alive') this.#unconfirmed.delete(connection);
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
