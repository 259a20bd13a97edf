import { SetMetadata } from '@nestjs/common';

export const KEEP_SESSION_IDLE = Symbol('KEEP_SESSION_IDLE');

/**
 * Requests for this handler, or for all handlers of a controller, do not keep the session alive: they are not recorded
 * as an access, and what they save does not renew the session. For polling by a page that nobody looks at. On a handler,
 * `KeepSessionIdle(false)` exempts it from what its controller says. The option `keepIdle` does the same by request.
 */
export function KeepSessionIdle(keep = true): ClassDecorator & MethodDecorator {
  return SetMetadata(KEEP_SESSION_IDLE, keep);
}

/**
 * What happens to a request whose session could not be loaded, because the store is down:
 * - `'on-use'`, the default: the first use of the session throws a `SessionStoreError`, which is answered 503;
 * - `'reject'`: the request is answered 503 before the handler runs;
 * - `'anonymous'`: the handler gets an empty session.
 */
export type SessionOutagePolicy = 'reject' | 'anonymous' | 'on-use';

export const SESSION_OUTAGE_POLICY = Symbol('SESSION_OUTAGE_POLICY');

/**
 * Decides what happens, while the store is down, to requests for this handler or for all handlers of a controller. It
 * says nothing about who may call them: a request without a session is let through.
 *
 * Use `'reject'` where a handler must not begin what it cannot finish, and `'anonymous'` where it can answer without the
 * session: then every change of the empty session throws a `SessionStoreError`, and `SessionContext.isAvailable` is false.
 * On a handler it overrides what its controller says.
 * @throws TypeError for any other policy
 */
export function SessionOutagePolicy(policy: SessionOutagePolicy): ClassDecorator & MethodDecorator {
  if (!POLICIES.includes(policy)) {
    throw new TypeError(`@SessionOutagePolicy() takes one of ${POLICIES.map((each) => `'${each}'`).join(', ')}`);
  }
  return SetMetadata(SESSION_OUTAGE_POLICY, policy);
}

const POLICIES: readonly SessionOutagePolicy[] = ['reject', 'anonymous', 'on-use'];
