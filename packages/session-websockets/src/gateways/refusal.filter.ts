import { type ArgumentsHost, Catch, type ExceptionFilter, type HttpException } from '@nestjs/common';
import {
  AuthenticationRequiredError,
  type RefusalBody,
  SessionBoundError,
  SessionConflictError,
  SessionCreationRefusedError,
  SessionGoneError,
  SessionStoreError,
  TooManySessionsError,
} from '@nest-session/core';
import { DeviceNotBoundError } from '@nest-session/core/internal';

interface Client {
  readonly readyState?: number;
  emit(event: string, data: unknown): unknown;
  send(text: string): unknown;
}

/**
 * Tells the client of a gateway why its message was refused, in the form in which Nest reports a `WsException`. It does
 * not throw a `WsException`, because an application without gateways does not have `@nestjs/websockets`.
 */
@Catch(
  AuthenticationRequiredError,
  DeviceNotBoundError,
  SessionBoundError,
  SessionConflictError,
  SessionCreationRefusedError,
  SessionGoneError,
  SessionStoreError,
  TooManySessionsError,
)
export class RefusalFilter implements ExceptionFilter<HttpException> {
  catch(error: HttpException, host: ArgumentsHost): void {
    const client = host.switchToWs().getClient<Client>();
    const { message, reason, maxAge } = error.getResponse() as RefusalBody & { readonly maxAge?: number };
    const cause = { pattern: host.switchToWs().getPattern(), data: host.switchToWs().getData<unknown>() };
    const data = { status: 'error', message, reason, ...(maxAge !== undefined && { maxAge }), cause };
    // A WebSocket of ws also has emit(), but that only calls its own listeners.
    if (typeof client.readyState === 'number') client.send(JSON.stringify({ event: 'exception', data }));
    else client.emit('exception', data);
  }
}
