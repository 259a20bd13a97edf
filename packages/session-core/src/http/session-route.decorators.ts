import { SetMetadata } from '@nestjs/common';

export const KEEP_SESSION_IDLE = Symbol('KEEP_SESSION_IDLE');

/**
 * Requests for this handler, or for all of a controller, do not keep the session alive: they are not recorded as an
 * access, and what they save does not renew it. For polling by a page that nobody looks at. On a handler,
 * `KeepSessionIdle(false)` exempts it from what its controller says. The option `keepIdle` does the same by request.
 */
export function KeepSessionIdle(keep = true): ClassDecorator & MethodDecorator {
  return SetMetadata(KEEP_SESSION_IDLE, keep);
}

/** What becomes of a request whose session could not be loaded. Without one: the first use of the session throws. */
export type SessionPolicy = 'required' | 'optional';

export const SESSION_POLICY = Symbol('SESSION_POLICY');

/**
 * Requests whose session could not be loaded are answered 503 before the handler, or any of a controller, is called; for
 * handlers that must not begin what they cannot finish. A request that brings no session is let through.
 */
export function SessionRequired(): ClassDecorator & MethodDecorator {
  return SetMetadata(SESSION_POLICY, 'required' satisfies SessionPolicy);
}

/**
 * Requests whose session could not be loaded are given an empty one, so that the handler, or all of a controller, can
 * answer without it. It cannot be saved: every change of it throws a `SessionStoreError`, which is answered 503.
 * `SessionContext.isAvailable` tells which one it is.
 */
export function SessionOptional(): ClassDecorator & MethodDecorator {
  return SetMetadata(SESSION_POLICY, 'optional' satisfies SessionPolicy);
}
