import { type CanActivate, type ExecutionContext, Inject, Injectable, SetMetadata } from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import { SESSION_OPTIONS } from '../configuration/session.module-definition.js';
import type { ResolvedSessionOptions } from '../configuration/session.options.js';
import { AuthenticationRequiredError, DeviceNotBoundError } from '../errors/session.errors.js';
import { callOf, sessionOfCall } from '../http/call.js';
import { GUARDS, OWN_GUARD, putFirstAmong } from '../http/handler-metadata.js';
import type { RequestSession } from '../http/request-session.js';

export const DEVICE_BOUND = Symbol('DEVICE_BOUND');

/**
 * Requires a session that is bound to the browser of the request, and proven by it. Without a proof, the answer is 401
 * with `reason: 'device-proof-missing'`; in a browser that binds no sessions, 403 with `reason: 'device-not-bound'`,
 * where signing in again would not help. While the option `deviceBound.mode` is `'report'`, both are served, with a
 * security event `missing-proof`.
 *
 * `@DeviceBound(false)` serves a request whose proof is missing with its session all the same: for a page that users
 * reach from other sites, or for signing out. A decorator on a handler overrides the one on its class.
 */
export function DeviceBound(isRequired = true): ClassDecorator & MethodDecorator {
  const mark = SetMetadata(DEVICE_BOUND, isRequired);
  return <T>(target: object, key?: string | symbol, descriptor?: TypedPropertyDescriptor<T>) => {
    mark(target, key as string, descriptor as PropertyDescriptor);
    if (isRequired) putFirstAmong(GUARDS, DeviceBoundGuard, (descriptor?.value as object | undefined) ?? target);
  };
}

@Injectable()
@SetMetadata(OWN_GUARD, true)
class DeviceBoundGuard implements CanActivate {
  constructor(
    @Inject(Reflector) private readonly reflector: Reflector,
    @Inject(SESSION_OPTIONS) private readonly options: Pick<ResolvedSessionOptions, 'deviceBound' | 'securityEvents'>,
  ) {}

  canActivate(context: ExecutionContext): boolean | Promise<boolean> {
    const isRequired = this.reflector.getAllAndOverride<boolean | undefined>(DEVICE_BOUND, [
      context.getHandler(),
      context.getClass(),
    ]);
    if (!isRequired) return true;
    const session = sessionOfCall(callOf(context));
    return session instanceof Promise ? session.then((loaded) => this.#check(loaded)) : this.#check(session);
  }

  #check(session: RequestSession | undefined): true {
    session?.use();
    session?.applyOutagePolicy('reject');
    session?.requireProof();
    const { principalName, storedId: sessionId } = session?.existing ?? {};
    if (!session || principalName === undefined) throw new AuthenticationRequiredError('not-authenticated');
    if (session.found.device?.evidence === 'proven') return true;
    const { request } = session;
    // What is missing of a bound session was reported when it was loaded.
    if (!session.found.device?.reason) {
      this.options.securityEvents.report('missing-proof', { request, sessionId, principalName, reason: NOT_BOUND });
    }
    if (this.options.deviceBound?.mode !== 'enforce') return true;
    throw new DeviceNotBoundError();
  }
}

const NOT_BOUND = 'device-not-bound';
