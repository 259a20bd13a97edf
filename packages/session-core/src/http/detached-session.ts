import { AsyncLocalStorage } from 'node:async_hooks';
import type { IncomingMessage } from 'node:http';
import type { SessionResponse } from '../session/session-response.js';
import type { Session } from '../session/session.js';
import { type FoundSession, RequestSession } from './request-session.js';
import type { ExtendedSessionParts, SessionExtension } from './session-extension.js';
import type { SessionScope } from './session.scope.js';

/** No cookie can be sent over a connection that is open. */
const NO_RESPONSE: SessionResponse = {
  headersSent: true,
  lateChange:
    'A session cannot be started, and its id cannot be changed, over an open connection, because no cookie can be sent ' +
    'to the client. Do it in an HTTP request, after which the client connects again',
};

// Of all applications of the process, because the decorators of parameters know none of them.
const messages = new AsyncLocalStorage<DetachedSession | null>();

// By the requests that opened connections, as the handshakes found them.
const openings = new WeakMap<IncomingMessage, DetachedSession>();

/** The session of what has no response: an upgrade, a message on a socket, an operation of GraphQL on one. */
export class DetachedSession extends RequestSession {
  readonly #extension: SessionExtension;
  #saves = 0;

  constructor(parts: ExtendedSessionParts, request: IncomingMessage, found: FoundSession = {}) {
    super(parts, request, NO_RESPONSE, found);
    this.#extension = parts.extension;
  }

  /** The session of the message that is being handled; null when its connection is excluded, undefined without one. */
  static get current(): DetachedSession | null | undefined {
    return messages.getStore();
  }

  static of(request: IncomingMessage): DetachedSession | undefined {
    const { current } = DetachedSession;
    return current?.request === request ? current : openings.get(request);
  }

  /** Handles a message, and everything that this starts, in its session; null: without any. */
  static run<T>(session: DetachedSession | null, scope: SessionScope, handle: () => T): T {
    return messages.run(session, () => (session ? scope.run(session, handle) : handle()));
  }

  override get shown(): Session | undefined {
    const { shown } = this.#extension;
    return shown ? shown(this) : this.session;
  }

  /** The handshake is over: its request has the properties that another package gives to requests. */
  attach(): void {
    const { properties } = this.#extension;
    if (!properties) return;
    openings.set(this.request, this);
    Object.defineProperties(this.request, properties);
  }

  /** Always false: a connection has no response that could have left. */
  override get isLeftWithout(): boolean {
    return false;
  }

  /** Undefined without changes. A save that failed is not tried again: every later one rejects with its error. */
  saveChanges(): Promise<void> | undefined {
    if (this.#saves === 0 && !this.hasFailed && !this.needsSave) return undefined;
    const saving = this.save();
    this.#saves++;
    const settled = () => void this.#saves--;
    saving.then(settled, settled);
    return saving;
  }
}
