// The application of a user of the packages.
import 'reflect-metadata';
import {
  Body,
  type CanActivate,
  Controller,
  type DynamicModule,
  type ExecutionContext,
  Get,
  type INestApplication,
  Injectable,
  Module,
  Post,
  Query,
  Res,
} from '@nestjs/common';
import { APP_GUARD, NestFactory } from '@nestjs/core';
import { EventEmitterModule, OnEvent } from '@nestjs/event-emitter';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { ScheduleModule } from '@nestjs/schedule';
import { HealthCheck, HealthCheckService, TerminusModule } from '@nestjs/terminus';
import { Test } from '@nestjs/testing';
import {
  OnSessionEvent,
  Session,
  SessionContext,
  SessionEvent,
  SessionExpiredEvent,
  SessionModule,
  SessionOutagePolicy,
} from '@nest-session/core';
import { RedisSessionModule } from '@nest-session/redis';
import { SessionHealthIndicator } from '@nest-session/redis/terminus';
import { SessionEventRecorder, TestSessionModule } from '@nest-session/testing';

declare module '@nest-session/core' {
  interface SessionAttributes {
    items: string[];
    visits: number;
  }
}

export const ADAPTERS = { express: ExpressAdapter, fastify: FastifyAdapter };

export type Adapter = keyof typeof ADAPTERS;

/** What a client sees of its session. */
export interface Basket {
  readonly id: string;
  readonly isNew: boolean;
  readonly user: string | undefined;
  readonly items: readonly string[];
}

@Injectable()
class Baskets {
  constructor(private readonly context: SessionContext) {}

  add(item: string): void {
    const { session } = this.context;
    session.setAttribute('items', [...session.getAttributeOrDefault('items', []), item]);
  }
}

@Controller()
class ShopController {
  constructor(private readonly baskets: Baskets) {}

  @Get('plain')
  plain(): string {
    return 'plain';
  }

  @Get('welcome')
  @SessionOutagePolicy('anonymous')
  welcome(@Session() session: Session): { user: string } {
    return { user: session.principalName ?? 'nobody' };
  }

  @Get('basket')
  basket(@Session() session: Session): Basket {
    const { id, isNew, principalName: user } = session;
    return { id, isNew, user, items: session.getAttributeOrDefault('items', []) };
  }

  @Post('basket')
  add(@Body('item') item: string): void {
    this.baskets.add(item);
  }

  /** Answers past Nest's own way, where no interceptor sees the answer. */
  @Post('basket/by-hand')
  addByHand(@Body('item') item: string, @Res() response: { send(body: string): unknown }): void {
    this.baskets.add(item);
    response.send('added');
  }

  @Post('leave')
  leave(@Session() session: Session): void {
    session.maxInactiveInterval = 1;
  }

  @Post('login')
  login(@Session() session: Session, @Body('user') user: string): void {
    session.signIn(user);
  }

  @Post('logout')
  logout(@Session() session: Session): void {
    session.signOut();
  }
}

@Controller('health')
class HealthController {
  constructor(
    private readonly health: HealthCheckService,
    private readonly sessions: SessionHealthIndicator,
  ) {}

  @Get()
  @HealthCheck()
  check(@Query('late') late?: string) {
    return this.health.check([() => this.sessions.isHealthy('sessions', late === undefined ? {} : { late })]);
  }
}

/** What this application was told of. */
@Injectable()
export class Heard {
  readonly bySession = new SessionEventRecorder();
  readonly byEmitter = new SessionEventRecorder();

  @OnSessionEvent(SessionExpiredEvent)
  onSessionEvent(event: SessionExpiredEvent): void {
    this.bySession.record(event);
  }

  @OnEvent('session.expired')
  onEvent(event: SessionEvent): void {
    this.byEmitter.record(event);
  }
}

/** Looks who it is before every handler. */
@Injectable()
class CustomerGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const { session } = context.switchToHttp().getRequest<{ session: Session }>();
    return session.principalName !== 'banned';
  }
}

@Module({
  imports: [TerminusModule.forRoot({ logger: false })],
  controllers: [ShopController, HealthController],
  providers: [Baskets, Heard, SessionHealthIndicator, { provide: APP_GUARD, useClass: CustomerGuard }],
})
class ShopModule {}

/** A shop of this name, which its cookie and its keys in Redis begin with. */
function shopOf(name: string, redisUrl: string): DynamicModule {
  const imports = [
    ScheduleModule.forRoot(),
    EventEmitterModule.forRoot(),
    SessionModule.forRoot({ cookie: { name } }),
    // Longer than usual: the machine has several of these applications, and compilers, at a time.
    RedisSessionModule.forRoot({ url: redisUrl, namespace: name, commandTimeout: '5s' }),
  ];
  return { module: ShopModule, imports };
}

/** Opens it on a free port. */
export async function openShop(name: string, adapter: Adapter, redisUrl: string): Promise<INestApplication> {
  const shop = await NestFactory.create(shopOf(name, redisUrl), new ADAPTERS[adapter](), {
    logger: ['error', 'warn'],
    abortOnError: false,
  });
  await shop.listen(0, '127.0.0.1');
  return shop;
}

/** The same in a test that does without Redis. */
export async function testShop(adapter: Adapter): Promise<INestApplication> {
  const testing = await Test.createTestingModule({ imports: [shopOf('test', 'redis://nowhere.invalid')] })
    .overrideModule(RedisSessionModule)
    .useModule(TestSessionModule.forRoot())
    .compile();
  return testing.createNestApplication(new ADAPTERS[adapter]());
}
