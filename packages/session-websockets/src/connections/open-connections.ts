import { Injectable } from '@nestjs/common';

/** Why the application closes a connection. */
export type CloseReason = 'session ended' | 'session id changed' | 'too many messages';

/** The code with which a WebSocket of ws is closed. */
export function closeCodeOf(reason: CloseReason): number {
  return reason === 'too many messages' ? POLICY_VIOLATION : UNAUTHORIZED;
}

// Of the range for applications, after the status 401.
const UNAUTHORIZED = 4401;
// RFC 6455, 7.4.1
const POLICY_VIOLATION = 1008;

/** A connection that belongs to one session, or to one of several until its session is loaded. */
export interface OpenConnection {
  /** Closes the connection because of this session. Called at most once for each of its sessions. */
  readonly close: (reason: CloseReason, id: string) => void;
}

/** The open connections of this instance, by the ids of their sessions. */
@Injectable()
export class OpenConnections {
  readonly #byId = new Map<string, Set<OpenConnection>>();

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
    }
  }

  /**
   * Closes all connections of a session, also when a listener of the application throws.
   * @throws the first error of a listener
   */
  close(id: string, reason: CloseReason): void {
    const connections = this.#byId.get(id);
    this.#byId.delete(id);
    const errors: unknown[] = [];
    for (const connection of connections ?? []) {
      try {
        connection.close(reason, id);
      } catch (error) {
        errors.push(error);
      }
    }
    if (errors.length > 0) throw errors[0];
  }
}
