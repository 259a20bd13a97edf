import {
  type CanActivate,
  type ExecutionContext,
  ForbiddenException,
  Inject,
  Injectable,
  SetMetadata,
} from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import { requestOf } from '@nest-session/core/internal';
import { type AdminRight, type ResolvedRights, resolveRights } from '../configuration/admin-rights.js';
import { ADMIN_OPTIONS, type ResolvedAdminOptions } from '../configuration/session-admin.options.js';

const NEEDED_RIGHT = Symbol('NEEDED_RIGHT');

/** The right that a handler needs. */
export function Needs(right: AdminRight): MethodDecorator {
  return SetMetadata(NEEDED_RIGHT, right);
}

const found = new WeakMap<object, NonNullable<ResolvedRights>>();

/** Asks the option `access` what whoever sent the request may do. */
@Injectable()
export class AccessGuard implements CanActivate {
  constructor(
    @Inject(ADMIN_OPTIONS) private readonly options: ResolvedAdminOptions,
    @Inject(Reflector) private readonly reflector: Reflector,
  ) {}

  /** @throws ForbiddenException that says what is not allowed */
  async canActivate(context: ExecutionContext): Promise<boolean> {
    const request = context.switchToHttp().getRequest<object>();
    const rights = resolveRights(await this.options.access(request));
    if (!rights) throw new ForbiddenException('You have no access to the admin of sessions');
    const needed = this.reflector.get<AdminRight | undefined>(NEEDED_RIGHT, context.getHandler());
    if (needed && !rights[needed]) throw new ForbiddenException(`You may not ${ACTIONS[needed]}`);
    found.set(requestOf(request), rights);
    return true;
  }
}

/** What the sender of a request may do that `AccessGuard` has let pass. */
export function rightsOf(request: object): NonNullable<ResolvedRights> {
  return found.get(requestOf(request))!;
}

const ACTIONS: Readonly<Record<AdminRight, string>> = {
  end: 'end sessions',
  replay: 'replay dead letters',
  discard: 'discard dead letters',
  removeGroup: 'remove groups',
  cancelDeadline: 'cancel deadlines',
};
