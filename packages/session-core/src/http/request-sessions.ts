import type { IncomingMessage, Server } from 'node:http';
import { Inject, Injectable, type OnModuleInit, Optional } from '@nestjs/common';
import { type AbstractHttpAdapter, HttpAdapterHost, ModuleRef } from '@nestjs/core';
import { SESSION_OPTIONS } from '../configuration/session.module-definition.js';
import type { ResolvedDeviceOptions, ResolvedSessionOptions } from '../configuration/session.options.js';
import { InvalidSessionOptionsError, SessionCreationRefusedError } from '../errors/session.errors.js';
import { SessionEventDispatcher } from '../events/session-event.dispatcher.js';
import { SessionBoundEvent } from '../events/session.events.js';
import { logger } from '../logging/session.logger.js';
import { shownError, shownStack } from '../logging/shown-error.js';
import { WarnOnce } from '../logging/warn-once.js';
import { SessionRepository, writerOf } from '../repository/session.repository.js';
import { addressOf } from '../resolvers/proxied-request.js';
import { SessionIdResolver } from '../resolvers/session-id.resolver.js';
import { SESSION_TELEMETRY, type SessionTelemetry } from '../telemetry/session-telemetry.js';
import { BoundDevices } from '../device/bound-devices.js';
import { RotatingTokens } from '../device/rotating-tokens.js';
import { DeviceEndpoints } from '../device/device-endpoints.js';
import { IndexedSessionRepository } from '../repository/indexed-session.repository.js';
import { DetachedSession } from './detached-session.js';
import { isUpgrade, RequestSessionLoader } from './request-session.loader.js';
import { GuardedConnections, OpenConnections, SessionEndListener } from './open-connections.js';
import { sharedResponseFunctions } from './response-hold.js';
import type { TrackedSession } from '../session/tracked-session.js';
import type { FoundSession } from './request-session.js';
import type { ResponseCommitParts } from './response-commit.js';
import { deviceOf } from './session-device.js';
import { SessionExtension } from './session-extension.js';
import type { NamedForeignSession } from './session-takeover.js';
import { SessionScope } from './session.scope.js';
import { UpgradeOrigins } from './upgrade-origins.js';

/** By the HTTP server of an application, and by the function that it calls with each request. */
const applications = new WeakMap<object, RequestSessions>();

@Injectable()
export class RequestSessions implements OnModuleInit {
  readonly #log = new WarnOnce();
  #store:
    | {
        readonly loader: RequestSessionLoader;
        readonly parts: ResponseCommitParts;
        readonly endpoints: DeviceEndpoints | undefined;
      }
    | undefined;

  /** The connections that had a session. */
  readonly #letIn = new WeakSet<IncomingMessage>();
  /** From which pages connections may be opened. */
  readonly origins: UpgradeOrigins;

  constructor(
    @Inject(ModuleRef) private readonly moduleRef: ModuleRef,
    @Inject(SESSION_OPTIONS) private readonly options: ResolvedSessionOptions,
    @Inject(SessionIdResolver) private readonly resolver: SessionIdResolver,
    @Inject(SessionScope) readonly scope: SessionScope,
    @Inject(HttpAdapterHost) private readonly host: HttpAdapterHost,
    @Inject(SessionExtension) private readonly extension: SessionExtension,
    @Inject(OpenConnections) readonly open: OpenConnections,
    @Inject(GuardedConnections) readonly guarded: GuardedConnections,
    @Inject(SessionEndListener) readonly ends: SessionEndListener,
    @Inject(SessionEventDispatcher) private readonly events: SessionEventDispatcher,
    @Optional() @Inject(SESSION_TELEMETRY) private readonly telemetry?: SessionTelemetry,
  ) {
    this.origins = new UpgradeOrigins(options);
  }

  /** The sessions of the application whose HTTP server received a request; undefined for another server. */
  static serving(request: IncomingMessage): RequestSessions | undefined {
    const { server } = request.socket as { readonly server?: Server };
    if (!server) return undefined;
    const known = applications.get(server);
    if (known) return known;
    // Fastify listens on each address of `localhost`, by default, with a server of Node.js for each.
    const handler = handlerOf(server);
    return handler && applications.get(handler);
  }

  onModuleInit(): void {
    const { rule } = this.extension;
    if (rule) writerOf(this.#findRepository()).rule = rule;
    const adapter = this.host.httpAdapter as AbstractHttpAdapter | undefined;
    const server = adapter?.getHttpServer() as Server | undefined;
    if (!server) return;
    applications.set(server, this);
    const handler = handlerOf(server);
    if (handler) applications.set(handler, this);
  }

  get parts(): ResponseCommitParts {
    return this.#opened.parts;
  }

  /** Where browsers bind sessions; undefined without the option `deviceBound`. */
  get endpoints(): DeviceEndpoints | undefined {
    return this.#opened.endpoints;
  }

  get loader(): RequestSessionLoader {
    return this.#opened.loader;
  }

  /** Whether a connection may be opened from the page that opens it. A refusal is a security event. */
  allowsOriginOf(request: IncomingMessage): boolean {
    const { socket } = request;
    // Comes first with each upgrade. Nobody listens while the store is asked, and an error would end the process.
    if (isUpgrade(request) && socket.listenerCount('error') === 0) socket.on('error', () => undefined);
    if (this.origins.allows(request)) return true;
    if (!this.options.securityEvents.report('refused-origin', { request })) this.#log.warn('origin', FOREIGN_ORIGIN);
    return false;
  }

  reportLimit(limit: string, request: IncomingMessage, sessionId: string): void {
    this.options.securityEvents.report('limit-reached', { request, limit, sessionId });
  }

  /** What another library keeps under an id, and the id that it gets here; undefined where none is taken over. */
  named(id: string, of?: string): { readonly foreign: NamedForeignSession; readonly id: string } | undefined {
    const foreign = this.extension.takeover?.named(id, of);
    const ownId = foreign && this.options.ids.find(foreign.token);
    return ownId === undefined ? undefined : { foreign: foreign!, id: ownId };
  }

  mayHave(id: string): boolean {
    return this.options.ids.mayBeId(id);
  }

  /** Whether a request has no session, by the option `exclude` or because another package says so. */
  excludes(request: IncomingMessage): boolean {
    const isExcluded: unknown = this.options.exclude?.(request);
    if (isExcluded instanceof Promise) throw new InvalidSessionOptionsError('SessionModule', [PROMISED_EXCLUSION]);
    return Boolean(isExcluded) || this.extension.excludes?.(request) === true;
  }

  get exclusion(): ((request: IncomingMessage) => boolean) | undefined {
    const isAny = this.options.exclude ?? this.extension.excludes;
    return isAny && ((request) => this.excludes(request));
  }

  /** Never rejects: a failed load matters only when the session is used. Its touch is not sent yet. */
  async detached(request: IncomingMessage): Promise<DetachedSession> {
    const { loader, parts } = this.#opened;
    const found = await loader.load(request);
    this.#cutUnproven(request, found);
    return new DetachedSession(parts, request, found);
  }

  /** Loaded once for several messages, of which each has a session of its own. Never rejects. */
  async detachedAgain(request: IncomingMessage, id: string, messages: number): Promise<DetachedSession[]> {
    const { loader, parts } = this.#opened;
    const all = await loader.loadAgain(request, id, messages);
    this.#cutUnproven(request, all[0]);
    return all.map((found) => new DetachedSession(parts, request, found));
  }

  /** Closes a connection from before its session was bound: the browser proves itself when it comes again. */
  #cutUnproven(request: IncomingMessage, found: FoundSession | undefined): void {
    if (request.headers.upgrade === undefined) return;
    if (found?.loaded) this.#letIn.add(request);
    else if (found?.withheld && this.#letIn.has(request)) request.socket.destroy();
  }

  /** The session of a client that has none: it is empty and cannot be started. */
  none(request: IncomingMessage): DetachedSession {
    return new DetachedSession(this.parts, request);
  }

  // Not before it is used: the module of the store may be constructed later.
  get #opened() {
    return (this.#store ??= this.#open());
  }

  #open() {
    // Not injected as an optional dependency: it would also be missing when its construction failed, and the error
    // would give the wrong reason.
    const repository = this.#findRepository();
    const { resolver, options, extension, telemetry } = this;
    const { devices: recorded } = options;
    const devices = this.#devicesIn(repository);
    this.guarded.devices = devices;
    const parts = {
      repository,
      resolver,
      replaceIn: sharedResponseFunctions(),
      mayCreate: creationRule(options),
      deviceOf: recorded && ((request: IncomingMessage) => this.#deviceOf(request, recorded)),
      devices,
      tokens: this.#rotatingTokens(),
      extension,
      telemetry,
    };
    const loader = new RequestSessionLoader(parts, options);
    const tellBound = (session: TrackedSession, at: number) => this.#tellBound(session, at);
    const endpoints = devices && new DeviceEndpoints(devices, (request) => loader.presentedIds(request), tellBound);
    return { loader, parts, endpoints };
  }

  #devicesIn(repository: SessionRepository): BoundDevices | undefined {
    const { resolver, options, telemetry } = this;
    const { deviceBound, securityEvents } = options;
    if (!deviceBound) return undefined;
    this.#requireCookie('deviceBound');
    if (!(repository instanceof IndexedSessionRepository)) {
      throw new InvalidSessionOptionsError('SessionModule', [NOT_INDEXED]);
    }
    return new BoundDevices(repository, resolver, deviceBound, securityEvents, telemetry);
  }

  #rotatingTokens(): RotatingTokens | undefined {
    const { rotateEvery, securityEvents } = this.options;
    if (rotateEvery === undefined) return undefined;
    this.#requireCookie('rotateEvery');
    return new RotatingTokens(rotateEvery, securityEvents);
  }

  /** Otherwise what protects sessions would do nothing, and nobody would know. */
  #requireCookie(option: string): void {
    const { headers, deviceCookie } = this.resolver;
    const isCookie = headers.includes('Cookie') && deviceCookie !== SessionIdResolver.prototype.deviceCookie;
    if (!isCookie) throw new InvalidSessionOptionsError('SessionModule', [`Option \`${option}\` ${NEEDS_COOKIE}`]);
  }

  #tellBound(session: TrackedSession, at: number): void {
    const event = new SessionBoundEvent({ sessionId: session.id, at, session });
    void this.events.broadcast(event);
    this.events
      .dispatch(event)
      .catch((error: unknown) => logger.error('A SessionBoundEvent was not handled', shownStack(error)));
  }

  /** Nobody fails to sign in because of what only describes the session. */
  #deviceOf(request: IncomingMessage, options: ResolvedDeviceOptions): string {
    try {
      return deviceOf(request, options);
    } catch (error) {
      this.#log.warn('address', `${NO_ADDRESS}: ${shownError(error)}`);
      return deviceOf(request, { ...options, address: 'none' });
    }
  }

  #findRepository(): SessionRepository {
    try {
      return this.moduleRef.get<SessionRepository>(SessionRepository, { strict: false });
    } catch {
      throw new InvalidSessionOptionsError('SessionModule', [NO_REPOSITORY]);
    }
  }
}

/** What a server was made with. Others may listen to its requests as well, later. */
function handlerOf(server: Partial<Server>): object | undefined {
  return server.listeners?.('request')[0];
}

function creationRule({ mayCreate, securityEvents }: ResolvedSessionOptions): ResponseCommitParts['mayCreate'] {
  return (
    mayCreate &&
    (async (request) => {
      if (await mayCreate(request, addressOf(request))) return;
      securityEvents.report('limit-reached', { request, limit: 'mayCreate' });
      throw new SessionCreationRefusedError();
    })
  );
}

const NO_REPOSITORY =
  'There is no store for the sessions: import RedisSessionModule.forRoot() of @nest-session/redis, or ' +
  'MapSessionModule.forRoot() to keep them in the memory of a single process.';

const NEEDS_COOKIE =
  'needs the token in a cookie, and `sessionIdResolver` keeps it elsewhere: remove one of the two, or extend ' +
  'CookieSessionIdResolver.';

const NOT_INDEXED =
  'Option `deviceBound` needs a store that finds sessions by an index, and this one has none: use RedisSessionModule or ' +
  'MapSessionModule, or extend IndexedSessionRepository.';

const NO_ADDRESS =
  'The option `devices.addressOf` threw, so sessions are stored without the address of their client. This is logged once';

const FOREIGN_ORIGIN =
  'A WebSocket from a page of another origin was refused: its Origin is not the Host. List the origins of your pages ' +
  'in SessionWebSocketModule.forRoot({ origins }) of @nest-session/websockets';

const PROMISED_EXCLUSION = 'Option `exclude` returned a promise, but must return true or false at once.';
