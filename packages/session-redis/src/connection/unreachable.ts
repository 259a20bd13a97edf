import { SessionStoreError } from '@nest-session/core';
import { shownError } from '@nest-session/core/internal';
import { adviceFor } from '../logging/advice.js';
import type { RedisAddress } from './redis-address.options.js';
import { shownAddress, usesTls } from './shown-address.js';

// A server without TLS waits for the rest of what it takes for a command.
const SILENCE = /no reply within|ETIMEDOUT/;

/** The error of what runs beside the applications, and cannot reach Redis. */
export function unreachable(address: RedisAddress, cause: unknown): SessionStoreError {
  const reason = shownError(cause);
  const ofTls = usesTls(address) && SILENCE.test(reason) ? ': a port without TLS does not reply to TLS' : '';
  const advice = adviceFor(cause) || `. Start it, or correct its address${ofTls}`;
  return new SessionStoreError(`Redis (${shownAddress(address)}) cannot be reached: ${reason}${advice}`, { cause });
}
