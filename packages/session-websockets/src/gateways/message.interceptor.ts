import { type CallHandler, type ExecutionContext, Injectable, type NestInterceptor } from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import { DetachedSession, KEEP_SESSION_IDLE } from '@nest-session/core/internal';
import {
  catchError,
  concat,
  concatMap,
  defer,
  EMPTY,
  ignoreElements,
  type Observable,
  of,
  tap,
  throwError,
} from 'rxjs';

const reflector = new Reflector();

/**
 * Saves the session of a message before each value of its handler is sent, and when the handler has finished. A failed
 * save reaches the exception filters, and the message is not acknowledged. Saves as well when the client leaves before
 * that. Also sends a touch that is due.
 */
@Injectable()
export class MessageInterceptor implements NestInterceptor {
  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    const held = context.getType() === 'ws' ? DetachedSession.current : undefined;
    if (!held) return next.handle();
    const handler = [context.getHandler(), context.getClass()];
    if (reflector.getAllAndOverride<boolean | undefined>(KEEP_SESSION_IDLE, handler)) held.keepIdle();
    // Touch before the handler: a session with five seconds left must outlive a handler of ten.
    void held.touch?.send();
    const saved = defer(() => held.saveChanges() ?? EMPTY).pipe(ignoreElements());
    return concat(
      next.handle().pipe(
        catchError((error: unknown) =>
          concat(
            saved,
            throwError(() => error),
          ),
        ),
        concatMap((value) => concat(saved, of(value))),
      ),
      saved,
      // Called when the client leaves.
    ).pipe(tap({ unsubscribe: () => void held.saveChanges()?.catch(() => undefined) }));
  }
}
