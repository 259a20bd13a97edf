import {
  Inject,
  Injectable,
  Optional,
  Session as SessionOfNest,
  type Type,
  type WebSocketAdapter,
  type WsMessageHandler,
} from '@nestjs/common';
import { ApplicationConfig, MetadataScanner, ModulesContainer } from '@nestjs/core';
import { InvalidSessionOptionsError, Session } from '@nest-session/core';
import { type Handler, putFilterLast, putFirst, WarnOnce } from '@nest-session/core/internal';
import { RefusalFilter } from './refusal.filter.js';
import { GatewaySockets } from './gateway-sockets.js';
import { MessageInterceptor } from './message.interceptor.js';

// The key of @nestjs/websockets for the metadata of gateways.
const GATEWAY_METADATA = 'websockets:is_gateway';
const MESSAGE_MAPPING_METADATA = 'websockets:message_mapping';

// All applications of the process share one, because they share the classes of gateways, which refer to it.
const interceptor = new MessageInterceptor();
const filter = new RefusalFilter();

/** Finds the gateways of the application, and lets all of their servers, clients and messages pass through ours. */
@Injectable()
export class GatewayExplorer {
  constructor(
    @Inject(ModulesContainer) private readonly modules: ModulesContainer,
    @Inject(MetadataScanner) private readonly scanner: MetadataScanner,
    @Inject(GatewaySockets) private readonly sockets: GatewaySockets,
    // Optional, because it is undocumented that Nest provides it in every module.
    @Optional() @Inject(ApplicationConfig) private readonly config?: ApplicationConfig,
  ) {}

  /**
   * Acts when Nest asks for the adapter, right before it connects the gateways and before `NestModule.configure()` and
   * all module hooks. By then, the adapter and the global interceptors of the application are known.
   * @throws InvalidSessionOptionsError where a version of Nest does not ask the configuration, and there are gateways
   */
  install(): void {
    const { config } = this;
    if (typeof config?.getIoAdapter !== 'function') {
      if (this.#gateways().next().done) return;
      throw new InvalidSessionOptionsError('SessionWebSocketModule', [UNKNOWN_NEST]);
    }
    const getIoAdapter = config.getIoAdapter.bind(config);
    let isPut = false;
    config.getIoAdapter = () => {
      if (!isPut) this.#putEnhancers(config);
      isPut = true;
      const adapter = getIoAdapter() as ReturnType<typeof getIoAdapter> | undefined;
      if (adapter) bindToAdapter(adapter, this.sockets);
      return adapter!;
    };
  }

  /** Puts our interceptor around those of the application, which may change the session after the handler. */
  #putEnhancers(config: ApplicationConfig): void {
    for (const { controller, name } of this.#handlers()) {
      putFilterLast(filter, controller);
      fillSessionParameters(controller, name);
    }
    const others = [...config.getGlobalInterceptors(), ...config.getGlobalRequestInterceptors()];
    if (others.length > 0) config.getGlobalInterceptors().unshift(interceptor);
    else for (const handler of this.#handlers()) putFirst(interceptor, handler);
  }

  *#handlers(): Iterable<Handler & { readonly name: string }> {
    for (const controller of this.#gateways()) {
      const methods = controller.prototype as Record<string, object>;
      for (const name of this.scanner.getAllMethodNames(methods)) {
        const method = methods[name]!;
        if (Reflect.hasMetadata(MESSAGE_MAPPING_METADATA, method)) yield { controller, method, name };
      }
    }
  }

  *#gateways(): Generator<Type> {
    for (const { providers } of this.modules.values()) {
      for (const { metatype } of providers.values()) {
        if (metatype && Reflect.hasMetadata(GATEWAY_METADATA, metatype)) yield metatype as Type;
      }
    }
  }
}

const UNKNOWN_NEST =
  'This version of Nest does not ask for the adapter of gateways where the library can see it, so their clients would ' +
  'have no sessions: use another version of @nestjs/core.';

type Handlers = WsMessageHandler[];
type Transform = Parameters<WebSocketAdapter['bindMessageHandlers']>[2];

const bound = new WeakSet<WebSocketAdapter>();

/** Works on every platform, and with every adapter that the application has extended. */
function bindToAdapter(adapter: WebSocketAdapter, sockets: GatewaySockets): void {
  if (bound.has(adapter)) return;
  bound.add(adapter);
  const { create, bindClientConnect, bindMessageHandlers } = adapter;
  adapter.create = (port: number, options?: unknown) => {
    const server = create.call(adapter, port, options) as object;
    sockets.guard(server);
    return server;
  };
  adapter.bindClientConnect = (server: unknown, callback: (...args: unknown[]) => void) =>
    bindClientConnect.call(adapter, server, (...args: unknown[]) =>
      sockets.connect(args, () => callback(...args)),
    ) as unknown;
  adapter.bindMessageHandlers = (client: object, handlers: Handlers, transform: Transform) => {
    const held = handlers.map((handler) => ({ ...handler, callback: inSession(client, handler) }));
    return bindMessageHandlers.call(adapter, client, held, transform) as unknown;
  };

  function inSession(client: object, { callback }: WsMessageHandler): WsMessageHandler['callback'] {
    return (...args: unknown[]) => sockets.handle(client, args, (held) => callback(...held) as unknown);
  }
}

/** The parameters of a method, by type and index, such as `7:0`. */
type NotedParameters = Readonly<Record<string, { readonly index: number }>>;

/** Makes Nest's own `@Session()`, which gives null outside of HTTP, behave like the `@Session()` of the core. */
export function fillSessionParameters(controller: Type, method: string, ofNest = SessionOfNest): void {
  const { key, type } = noteOf(ofNest) ?? {};
  if (type === undefined) return log.warn('@Session()', SESSION_IS_NULL);
  const parameters = Reflect.getMetadata(key, controller, method) as NotedParameters | undefined;
  const all = Object.entries(parameters ?? {});
  const sessions = all.filter(([each]) => each.startsWith(type));
  if (sessions.length === 0) return;
  // Use a new object, because the metadata of a class may belong to the class that it extends.
  const others = all.filter((each) => !sessions.includes(each));
  Reflect.defineMetadata(key, Object.fromEntries(others), controller, method);
  for (const [, { index }] of sessions) Session()(controller.prototype as object, method, index);
}

/** Where a decorator of Nest notes a parameter, and as what, such as `7:`. Undefined: in another way. */
function noteOf(decorator: () => ParameterDecorator): { readonly key: unknown; readonly type: string } | undefined {
  class Probe {}
  decorator()(Probe.prototype, 'method', 0);
  for (const key of Reflect.getMetadataKeys(Probe, 'method') as unknown[]) {
    const [parameter = ''] = Object.keys(Object(Reflect.getMetadata(key, Probe, 'method')) as object);
    if (/^\w+:0$/.test(parameter)) return { key, type: parameter.slice(0, -1) };
  }
  return undefined;
}

const log = new WarnOnce();

const SESSION_IS_NULL =
  'With this version of Nest, `@Session()` of @nestjs/common gives null in gateways: import it from @nest-session/core';
