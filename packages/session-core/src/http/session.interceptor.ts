import { type CallHandler, type ExecutionContext, Injectable, type NestInterceptor } from '@nestjs/common';
import { catchError, concat, defer, EMPTY, from, ignoreElements, type Observable, throwError } from 'rxjs';
import { SessionRequest } from './session-request.js';

/**
 * Saves the session when the handler has finished, after the last value of an Observable, so that a failed save reaches
 * the exception filters like any other error. It is no more than early: what it does not see (guards, 404s, `@Res()`,
 * filters) is saved before the first byte leaves. Once that has begun, as it does with the first of several events, it
 * neither saves nor throws.
 */
@Injectable()
export class SessionInterceptor implements NestInterceptor {
  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    const request = context.getType() === 'http' ? SessionRequest.of(context.switchToHttp().getRequest()) : undefined;
    if (!request) return next.handle();
    return concat(
      next.handle(),
      defer(() => save(request)),
    );
  }
}

/** Completes, without a value, when the session is saved; at once when there is nothing to save. */
function save(request: SessionRequest): Observable<never> {
  if (request.isHeadStarted || !request.needsCommit) return EMPTY;
  return from(request.commit()).pipe(
    ignoreElements(),
    catchError((error: unknown) => (request.isHeadStarted ? EMPTY : throwError(() => error))),
  );
}
