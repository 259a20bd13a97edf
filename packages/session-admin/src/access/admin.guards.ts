import {
  type CanActivate,
  type ExecutionContext,
  ForbiddenException,
  Inject,
  Injectable,
  NotFoundException,
  type OnModuleInit,
  Scope,
  SetMetadata,
  type Type,
} from '@nestjs/common';
import { HttpAdapterHost, ModuleRef, ModulesContainer, Reflector } from '@nestjs/core';
import { CsrfError, InvalidSessionOptionsError } from '@nest-session/core';
import { isObservable, lastValueFrom } from 'rxjs';
import { isFromOtherOrigin, refusalBody, requestOf, requestSessionOf, SAFE_METHODS } from '@nest-session/core/internal';
import { logger, SECURITY_REPORTS, type SecurityReports } from '../audit/admin-actions.js';
import {
  ADMIN_OPTIONS,
  type AdminRight,
  type ResolvedAdminOptions,
  type ResolvedRights,
  resolveRights,
} from '../configuration/session-admin.options.js';

/**
 * Lets in whom the guards of the application let in, from a page of the same origin, for what the option `access` lets
 * them do. No cache may keep the responses.
 */
@Injectable()
export class AdminGuard implements CanActivate, OnModuleInit {
  #guards: readonly CanActivate[] | undefined;

  constructor(
    @Inject(ADMIN_OPTIONS) private readonly options: ResolvedAdminOptions,
    @Inject(ModuleRef) private readonly moduleRef: ModuleRef,
    @Inject(ModulesContainer) private readonly modules: ModulesContainer,
    @Inject(HttpAdapterHost) private readonly host: HttpAdapterHost,
    @Inject(Reflector) private readonly reflector: Reflector,
    @Inject(SECURITY_REPORTS) private readonly reports: SecurityReports,
  ) {}

  async onModuleInit(): Promise<void> {
    const { guards, isOpen, path } = this.options;
    if (isOpen) logger.warn(`The admin of sessions at ${JSON.stringify(path)} has no guards of its own: ${IS_OPEN}`);
    const found: CanActivate[] = [];
    for (const guard of guards) found.push(typeof guard === 'function' ? await this.#instanceOf(guard) : guard);
    this.#guards = found;
  }

  async canActivate(context: ExecutionContext): Promise<boolean> {
    const response: unknown = context.switchToHttp().getResponse();
    const request = context.switchToHttp().getRequest<RoutedRequest>();
    const { httpAdapter } = this.host;
    httpAdapter.setHeader(response, 'Cache-Control', 'no-store');
    httpAdapter.setHeader(response, 'X-Content-Type-Options', 'nosniff');
    httpAdapter.setHeader(response, 'Cross-Origin-Resource-Policy', 'same-origin');
    // A request before `onModuleInit()` has ended is refused.
    if (!this.#guards) throw new ForbiddenException(refusalBody('admin-not-allowed'));
    if (this.options.isOpen && !isAsWritten(request)) throw new NotFoundException(SPELLING);
    for (const guard of this.#guards) {
      const reply = await guard.canActivate(context);
      const isLetIn = isObservable(reply) ? await lastValueFrom(reply) : reply;
      if (!isLetIn) throw new ForbiddenException(refusalBody('admin-not-allowed'));
    }
    this.#refuseOtherOrigins(request);
    const rights = resolveRights(await this.options.access(request));
    if (!rights) throw new ForbiddenException(refusalBody('admin-not-allowed'));
    const needed = this.reflector.get<AdminRight | undefined>(NEEDED_RIGHT, context.getHandler());
    if (needed && !rights[needed]) {
      throw new ForbiddenException(refusalBody('admin-right-missing', { message: `You may not ${ACTIONS[needed]}` }));
    }
    granted.set(requestOf(request), rights);
    return true;
  }

  /** `trustedOrigins` of the application are others here. */
  #refuseOtherOrigins(platform: object): void {
    const request = requestOf(platform);
    if (SAFE_METHODS.includes(request.method) || !isFromOtherOrigin(request, platform, NOBODY)) return;
    const reason = 'cross-origin';
    const { id: sessionId, principalName } = requestSessionOf(request)?.existing ?? {};
    this.reports?.report('refused-origin', { request, sessionId, principalName, reason });
    throw new CsrfError(reason);
  }

  /** The instance that the application has, or a new one with what can be injected where this module is imported. */
  async #instanceOf(guard: Type<CanActivate>): Promise<CanActivate> {
    try {
      if (scopeOf(guard) !== Scope.DEFAULT) throw new TypeError('It has another scope');
      const instance: Partial<CanActivate> = this.#existing(guard) ?? (await this.#importing.create(guard));
      if (typeof instance.canActivate !== 'function') throw new TypeError('It has no method canActivate()');
      return instance as CanActivate;
    } catch (error) {
      throw new InvalidSessionOptionsError('SessionAdminModule', [cannotInject(guard, error)]);
    }
  }

  #existing(guard: Type<CanActivate>): CanActivate | undefined {
    const isThere = [...this.modules.values()].some((each) => each.providers.has(guard) || each.injectables.has(guard));
    return isThere ? this.moduleRef.get(guard, { strict: false }) : undefined;
  }

  /** Injects what the module can inject that imports this one. */
  get #importing(): ModuleRef {
    const all = [...this.modules.values()];
    const own = all.find(({ providers }) => providers.get(ADMIN_OPTIONS)?.instance === this.options);
    const importing = all.find(({ imports }) => own && imports.has(own));
    return (importing?.providers.get(ModuleRef)?.instance as ModuleRef | undefined) ?? this.moduleRef;
  }
}

interface RoutedRequest {
  readonly originalUrl: string;
  readonly route?: { readonly path: string };
  readonly routeOptions?: { readonly url?: string };
}

/** Routers also take other letter cases, encoded characters and doubled slashes, which a rule in front does not see. */
function isAsWritten({ originalUrl, route, routeOptions }: RoutedRequest): boolean {
  const segmentsOf = (path: string) => path.replace(/\/$/, '').split('/').slice(1);
  const expected = segmentsOf(route?.path ?? routeOptions?.url ?? '');
  const given = segmentsOf(originalUrl.split('?', 1)[0]!);
  // Middleware may have removed what comes before it.
  const before = given.splice(0, given.length - expected.length);
  return !before.includes('') && expected.every((each, i) => each.startsWith(':') || each === given[i]);
}

const SPELLING = 'Not found: write the path exactly as the option `path` of SessionAdminModule, and its global prefix';

type NotesScope = (options: { readonly scope: Scope }) => ClassDecorator;

/** No file of Nest says where it is noted. @throws TypeError where this version of Nest notes it in another way */
export function scopeOf(guard: Type, decorate: NotesScope = Injectable): Scope {
  class Probe {}
  decorate({ scope: Scope.REQUEST })(Probe);
  const scopeAt = (key: unknown, target: Type) => (Reflect.getMetadata(key, target) as { scope?: Scope } | null)?.scope;
  const key = Reflect.getOwnMetadataKeys(Probe).find((each) => scopeAt(each, Probe) === Scope.REQUEST) as unknown;
  if (key === undefined) throw new TypeError('This version of Nest does not tell its scope: use another version');
  return scopeAt(key, guard) ?? Scope.DEFAULT;
}

function cannotInject(guard: Type<CanActivate>, error: unknown): string {
  return (
    `Option \`guards\` has ${guard.name}, which Nest cannot inject: import SessionAdminModule in a module that can ` +
    'inject all that the guard needs, or make the guard a provider there. A guard may be neither request-scoped nor ' +
    `transient. Nest says: ${error instanceof Error ? error.message : String(error)}`
  );
}

const IS_OPEN =
  'whoever the global guards and your network let through can see and end the sessions of all users. Set the option ' +
  '`guards`, or limit it by `access`';

const NOBODY: ReadonlySet<string> = new Set();

const NEEDED_RIGHT = Symbol('NEEDED_RIGHT');

export function Needs(right: AdminRight): MethodDecorator {
  return SetMetadata(NEEDED_RIGHT, right);
}

const granted = new WeakMap<object, NonNullable<ResolvedRights>>();

/** What the sender of a request may do that `AdminGuard` has let pass. */
export function rightsOf(request: object): NonNullable<ResolvedRights> {
  return granted.get(requestOf(request))!;
}

const ACTIONS: Readonly<Record<AdminRight, string>> = {
  end: 'end sessions',
  replay: 'replay dead letters',
  discard: 'discard dead letters',
  removeGroup: 'remove groups',
  cancelDeadline: 'cancel deadlines',
};
