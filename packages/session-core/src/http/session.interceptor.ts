import { type CallHandler, type ExecutionContext, Injectable, type NestInterceptor } from '@nestjs/common';
import { catchError, concat, defer, EMPTY, ignoreElements, Observable, throwError } from 'rxjs';
import { GraphqlOperation } from './graphql-operation.js';
import { usedSessionOfOperation } from './operation-sessions.js';
import { isUpgrade } from './request-of.js';
import { SessionExchange } from './session-exchange.js';

/**
 * Saves the session when the handler has finished, after the last value of an Observable, so that a failed save reaches
 * the exception filters like any other error. Where it does not run (guards, 404s, `@Res()`, filters), the session is
 * saved before the first byte is sent. Once the response has begun, as with server-sent events, it neither saves nor
 * throws. Where several of them run for a request, the outermost saves.
 *
 * Of GraphQL, it saves what came over a connection, such as the start of a subscription, also when that fails: other
 * operations are requests, whose session is saved before the response, whatever it is.
 */
@Injectable()
export class SessionInterceptor implements NestInterceptor {
  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    if (context.getType<string>() === 'graphql') return this.#interceptResolver(context, next);
    const exchange = context.getType() === 'http' && SessionExchange.of(context.switchToHttp().getRequest());
    return exchange && exchange.takeSave() ? saveAfter(next.handle(), () => exchange.saveEarly()) : next.handle();
  }

  #interceptResolver(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    const operation = GraphqlOperation.find(context);
    if (!operation || !isUpgrade(operation.incoming)) return next.handle();
    const save = () => usedSessionOfOperation(operation)?.then((detached) => detached?.save());
    const saved = defer(() => save() ?? EMPTY).pipe(ignoreElements());
    const result = next.handle().pipe(
      catchError((error: unknown) =>
        concat(
          saved,
          throwError(() => error),
        ),
      ),
    );
    return saveAfter(result, save);
  }
}

/**
 * The values of `source`; completes when the session is saved, and at once when there is nothing to save. Written by
 * hand, because `concat()` and `defer()` would cost a request more than everything else that its session does.
 */
function saveAfter(source: Observable<unknown>, save: () => Promise<void> | undefined): Observable<unknown> {
  return new Observable((subscriber) =>
    source.subscribe({
      next: (value) => subscriber.next(value),
      error: (error: unknown) => subscriber.error(error),
      complete: () => {
        const saving = save();
        if (!saving) return subscriber.complete();
        saving.then(
          () => subscriber.complete(),
          (error: unknown) => subscriber.error(error),
        );
      },
    }),
  );
}
