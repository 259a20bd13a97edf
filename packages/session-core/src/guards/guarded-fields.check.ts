import { Inject, Injectable, type OnModuleInit, type Type } from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import { InvalidSessionOptionsError } from '../errors/session.errors.js';
import type { Handler } from '../http/put-first.js';
import { RouteExplorer } from '../http/route.explorer.js';
import { AuthenticatedGuard } from './authenticated.guard.js';
import { isGuardedBy } from '../http/is-guarded-by.js';
import { AUTHENTICATION, type AuthenticationRule, PUBLIC } from '../http/authentication-rule.js';

/**
 * Refuses to start with GraphQL fields that look protected but are not: by default, Nest calls no guards for fields.
 */
@Injectable()
export class GuardedFieldsCheck implements OnModuleInit {
  constructor(
    @Inject(RouteExplorer) private readonly routes: RouteExplorer,
    @Inject(Reflector) private readonly reflector: Reflector,
  ) {}

  /** @throws InvalidSessionOptionsError that names the unprotected fields */
  onModuleInit(): void {
    const open = this.routes.fieldsWithoutGuards().filter((field) => this.#looksGuarded(field));
    if (open.length === 0) return;
    const names = open.map(({ controller, method }) => `${controller.name}.${(method as Type).name}`);
    throw new InvalidSessionOptionsError('SessionModule', [
      `${[...new Set(names)].join(', ')} would be open to everyone, because Nest calls no guards for a field, ` +
        'neither its own nor those of its class. ' +
        "Set `fieldResolverEnhancers: ['guards']` in GraphQLModule.forRoot(), or mark the field @Public().",
    ]);
  }

  #looksGuarded({ controller, method }: Handler): boolean {
    if (isGuardedBy(AuthenticatedGuard, method)) return true;
    const rule = this.reflector.getAllAndOverride<AuthenticationRule | undefined>(AUTHENTICATION, [
      method as Type,
      controller,
    ]);
    return rule !== PUBLIC && isGuardedBy(AuthenticatedGuard, controller);
  }
}
