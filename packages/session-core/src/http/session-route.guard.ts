import { type CanActivate, type ExecutionContext, Inject, Injectable } from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import { SessionRequest } from './session-request.js';
import { KEEP_SESSION_IDLE, SESSION_POLICY, type SessionPolicy } from './session-route.decorators.js';

/**
 * Does to the session of a request what the decorators of its route say, as soon as it is known which route that is:
 * before the guards, interceptors, pipes and the handler of the application.
 */
@Injectable()
export class SessionRouteGuard implements CanActivate {
  constructor(@Inject(Reflector) private readonly reflector: Reflector) {}

  canActivate(context: ExecutionContext): boolean {
    const request = context.getType() === 'http' ? SessionRequest.of(context.switchToHttp().getRequest()) : undefined;
    if (!request) return true;
    const route = [context.getHandler(), context.getClass()];
    if (this.reflector.getAllAndOverride<boolean | undefined>(KEEP_SESSION_IDLE, route)) request.keepIdle();
    void request.recordAccess();
    if (request.isUnavailable) {
      const policy = this.reflector.getAllAndOverride<SessionPolicy | undefined>(SESSION_POLICY, route);
      if (policy === 'required') request.requireSession();
      if (policy === 'optional') request.makeOptional();
    }
    return true;
  }
}
