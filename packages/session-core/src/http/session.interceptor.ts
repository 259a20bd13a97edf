import type { IncomingMessage, ServerResponse } from 'node:http';
import { type CallHandler, type ExecutionContext, Injectable, type NestInterceptor } from '@nestjs/common';
import { catchError, concat, defer, EMPTY, from, ignoreElements, mergeMap, Observable, throwError } from 'rxjs';
import { callOf, sessionOfOperation } from './call.js';
import type { DetachedSession } from './detached-session.js';
import { RequestSessions } from './request-sessions.js';
import { ResponseCommit } from './response-commit.js';
import type { SessionScope } from './session.scope.js';

/**
 * Saves the session when the handler has finished, after the last value of an Observable, so that a failed save reaches
 * the exception filters. Where it does not run (guards, 404s, `@Res()`, filters), the session is saved before the first
 * byte. Once the response has begun, it neither saves nor throws. Of several for a request, the outermost saves.
 *
 * Of GraphQL, it serves operations over a connection, such as the start of a subscription.
 */
@Injectable()
export class SessionInterceptor implements NestInterceptor {
  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    const call = callOf(context);
    const { kind, request, commit } = call;
    if (kind === 'http' && commit?.takeSave()) return saveAfter(next.handle(), commit);
    const scope = kind === 'operation' && RequestSessions.serving(request as IncomingMessage)?.scope;
    if (!scope) return next.handle();
    return from(sessionOfOperation(call)).pipe(
      mergeMap((held) => (held ? handleInSession(next, held, scope) : next.handle())),
    );
  }
}

/** Saves also when the handler fails, as before the response to a request. */
function handleInSession(next: CallHandler, held: DetachedSession, scope: SessionScope): Observable<unknown> {
  const saved = defer(() => held.saveChanges() ?? EMPTY).pipe(ignoreElements());
  const handled = new Observable((subscriber) => scope.run(held, () => next.handle().subscribe(subscriber)));
  return concat(
    handled.pipe(
      catchError((error: unknown) =>
        concat(
          saved,
          throwError(() => error),
        ),
      ),
    ),
    saved,
  );
}

/**
 * The values of `source`; completes when the session is saved, and at once when there is nothing to save. Written by
 * hand, because `concat()` and `defer()` would cost a request more than everything else that its session does.
 */
function saveAfter(source: Observable<unknown>, commit: ResponseCommit): Observable<unknown> {
  return new Observable((subscriber) =>
    source.subscribe({
      next: (value) => subscriber.next(value),
      error: (error: unknown) => subscriber.error(error),
      complete: () => {
        const saving = commit.saveEarly();
        if (!saving) return subscriber.complete();
        saving.then(
          () => subscriber.complete(),
          (error: unknown) => subscriber.error(error),
        );
      },
    }),
  );
}

type PlatformResponse = Partial<Pick<ServerResponse, 'req'>> & { readonly raw?: ServerResponse };

const saving = new WeakSet<object>();

/**
 * From now on, Nest saves the session of a request before it sends what the handler returned, as SessionInterceptor
 * does, and a failed save reaches the exception filters. Unlike an interceptor, it costs a request no chain of
 * Observables. For all applications of the process, because they share the class. Resolves to false, and changes
 * nothing, where Nest does not have the class or its method any more.
 */
export async function saveBeforeNestAnswers(): Promise<boolean> {
  const file = await importResponseController().catch(() => undefined);
  const prototype = file?.RouterResponseController?.prototype as Partial<AnswersOfNest> | undefined;
  const apply = prototype?.apply;
  if (!prototype || typeof apply !== 'function') return false;
  if (saving.has(apply)) return true;
  // Nest awaits it behind all interceptors, inside of what passes errors to the filters.
  prototype.apply = function (result, response, status) {
    // Also where an interceptor has saved: it may have been that of another handler, which passed the request on.
    const saving = commitOf(response as PlatformResponse)?.saveEarly();
    if (!saving) return apply.call(this, result, response, status);
    return saving.then(() => apply.call(this, result, response, status));
  };
  saving.add(prototype.apply);
  return true;
}

// A bundle of webpack stays one file.
const importResponseController = () =>
  import(/* webpackMode: "eager" */ '@nestjs/core/router/router-response-controller.js');

type AnswersOfNest = Pick<
  Awaited<ReturnType<typeof importResponseController>>['RouterResponseController']['prototype'],
  'apply'
>;

function commitOf({ raw, req }: PlatformResponse): ResponseCommit | undefined {
  const request = raw ? raw.req : req;
  return request && ResponseCommit.of(request);
}
