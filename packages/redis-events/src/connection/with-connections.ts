import { SessionStoreError } from '@nest-session/core';
import { shownError } from '@nest-session/core/internal';
import { adviceFor } from '../logging/advice.js';
import { OutageLog } from './outage.log.js';
import type { RedisAddress } from './redis-address.options.js';
import { isAnswer } from './server-faults.js';
import { storeError } from './request.connection.js';
import {
  closeConnections,
  type ConnectionOptions,
  createConnections,
  type RedisConnections,
} from './redis-connections.js';
import { shownAddress, usesTls } from './shown-server.js';

// A server without TLS waits for the rest of what it takes for a command.
const SILENCE = /no reply within|ETIMEDOUT/;

/**
 * For what runs beside the applications. @throws SessionStoreError when Redis cannot be reached, or replies with an
 * error
 */
export async function withConnections<T>(
  options: ConnectionOptions,
  work: (connections: RedisConnections) => Promise<T>,
): Promise<T> {
  const outage = new OutageLog();
  const connections = createConnections(options, outage);
  try {
    // ioredis itself rejects with `Connection is closed.`
    await connections.background.connect().catch((error: unknown) => {
      throw unreachableError(options.connection, outage.reason ?? error);
    });
    return await work(connections).catch((error: unknown) => {
      throw isAnswer(error) ? storeError(error) : error;
    });
  } finally {
    await closeConnections(connections);
  }
}

export function unreachableError(address: RedisAddress, cause: unknown): SessionStoreError {
  const reason = shownError(cause);
  const ofTls = usesTls(address) && SILENCE.test(reason) ? ': a port without TLS does not reply to TLS' : '';
  const advice = adviceFor(cause) || `. Start it, or correct its address${ofTls}`;
  return new SessionStoreError(`Redis (${shownAddress(address)}) cannot be reached: ${reason}${advice}`, { cause });
}
