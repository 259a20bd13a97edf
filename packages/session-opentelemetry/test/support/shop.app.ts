import {
  Body,
  Controller,
  Get,
  HttpException,
  type INestApplication,
  Injectable,
  type ModuleMetadata,
  Param,
  Post,
} from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ExpressAdapter, type NestExpressApplication } from '@nestjs/platform-express';
import {
  MapSessionModule,
  OnSessionEvent,
  Session,
  SessionCreatedEvent,
  SessionEvent,
  SessionModule,
  type SessionModuleOptions,
} from '@nest-session/core';
import { LogRecorder } from '@nest-session/test-infrastructure';
import { HttpAgent, TestClock } from '@nest-session/testing';
import { trace } from '@opentelemetry/api';
import { SessionTelemetryModule, type SessionTelemetryModuleOptions } from '../../src/index.js';

@Controller()
class ShopController {
  @Get('cart')
  read(@Session() session: Session) {
    return { items: session.getAttribute<string[]>('items') ?? [], user: session.principalName };
  }

  @Post('cart/:item')
  add(@Session() session: Session, @Param('item') item: string) {
    return session.updateAttribute<string[]>('items', (items = []) => [...items, item]);
  }

  @Post('sign-in/:name')
  signIn(@Session() session: Session, @Param('name') name: string, @Body() body: { seconds?: number; idle?: number }) {
    session.signIn(name);
    if (body?.seconds !== undefined) session.absoluteTimeout = body.seconds;
    if (body?.idle !== undefined) session.maxInactiveInterval = body.idle;
  }

  @Post('leave')
  leave(@Session() session: Session) {
    session.maxInactiveInterval = 1;
  }

  @Post('sign-out')
  signOut(@Session() session: Session) {
    session.signOut();
  }

  @Post('invalidate')
  invalidate(@Session() session: Session) {
    session.invalidate();
  }
}

/** Fails as long as `failures` are left. */
@Injectable()
export class Mails {
  failures = 0;
  /** The types of all events. */
  readonly heard: string[] = [];

  @OnSessionEvent(SessionCreatedEvent)
  async onCreated() {
    await trace.getTracer('mails').startActiveSpan('send mail', async (span) => span.end());
    if (this.failures > 0) {
      this.failures--;
      throw new HttpException('secret-of-the-handler', 500);
    }
  }

  @OnSessionEvent(SessionEvent, { broadcast: true })
  hear({ type }: SessionEvent) {
    this.heard.push(type);
  }
}

/** What differs from an application with its sessions in memory. */
export interface ShopOptions {
  readonly session?: SessionModuleOptions;
  /** @default in memory */
  readonly store?: NonNullable<ModuleMetadata['imports']>;
  readonly telemetry?: SessionTelemetryModuleOptions;
  readonly imports?: NonNullable<ModuleMetadata['imports']>;
  /** @default true */
  readonly handlers?: boolean;
  /** @default false */
  readonly trustProxy?: boolean;
}

/** An application with sessions and telemetry. */
export class ShopApp {
  private constructor(
    readonly nest: INestApplication,
    readonly origin: string,
    readonly log: LogRecorder,
  ) {}

  static async start(options: ShopOptions = {}): Promise<ShopApp> {
    const {
      session,
      store = [MapSessionModule.forRoot()],
      telemetry,
      imports = [],
      handlers = true,
      trustProxy = false,
    } = options;
    const log = new LogRecorder();
    class AppModule {}
    const nest = await NestFactory.create<NestExpressApplication>(
      {
        module: AppModule,
        imports: [SessionModule.forRoot(session), ...store, SessionTelemetryModule.forRoot(telemetry), ...imports],
        controllers: [ShopController],
        providers: handlers ? [Mails] : [],
      },
      new ExpressAdapter(),
      { logger: log, abortOnError: false },
    );
    nest.set('trust proxy', trustProxy);
    await nest.listen(0, '127.0.0.1');
    const app = new ShopApp(nest, await nest.getUrl(), log);
    running.push(app);
    return app;
  }

  /** The clock of the sessions under `TestSessionModule`. */
  get clock(): TestClock {
    return this.nest.get(TestClock, { strict: false });
  }

  agent(): HttpAgent {
    return new HttpAgent(this.origin);
  }

  /** A visitor with a session. */
  async visit(item = 'apple'): Promise<HttpAgent> {
    const agent = this.agent();
    await agent.post(`/cart/${item}`);
    return agent;
  }
}

const running: ShopApp[] = [];

/** Closes what `start()` has started; for `afterEach`. */
export async function closeShops(): Promise<void> {
  await Promise.all(running.splice(0).map(({ nest }) => nest.close()));
}
