import { type ArgumentsHost, Catch, type ExceptionFilter } from '@nestjs/common';
import { AuthenticationRequiredError } from '@nest-session/core';

interface Client {
  readonly readyState?: number;
  emit(event: string, data: unknown): unknown;
  send(text: string): unknown;
}

/**
 * Tells the client of a gateway why a guard refused its message, in the form in which Nest reports a `WsException`. It
 * does not throw a `WsException`, because an application without gateways does not have `@nestjs/websockets`.
 */
@Catch(AuthenticationRequiredError)
export class AuthenticationFilter implements ExceptionFilter<AuthenticationRequiredError> {
  catch(error: AuthenticationRequiredError, host: ArgumentsHost): void {
    const message = host.switchToWs();
    const client = message.getClient<Client>();
    const { reason, maxAge } = error;
    const cause = { pattern: message.getPattern(), data: message.getData<unknown>() };
    const data = { status: 'error', message: error.message, reason, ...(maxAge !== undefined && { maxAge }), cause };
    // A WebSocket of ws also has emit(), but that only calls its own listeners.
    if (typeof client.readyState === 'number') client.send(JSON.stringify({ event: 'exception', data }));
    else client.emit('exception', data);
  }
}
