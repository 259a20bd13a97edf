import { setTimeout as pause } from 'node:timers/promises';
import { SessionStoreError } from '@nest-session/core';
import { RETRY } from '../timing/background-service.js';

/** Whether Redis replied with an error. After any other error it is unknown whether the command took effect. */
export function isAnswer(error: unknown): boolean {
  // Not `instanceof`: the application may have another copy of ioredis.
  return error instanceof Error && error.name === 'ReplyError';
}

/** Whether Redis replied with an error of this kind: the first word of its message, such as `NOGROUP`. */
export function isReply(error: unknown, kind: string): error is Error {
  return error instanceof Error && error.message.startsWith(`${kind} `);
}

/** For `catch()`: what is read of a key of another type in the place of one of ours is `instead`. */
export function ifStray<T>(instead: T): (error: unknown) => T {
  return (error) => {
    if (isReply(error, 'WRONGTYPE')) return instead;
    throw error;
  };
}

// A server that executes nothing, or no writes, for now, whatever the command is.
const REFUSAL = /^(BUSY|CLUSTERDOWN|LOADING|MASTERDOWN|MISCONF|NOAUTH|NOREPLICAS|OOM|READONLY|TRYAGAIN|WRONGPASS) /;
// What ioredis, node-with.ts and Node.js say without a reply.
const NO_REPLY = /^(All sentinels|Failed to refresh slots cache|No primary |Ready check failed|Too many Cluster)/;
const SYSTEM_ERROR = /^E[A-Z]+$/;

/** Whether a call failed because of the server or the network: the same call succeeds when that fault is over. */
export function isFaultOfServer(error: unknown): boolean {
  if (error instanceof SessionStoreError) return error.cause === undefined || isFaultOfServer(error.cause);
  if (!(error instanceof Error)) return false;
  if (isAnswer(error)) return REFUSAL.test(error.message);
  return NO_REPLY.test(error.message) || SYSTEM_ERROR.test(String((error as NodeJS.ErrnoException).code));
}

/** Repeats background work while Redis is at fault. @throws the error of any other fault, or when it is aborted */
export async function untilSound<T>(
  work: () => Promise<T>,
  signal: AbortSignal,
  failed: (error: unknown) => void = () => undefined,
): Promise<T> {
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (signal.aborted || !isFaultOfServer(error)) throw error;
      failed(error);
      await pause(RETRY, undefined, { ref: false, signal }).catch(() => undefined);
      if (signal.aborted) throw error;
    }
  }
}
