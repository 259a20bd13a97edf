import { AsyncLocalStorage } from 'node:async_hooks';
import {
  type CallHandler,
  Controller,
  type DynamicModule,
  type ExecutionContext,
  Get,
  type INestApplication,
  type MiddlewareConsumer,
  Module,
  type NestInterceptor,
  type NestModule,
  type Type,
} from '@nestjs/common';
import { APP_INTERCEPTOR, type AbstractHttpAdapter, NestFactory } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { MapSessionModule, Session, SessionModule } from '@nest-session/core';

@Controller()
class PlainController {
  @Get('plain')
  plain() {
    return { ok: true };
  }
}

@Controller()
class SessionController {
  @Get('login')
  logIn(@Session() session: Session) {
    session.setAttribute('user', { id: 1, name: 'Ada', roles: ['admin', 'author'] });
    return { ok: true };
  }

  @Get('read')
  read(@Session() session: Session) {
    return { ok: session.getAttribute('user') !== undefined };
  }

  @Get('excluded')
  excluded() {
    return { ok: true };
  }
}

class PassesOn implements NestInterceptor {
  intercept(_: ExecutionContext, next: CallHandler) {
    return next.handle();
  }
}

@Module({})
class BenchModule {}

/** The cost for any library that makes the current request available to services. */
@Module({})
class RequestContextModule implements NestModule {
  readonly #storage = new AsyncLocalStorage<object>();

  configure(consumer: MiddlewareConsumer): void {
    const middleware = (request: object, _: unknown, next: () => void) => this.#storage.run(request, next);
    consumer.apply(middleware).forRoutes('{*path}');
  }
}

const interceptor = { provide: APP_INTERCEPTOR, useClass: PassesOn };

/** The contenders: the smallest application, the mechanisms that SessionModule needs, and SessionModule. */
export const applications = {
  bare: { module: BenchModule, controllers: [PlainController] },
  interceptor: {
    module: BenchModule,
    controllers: [PlainController],
    providers: [interceptor],
  },
  context: {
    module: RequestContextModule,
    controllers: [PlainController],
    providers: [interceptor],
  },
  session: {
    module: BenchModule,
    imports: [SessionModule.forRoot({ exclude: (request) => request.url === '/excluded' }), MapSessionModule.forRoot()],
    controllers: [PlainController, SessionController],
  },
} satisfies Record<string, DynamicModule>;

export const adapters = { express: ExpressAdapter, fastify: FastifyAdapter } satisfies Record<
  string,
  Type<AbstractHttpAdapter>
>;

export type ApplicationName = keyof typeof applications;
export type AdapterName = keyof typeof adapters;

/** Called by server.main.ts. */
export function createApplication(application: ApplicationName, adapter: AdapterName): Promise<INestApplication> {
  return NestFactory.create(applications[application], new adapters[adapter](), { logger: ['error'] });
}
