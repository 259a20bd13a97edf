import { type CanActivate, type ExecutionContext, Inject, Injectable } from '@nestjs/common';
import { CsrfError } from '@nest-session/core';
import { isFromOtherOrigin, requestOf, requestSessionOf } from '@nest-session/core/internal';
import { SecurityReports } from '../audit/admin-actions.js';

const SAFE_METHODS: readonly unknown[] = ['GET', 'HEAD', 'OPTIONS'];
const NOBODY: ReadonlySet<string> = new Set();

/** Refuses actions that a page of another origin sends. `trustedOrigins` of the application are others here. */
@Injectable()
export class OriginGuard implements CanActivate {
  constructor(@Inject(SecurityReports) private readonly reports: SecurityReports) {}

  /** @throws CsrfError when it refuses the request */
  canActivate(context: ExecutionContext): boolean {
    const platform = context.switchToHttp().getRequest<object>();
    const request = requestOf(platform);
    if (SAFE_METHODS.includes(request.method)) return true;
    if (!isFromOtherOrigin(request, platform, NOBODY)) return true;
    const reason = 'cross-origin';
    const { id: sessionId, principalName } = requestSessionOf(request)?.existing ?? {};
    this.reports.report('refused-origin', { request, sessionId, principalName, reason });
    throw new CsrfError(reason, 'A page of another origin sent this request');
  }
}
