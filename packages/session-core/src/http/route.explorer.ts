import { Inject, Injectable, type Type } from '@nestjs/common';
import { type DiscoveryService, MetadataScanner, ModulesContainer } from '@nestjs/core';
import { BrowserSessions } from './browser-sessions.js';
import {
  type Handler,
  interceptorsOf,
  isRedirectedOrRendered,
  isRoute,
  isSentOtherwise,
  takesRequest,
} from './handler-metadata.js';
import { RevocationInterceptor } from './revocation.js';
import { SessionContext } from './session.scope.js';
import { SessionInterceptor } from './session.interceptor.js';

type InstanceWrapper = ReturnType<DiscoveryService['getProviders']>[number];
type Module = NonNullable<ReturnType<ModulesContainer['get']>>;

interface NamedHandler extends Handler {
  readonly name: string;
  readonly wrapper: InstanceWrapper;
  readonly isOfController: boolean;
}

export interface SessionRoute extends Handler {
  readonly name: string;
  /** Whether it may use the session of its request: by a parameter, or by what is injected. */
  readonly canHaveSession: boolean;
}

interface GraphqlOptions {
  readonly include?: readonly unknown[];
  readonly fieldResolverEnhancers?: readonly string[];
}

/** A `ClientProxy` of @nestjs/microservices, which an application need not have. */
export interface MessageClient {
  connect(): Promise<unknown>;
}

/** Finds out at start which parts of the application have to do with sessions, so that the others pay nothing. */
@Injectable()
export class RouteExplorer {
  constructor(
    @Inject(ModulesContainer) private readonly modules: ModulesContainer,
    @Inject(MetadataScanner) private readonly scanner: MetadataScanner,
  ) {}

  /** Middleware classes count once `configure()` of all modules has run. */
  get injectsContext(): boolean {
    return [...this.#wrappers()].some((wrapper) => dependenciesOf(wrapper).some(({ token }) => isContext(token)));
  }

  /** The clients of microservices. */
  get clients(): MessageClient[] {
    return [...this.#wrappers()].map(({ instance }) => instance as unknown).filter(isMessageClient);
  }

  has(key: symbol): boolean {
    return [...this.#wrappers()].some((wrapper) => {
      const targets = wrapper.isFactory
        ? []
        : [wrapper.metatype, ...this.#handlersOf(wrapper).map(({ method }) => method)];
      return targets.some((each) => each && Reflect.hasMetadata(key, each));
    });
  }

  /**
   * The handlers that need an interceptor of their own: resolvers, and routes whose response Nest does not send behind
   * their interceptors, or with `isSavedByNest` false all. Of these, those that can get the session, and all that
   * redirect or render: guards and middleware may have changed the session, as a login by Passport does.
   */
  handlersToIntercept(isSavedByNest: boolean): Handler[] {
    const canHaveSession = this.#sessionUsers();
    const isLeftToNest = (handler: NamedHandler) =>
      isSavedByNest && !isIntercepted(handler) && !isSentOtherwise(handler, handler.name);
    return this.#handlers().filter((handler) => {
      const { method } = handler;
      const isSavedHere = handler.isOfController ? isRoute(method) && !isLeftToNest(handler) : isRootResolver(method);
      return isSavedHere && (canHaveSession(handler) || isRedirectedOrRendered(method));
    });
  }

  /** All routes of controllers. */
  sessionRoutes(): SessionRoute[] {
    const canHaveSession = this.#sessionUsers();
    const routes = this.#handlers().filter(({ isOfController, method }) => isOfController && isRoute(method));
    return routes.map((handler) => ({ ...handler, canHaveSession: canHaveSession(handler) }));
  }

  #sessionUsers(): (handler: NamedHandler) => boolean {
    const { injectsContext } = this;
    return ({ wrapper, controller, name }) =>
      injectsContext || !wrapper.isDependencyTreeStatic() || takesRequest(controller, name);
  }

  /** The routes and resolvers that have interceptors of the application by decorators; with `isEach`, all of them. */
  interceptedHandlers(isEach: boolean): Handler[] {
    const handlers = this.#handlers().filter(({ method }) => isRoute(method) || isRootResolver(method));
    return handlers.filter((handler) => isEach || isIntercepted(handler));
  }

  /** The resolvers of fields for which GraphQL calls no guards: all of them, unless the application wants that. */
  fieldsWithoutGuards(): Handler[] {
    const unguarded = new Set<Module>();
    for (const each of this.modules.values()) {
      const options = each.providers.get(GRAPHQL_OPTIONS)?.instance as GraphqlOptions | undefined;
      if (options && !options.fieldResolverEnhancers?.includes('guards')) {
        for (const served of this.#servedBy(options)) unguarded.add(served);
      }
    }
    const handlers = [...unguarded].flatMap(({ providers }) =>
      [...providers.values()].flatMap((each) => this.#handlersOf(each)),
    );
    return handlers.filter(({ controller, method }) => isFieldResolver(controller, method));
  }

  /** The modules whose resolvers a GraphQL module serves: those that it includes, and what they import, or else all. */
  #servedBy({ include = [] }: GraphqlOptions): Iterable<Module> {
    const modules = [...this.modules.values()];
    if (include.length === 0) return modules;
    const served = new Set(modules.filter(({ metatype }) => include.includes(metatype)));
    // Also those that are added meanwhile.
    for (const { imports } of served) for (const each of imports) served.add(each);
    return served;
  }

  #handlers(): NamedHandler[] {
    return [...this.modules.values()].flatMap(({ controllers, providers }) => [
      ...[...controllers.values()].flatMap((each) => this.#handlersOf(each, true)),
      ...[...providers.values()].flatMap((each) => this.#handlersOf(each)),
    ]);
  }

  #handlersOf(wrapper: InstanceWrapper, isOfController = false): NamedHandler[] {
    const controller = wrapper.metatype as Type | undefined;
    const methods = wrapper.isFactory ? undefined : (controller?.prototype as Record<string, object> | undefined);
    if (!controller || !methods) return [];
    const names = this.scanner.getAllMethodNames(methods);
    return names.map((name) => ({ wrapper, isOfController, controller, name, method: methods[name]! }));
  }

  *#wrappers(): Iterable<InstanceWrapper> {
    for (const { controllers, providers, injectables, middlewares } of this.modules.values()) {
      for (const each of [controllers, providers, injectables, middlewares]) yield* each.values();
    }
  }
}

/** Whether a method resolves a query, mutation or subscription; the resolvers of fields have no interceptors. */
function isRootResolver(method: object): boolean {
  return ROOT_TYPES.has(Reflect.getMetadata(RESOLVER_TYPE, method));
}

function isFieldResolver(controller: Type, method: object): boolean {
  const type: unknown = Reflect.getMetadata(RESOLVER_TYPE, method) ?? Reflect.getMetadata(RESOLVER_TYPE, controller);
  return FIELD_MARKS.some((key) => Reflect.hasMetadata(key, method)) && !ROOT_TYPES.has(type);
}

// Of @nestjs/graphql, which an application need not have.
const GRAPHQL_OPTIONS = 'GqlModuleOptions';
const RESOLVER_TYPE = 'graphql:resolver_type';
const ROOT_TYPES = new Set<unknown>(['Query', 'Mutation', 'Subscription']);
const FIELD_MARKS = ['graphql:resolve_property', 'graphql:resolve_reference'];

/** By an interceptor of the application: another application of the process may have put ours there. */
function isIntercepted({ controller, method }: Handler): boolean {
  const interceptors = [...interceptorsOf(controller), ...interceptorsOf(method)];
  return interceptors.some((each) => !(each instanceof SessionInterceptor || each instanceof RevocationInterceptor));
}

function dependenciesOf(wrapper: InstanceWrapper): InstanceWrapper[] {
  // Nest leaves out what it could not record, such as the inquirer.
  const parameters = (wrapper.getCtorMetadata() as (InstanceWrapper | undefined)[] | undefined) ?? [];
  const properties = (wrapper.getPropertiesMetadata() as { wrapper: InstanceWrapper }[] | undefined) ?? [];
  return [...parameters, ...properties.map((property) => property.wrapper)].filter((each) => each !== undefined);
}

/** By its methods: the package may be a copy. None is read, because a proxy of the application may throw then. */
function isMessageClient(instance: unknown): instance is MessageClient {
  const prototype = Object(Object.getPrototypeOf(Object(instance))) as object;
  return ['connect', 'send', 'emit', 'publish', 'dispatchEvent'].every((name) => name in prototype);
}

function isContext(token: unknown): boolean {
  return token === SessionContext || token === BrowserSessions;
}
