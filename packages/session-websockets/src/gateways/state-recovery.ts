import { createHash } from 'node:crypto';
import { InvalidSessionOptionsError } from '@nest-session/core';
import type { IoAuth, IoClient, IoNamespace } from './platforms.js';

const decided = new WeakSet<IoNamespace>();

/** Gives what a handshake goes on with, when its client asks to recover what it had under a `pid`. */
export type DecideRecovery = (client: IoClient, auth: IoAuth, pid: string) => Promise<IoAuth>;

/**
 * Decides before socket.io gives an interrupted client its rooms, its data and the packets that it has missed, which is
 * before any middleware. Not in the adapter, because the application may set another one at any time.
 * @throws InvalidSessionOptionsError when this version of socket.io cannot be asked
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

/** Makes the `pid` with which a client asks for its state one of a session: with another session, it is of no use. */
export function bindPid(pid: string, sessionId: string | undefined): string {
  return `${pid}.${proofOf(pid, sessionId)}`;
}

/** Whether a `pid` was made one of this session; undefined: of clients without a session. */
export function isBoundTo(pid: string, sessionId: string | undefined): boolean {
  const [drawn = ''] = pid.split('.', 1);
  return pid === bindPid(drawn, sessionId);
}

// Nobody can make one of a session that is not theirs: the store of socket.io knows the whole text only.
function proofOf(pid: string, sessionId = ''): string {
  return createHash('sha256').update(`${pid} ${sessionId}`).digest('base64url');
}

const UNKNOWN_SOCKET_IO =
  'A gateway has the option `connectionStateRecovery`, and this version of socket.io does not say which session a client ' +
  'has that comes back: remove the option, or use another version of socket.io.';
