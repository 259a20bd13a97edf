import type { IncomingMessage } from 'node:http';
import { type CanActivate, type ExecutionContext, ForbiddenException } from '@nestjs/common';

/**
 * Refuses requests from pages of other origins, and accepts requests that come from no page, such as those of curl.
 * It relies on `HostMiddleware`, which has checked the `Host` header.
 */
export class SameOriginGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const { origin, host } = context.switchToHttp().getRequest<IncomingMessage>().headers;
    if (origin === undefined || (URL.canParse(origin) && new URL(origin).host === host?.toLowerCase())) return true;
    throw new ForbiddenException('A page of another origin sent this request');
  }
}
