import { type INestApplication, Inject, type ModuleMetadata, type Provider, type Type } from '@nestjs/common';
import { type AbstractHttpAdapter, NestFactory } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { WsAdapter } from '@nestjs/platform-ws';
import {
  ConnectedSocket,
  MessageBody,
  type OnGatewayConnection,
  SubscribeMessage,
  WebSocketGateway,
  WebSocketServer,
} from '@nestjs/websockets';
import {
  KeepSessionIdle,
  Session,
  SessionAttribute,
  SessionContext,
  SessionId,
  SessionModule,
  type SessionModuleOptions,
  Sessions,
} from '@nest-session/core';
import { RedisSessionModule, type RedisSessionModuleOptions } from '@nest-session/redis';
import { LogRecorder } from '@nest-session/test-infrastructure';
import { eventually, HttpAgent } from '@nest-session/testing';
import { OpenConnections } from '@nest-session/core/internal';
import { SessionWebSocketModule, type SessionWebSocketModuleOptions } from '../../src/index.js';
import { AccountController } from './account.controller.js';

export type Platform = 'socket.io' | 'ws';
export const PLATFORMS: readonly Platform[] = ['socket.io', 'ws'];

/** What a client is told. Each message has the session as it is then. */
@WebSocketGateway({ path: '/sockets' })
export class VisitsGateway implements OnGatewayConnection<object> {
  @WebSocketServer() readonly server!: { emit(event: string, data: unknown): unknown };
  readonly connected: unknown[] = [];
  visits = 0;

  constructor(
    @Inject(SessionContext) private readonly context: SessionContext,
    @Inject(Sessions) private readonly sessions: Sessions,
  ) {}

  async handleConnection(client: object): Promise<void> {
    const { principalName } = this.context.session;
    const loaded = await this.sessions.load(client);
    this.connected.push([principalName, loaded?.principalName]);
  }

  @SubscribeMessage('read')
  read(@Session() session: Session, @SessionId() id: string, @SessionAttribute('visits') visits: number | undefined) {
    const isInContext = this.context.session === session && session.id === id;
    return reply('read', { isInContext, user: session.principalName ?? null, visits: visits ?? null });
  }

  @SubscribeMessage('visit')
  visit(@Session() session: Session) {
    this.visits++;
    session.setAttribute('visits', session.getAttributeOrDefault('visits', 0) + 1);
    return reply('visit', session.getAttribute('visits'));
  }

  @SubscribeMessage('rotate')
  rotate(@Session() session: Session) {
    return reply('rotate', session.changeSessionId());
  }

  @SubscribeMessage('fail')
  fail(@Session() session: Session) {
    session.setAttribute('failed', true);
    throw new Error('The handler fails on purpose');
  }

  @SubscribeMessage('ping')
  @KeepSessionIdle()
  ping(@ConnectedSocket() _client: object, @MessageBody() data: unknown) {
    return reply('ping', data);
  }
}

/** Sent as an acknowledgement by socket.io, and as an event by ws. */
export function reply(event: string, data: unknown): unknown {
  return { said: data, ...(replies === 'ws' && { event, data }) };
}
let replies: Platform = 'socket.io';

export interface SocketAppOptions {
  readonly platform: Platform;
  readonly url: string;
  readonly session?: SessionModuleOptions;
  readonly redis?: RedisSessionModuleOptions;
  readonly sockets?: SessionWebSocketModuleOptions;
  readonly imports?: ModuleMetadata['imports'];
  readonly providers?: Provider[];
  readonly controllers?: Type[];
  /** @default that of Express */
  readonly adapter?: AbstractHttpAdapter;
  readonly configure?: (app: INestApplication) => unknown;
}

export class SocketApp {
  private constructor(
    readonly nest: INestApplication,
    readonly origin: string,
    readonly log: LogRecorder,
  ) {}

  static async start(options: SocketAppOptions): Promise<SocketApp> {
    replies = options.platform;
    const log = new LogRecorder();
    class AppModule {}
    const nest = await NestFactory.create(
      {
        module: AppModule,
        imports: [
          SessionModule.forRoot(options.session),
          RedisSessionModule.forRoot({ url: options.url, commandTimeout: '1m', ...options.redis }),
          SessionWebSocketModule.forRoot(options.sockets),
          ...(options.imports ?? []),
        ],
        controllers: [AccountController, ...(options.controllers ?? [])],
        providers: options.providers ?? [VisitsGateway],
      },
      options.adapter ?? new ExpressAdapter(),
      { logger: log, abortOnError: false },
    );
    if (options.platform === 'ws') nest.useWebSocketAdapter(new WsAdapter(nest));
    await options.configure?.(nest);
    await nest.listen(0, '127.0.0.1');
    const app = new SocketApp(nest, await nest.getUrl(), log);
    running.push(app);
    return app;
  }

  agent(): HttpAgent {
    return new HttpAgent(this.origin);
  }
}

const running: SocketApp[] = [];

/** Closes what `start()` has started; for `afterEach`. No connection may be kept for open when all are closed. */
export async function closeApps(): Promise<void> {
  const closed = running.splice(0).map(({ nest }) => ({ nest, connections: nest.get(OpenConnections) }));
  await Promise.all(closed.map(({ nest }) => nest.close()));
  for (const { connections } of closed) await eventually(() => expect(connections.ids).toEqual([]));
}
