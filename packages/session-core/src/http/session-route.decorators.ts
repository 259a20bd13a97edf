import { SetMetadata } from '@nestjs/common';

export const KEEP_SESSION_IDLE = Symbol('KEEP_SESSION_IDLE');

/**
 * Keeps requests for a handler, or for all handlers of a controller, from renewing the idle timeout: neither reading
 * nor saving the session counts as an access. Use it for polling by a page that nobody looks at.
 * `KeepSessionIdle(false)` on a handler overrides its controller.
 */
export function KeepSessionIdle(keep = true): ClassDecorator & MethodDecorator {
  return SetMetadata(KEEP_SESSION_IDLE, keep);
}

/**
 * What happens to a request whose session could not be loaded, because the store is down:
 * - `'on-use'`, the default: the first use of the session throws a `SessionStoreError`, which becomes a 503 response;
 * - `'reject'`: the request gets a 503 response before the handler runs;
 * - `'anonymous'`: the handler gets an empty session.
 */
export type SessionOutagePolicy = 'reject' | 'anonymous' | 'on-use';

export const SESSION_OUTAGE_POLICY = Symbol('SESSION_OUTAGE_POLICY');

/**
 * Decides what happens to requests for a handler, or for all handlers of a controller, while the store is down. It does
 * not protect a route: a request without a session reaches the handler.
 *
 * Use `'reject'` where a handler must not begin what it cannot finish, and `'anonymous'` where it can respond without
 * the session: then every change of the empty session throws a `SessionStoreError`, and `SessionContext.isAvailable` is
 * false. A decorator on a handler overrides the one on its controller.
 * @throws TypeError for any other policy
 */
export function SessionOutagePolicy(policy: SessionOutagePolicy): ClassDecorator & MethodDecorator {
  if (!POLICIES.includes(policy)) {
    throw new TypeError(`@SessionOutagePolicy() takes one of ${POLICIES.map((each) => `'${each}'`).join(', ')}`);
  }
  return SetMetadata(SESSION_OUTAGE_POLICY, policy);
}

const POLICIES: readonly SessionOutagePolicy[] = ['reject', 'anonymous', 'on-use'];
