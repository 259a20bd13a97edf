import { type CallHandler, type ExecutionContext, Injectable, type NestInterceptor } from '@nestjs/common';
import { catchError, concat, defer, EMPTY, from, ignoreElements, type Observable, throwError } from 'rxjs';
import type { ResponseCommit } from './response-commit.js';
import { SessionExchange } from './session-exchange.js';

/**
 * Saves the session when the handler has finished, after the last value of an Observable, so that a failed save reaches
 * the exception filters like any other error. Where it does not run (guards, 404s, `@Res()`, filters), the session is
 * saved before the first byte is sent. Once the response has begun, as with server-sent events, it neither saves nor
 * throws.
 */
@Injectable()
export class SessionInterceptor implements NestInterceptor {
  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    const exchange = context.getType() === 'http' && SessionExchange.of(context.switchToHttp().getRequest());
    if (!exchange) return next.handle();
    return concat(
      next.handle(),
      defer(() => save(exchange.commit)),
    );
  }
}

/** Completes without a value when the session is saved; at once when there is nothing to save. */
function save(commit: ResponseCommit): Observable<never> {
  if (commit.hasBegun || !commit.needsSave) return EMPTY;
  return from(commit.save()).pipe(
    ignoreElements(),
    catchError((error: unknown) => (commit.hasBegun ? EMPTY : throwError(() => error))),
  );
}
