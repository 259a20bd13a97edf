import { type CallHandler, type ExecutionContext, Injectable, type NestInterceptor } from '@nestjs/common';
import { Observable } from 'rxjs';
import { SessionExchange } from './session-exchange.js';

/**
 * Saves the session when the handler has finished, after the last value of an Observable, so that a failed save reaches
 * the exception filters like any other error. Where it does not run (guards, 404s, `@Res()`, filters), the session is
 * saved before the first byte is sent. Once the response has begun, as with server-sent events, it neither saves nor
 * throws. Where several of them run for a request, the outermost saves.
 */
@Injectable()
export class SessionInterceptor implements NestInterceptor {
  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    const exchange = context.getType() === 'http' && SessionExchange.of(context.switchToHttp().getRequest());
    return exchange && exchange.takeSave() ? saveAfter(next.handle(), exchange) : next.handle();
  }
}

/**
 * The values of `source`; completes when the session is saved, and at once when there is nothing to save. Written by
 * hand, because `concat()` and `defer()` would cost a request more than everything else that its session does.
 */
function saveAfter(source: Observable<unknown>, exchange: SessionExchange): Observable<unknown> {
  return new Observable((subscriber) =>
    source.subscribe({
      next: (value) => subscriber.next(value),
      error: (error: unknown) => subscriber.error(error),
      complete: () => {
        const saving = exchange.saveEarly();
        if (!saving) return subscriber.complete();
        saving.then(
          () => subscriber.complete(),
          (error: unknown) => subscriber.error(error),
        );
      },
    }),
  );
}
