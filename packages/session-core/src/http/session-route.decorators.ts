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
