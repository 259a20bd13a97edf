import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import {
  type ArgumentsHost,
  Catch,
  Inject,
  type INestApplication,
  RequestMethod,
  VersioningType,
} from '@nestjs/common';
import {
  APP_FILTER,
  APP_INTERCEPTOR,
  BaseExceptionFilter,
  ContextIdFactory,
  HttpAdapterHost,
  NestFactory,
} from '@nestjs/core';
import { type MicroserviceOptions, Transport } from '@nestjs/microservices';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify';
import { type Session, SessionModule } from '@nest-session/core';
import { RedisSessionModule, type RedisSessionModuleOptions } from '@nest-session/redis';
import { type ResponseClient, Http2Client, HttpClient, InjectClient } from './response.client.js';
import {
  ResponseController,
  globalInterceptor,
  mark,
  outerInterceptor,
  OutsideController,
  SCOPED_PROVIDERS,
  ScopedController,
} from './response.routes.js';
import { type Companion, EXPRESS_COMPANIONS, FASTIFY_COMPANIONS } from './companions.js';

/** How an application is set up: its platform, its companion, and the kind of client. */
export interface ResponseColumn {
  readonly platform: 'express' | 'fastify';
  readonly companion?: () => Companion<never>;
  /** @default http */
  readonly transport?: 'http2' | 'inject';
  /** Whether it is a microservice as well. */
  readonly isHybrid?: boolean;
}

export const RESPONSE_COLUMNS: Readonly<Record<string, ResponseColumn>> = {
  Express: { platform: 'express' },
  Fastify: { platform: 'fastify' },
  ...columnsWith('Express', 'express', EXPRESS_COMPANIONS),
  ...columnsWith('Fastify', 'fastify', FASTIFY_COMPANIONS),
  'Express, hybrid': { platform: 'express', isHybrid: true },
  'Fastify, hybrid': { platform: 'fastify', isHybrid: true },
  'Fastify, HTTP/2': { platform: 'fastify', transport: 'http2' },
  'Fastify, inject()': { platform: 'fastify', transport: 'inject' },
};

function columnsWith(
  title: string,
  platform: ResponseColumn['platform'],
  companions: Readonly<Record<string, () => Companion<never>>>,
): Record<string, ResponseColumn> {
  return Object.fromEntries(
    Object.entries(companions).map(([name, companion]) => [`${title}, ${name}`, { platform, companion }]),
  );
}

/** Counts the calls of exception filters, and responds as Nest does. */
@Catch()
class CountingFilter extends BaseExceptionFilter {
  calls = 0;

  constructor(@Inject(HttpAdapterHost) host: HttpAdapterHost) {
    super(host.httpAdapter);
  }

  override catch(error: unknown, host: ArgumentsHost): void {
    this.calls++;
    super.catch(error, host);
  }
}

/** An application of a column, and a client that keeps no cookies. */
export class ResponseApp {
  private constructor(
    readonly nest: INestApplication,
    readonly client: ResponseClient,
    readonly companion: Companion<never> | undefined,
  ) {}

  static async start(column: ResponseColumn, redis: RedisSessionModuleOptions): Promise<ResponseApp> {
    const companion = column.companion?.();
    const adapter = adapterOf(column);
    companion?.before?.(adapter.getInstance());
    const nest = await NestFactory.create(moduleWith(redis), adapter, { logger: false, abortOnError: false });
    await companion?.configure?.(nest as never);
    configure(nest);
    if (column.isHybrid) await connectMicroservice(nest);
    await nest.listen(0, '127.0.0.1');
    // The client keeps connections open: one that the server closes would fail the next request.
    (nest.getHttpServer() as Server).keepAliveTimeout = 0;
    return new ResponseApp(nest, await clientOf(column, nest), companion);
  }

  /** Calls of exception filters since the last time. */
  takeFilterCalls(): number {
    const filter = this.nest.get<CountingFilter>(CountingFilter, { strict: false });
    const { calls } = filter;
    filter.calls = 0;
    return calls;
  }

  async stop(): Promise<void> {
    this.client.close();
    await this.nest.close();
    await this.companion?.remove?.();
  }
}

function moduleWith(redis: RedisSessionModuleOptions) {
  class AppModule {}
  return {
    module: AppModule,
    imports: [SessionModule.forRoot(), RedisSessionModule.forRoot(redis)],
    controllers: [ResponseController, ScopedController, OutsideController],
    providers: [
      ...SCOPED_PROVIDERS,
      CountingFilter,
      { provide: APP_FILTER, useExisting: CountingFilter },
      { provide: APP_INTERCEPTOR, useValue: outerInterceptor },
    ],
  };
}

function adapterOf({ platform, transport }: ResponseColumn): ExpressAdapter | FastifyAdapter {
  if (platform === 'express') return new ExpressAdapter();
  return transport === 'http2' ? new FastifyAdapter({ http2: true }) : new FastifyAdapter();
}

function configure(app: INestApplication): void {
  app.setGlobalPrefix('api', { exclude: [{ path: 'outside', method: RequestMethod.GET }] });
  app.enableVersioning({ type: VersioningType.URI });
  app.useGlobalInterceptors(globalInterceptor);
  app.use((request: IncomingMessage & { session: Session }, response: ServerResponse, next: () => void) => {
    const by = request.headers['x-mark'];
    if (by !== undefined) mark(request.session, String(by));
    if (request.url === '/middleware') response.end('responded');
    else next();
  });
  const tenant = ContextIdFactory.create();
  ContextIdFactory.apply({ attach: (id) => ({ resolve: (host) => (host.isTreeDurable ? tenant : id), payload: {} }) });
}

async function connectMicroservice(app: INestApplication): Promise<void> {
  const options = { host: '127.0.0.1', port: 0 };
  app.connectMicroservice<MicroserviceOptions>({ transport: Transport.TCP, options }, { inheritAppConfig: true });
  await app.startAllMicroservices();
}

async function clientOf({ transport }: ResponseColumn, app: INestApplication): Promise<ResponseClient> {
  if (transport === 'inject') return new InjectClient(app as NestFastifyApplication);
  return transport === 'http2' ? new Http2Client(await app.getUrl()) : new HttpClient(await app.getUrl());
}
