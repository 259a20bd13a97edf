import { Injectable } from '@nestjs/common';

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
