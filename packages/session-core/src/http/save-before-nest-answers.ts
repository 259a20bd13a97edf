import type { ServerResponse } from 'node:http';
import { RouterResponseController } from '@nestjs/core/router/router-response-controller.js';
import { ResponseCommit } from './response-commit.js';

/** A response of Node.js, or a platform's response that wraps it as `raw`. */
type PlatformResponse = Partial<Pick<ServerResponse, 'req'>> & { readonly raw?: ServerResponse };

let isInstalled = false;

/**
 * From now on, Nest saves the session of a request before it sends what the handler returned, as SessionInterceptor
 * does, and a failed save reaches the exception filters. Unlike an interceptor, it costs a request no chain of
 * Observables. For all applications of the process, because they share the class.
 */
export function saveBeforeNestAnswers(): void {
  if (isInstalled) return;
  isInstalled = true;
  const { prototype } = RouterResponseController;
  const { apply } = prototype;
  // Nest awaits it behind all interceptors, inside of what passes errors to the filters.
  prototype.apply = function (result, response, status) {
    const send = () => apply.call(this, result, response, status);
    // Also where an interceptor has saved: it may have been that of another handler, which passed the request on.
    const saving = commitOf(response as PlatformResponse)?.saveEarly();
    return saving ? saving.then(send) : send();
  };
}

function commitOf({ raw, req }: PlatformResponse): ResponseCommit | undefined {
  const request = raw ? raw.req : req;
  return request && ResponseCommit.of(request);
}
