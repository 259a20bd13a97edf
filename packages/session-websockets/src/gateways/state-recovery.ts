import { createHash } from 'node:crypto';
import { InvalidSessionOptionsError } from '@nest-session/core';
import type { IoAuth, IoClient, IoNamespace } from './platforms.js';

const decided = new WeakSet<IoNamespace>();

/** Decides with which auth data a handshake continues when its client asks to recover the state of a `pid`. */
export type DecideRecovery = (client: IoClient, auth: IoAuth, pid: string) => Promise<IoAuth>;

/**
 * Calls `decide` before socket.io restores the rooms, the data and the missed packets of a client, and so before any
 * middleware. It does not hook into the adapter, because the application may replace the adapter at any time.
 * @throws InvalidSessionOptionsError if this version of socket.io has no such hook
 */
export function beforeRecovery(namespace: IoNamespace, decide: DecideRecovery): void {
  if (decided.has(namespace)) return;
  const { _add: add } = namespace;
  if (typeof add !== 'function') throw new InvalidSessionOptionsError('SessionWebSocketModule', [UNKNOWN_SOCKET_IO]);
  decided.add(namespace);
  namespace._add = async (client, auth, connected) => {
    const { pid, offset } = auth ?? {};
    const asks = typeof pid === 'string' && typeof offset === 'string';
    return add.call(namespace, client, asks ? await decide(client, auth, pid) : auth, connected);
  };
}

/** Binds a `pid`, with which a client asks for its state, to a session. It is useless with any other session. */
export function bindPid(pid: string, sessionId: string | undefined): string {
  return `${pid}.${proofOf(pid, sessionId)}`;
}

/** Whether a `pid` is bound to this session. An undefined id stands for clients without a session. */
export function isBoundTo(pid: string, sessionId: string | undefined): boolean {
  const [drawn = ''] = pid.split('.', 1);
  return pid === bindPid(drawn, sessionId);
}

// Nobody can bind a `pid` to another session, because the store of socket.io knows only the whole text.
function proofOf(pid: string, sessionId = ''): string {
  return createHash('sha256').update(`${pid} ${sessionId}`).digest('base64url');
}

const UNKNOWN_SOCKET_IO =
  'A gateway has the option `connectionStateRecovery`, but with this version of socket.io the session of a client ' +
  'that reconnects cannot be checked: remove the option, or use another version of socket.io.';
