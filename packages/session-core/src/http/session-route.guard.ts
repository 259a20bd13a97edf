import type { CanActivate, ExecutionContext } from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import { DEVICE_BOUND } from '../device/device-bound.guard.js';
import { callOf } from './call.js';
import { KEEP_SESSION_IDLE, SESSION_OUTAGE_POLICY, type SessionOutagePolicy } from './session-route.decorators.js';

/** Applies the decorators of a route as soon as it is known: before what the application has. */
export class SessionRouteGuard implements CanActivate {
  readonly #reflector = new Reflector();

  canActivate(context: ExecutionContext): boolean {
    const { kind, commit } = callOf(context);
    const session = commit?.session;
    if (!session) return true;
    const route = [context.getHandler(), context.getClass()];
    // The resolvers of a GraphQL request share its session: one that is open to all would open it to the others.
    const mayAdmit = kind === 'http' && commit.parts.devices;
    if (mayAdmit && this.#reflector.getAllAndOverride<boolean | undefined>(DEVICE_BOUND, route) === false)
      session.admit();
    if (this.#reflector.getAllAndOverride<boolean | undefined>(KEEP_SESSION_IDLE, route)) session.keepIdle();
    session.touch?.sendEarly();
    if (session.isUnavailable) {
      const policy = this.#reflector.getAllAndOverride<SessionOutagePolicy | undefined>(SESSION_OUTAGE_POLICY, route);
      session.applyOutagePolicy(policy ?? 'on-use');
    }
    return true;
  }
}
