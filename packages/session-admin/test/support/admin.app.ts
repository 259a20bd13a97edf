import {
  type CanActivate,
  Controller,
  type ExecutionContext,
  Get,
  type INestApplication,
  Inject,
  Injectable,
  type ModuleMetadata,
  Param,
  Post,
  UnauthorizedException,
} from '@nestjs/common';
import { type AbstractHttpAdapter, NestFactory } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import {
  MapSessionModule,
  OnSecurityEvent,
  type SecurityEvent,
  Session,
  SessionModule,
  type SessionModuleOptions,
} from '@nest-session/core';
import { LogRecorder } from '@nest-session/test-infrastructure';
import { HttpAgent } from '@nest-session/testing';
import { SessionAdminModule, type SessionAdminModuleOptions } from '../../src/index.js';

export const PATH = '/operations/sessions';
export const PLATFORMS = ['Express', 'Fastify'] as const;

type Imports = NonNullable<ModuleMetadata['imports']>;

/** Who the administrators are: a private provider of the application. */
@Injectable()
export class Administrators {
  readonly names = ['ada'];
}

/** Lets administrators in who have signed in, by something that it injects. */
@Injectable()
export class AdminGuard implements CanActivate {
  constructor(@Inject(Administrators) private readonly administrators: Administrators) {}

  canActivate(context: ExecutionContext): boolean {
    const { session } = context.switchToHttp().getRequest<{ session: Session }>();
    if (session.principalName === undefined) throw new UnauthorizedException();
    return this.administrators.names.includes(session.principalName);
  }
}

@Controller()
class ShopController {
  @Post('sign-in/:name')
  signIn(@Session() session: Session, @Param('name') name: string) {
    session.signIn(name);
    return { id: session.id };
  }

  @Post('cart/:item')
  add(@Session() session: Session, @Param('item') item: string) {
    session.setAttribute('cart', [item]);
    return { id: session.id };
  }

  @Get('cart')
  cart(@Session() session: Session) {
    return { cart: session.getAttribute('cart') ?? null };
  }
}

/** Hears of what happened. */
@Injectable()
class SecurityLog {
  readonly events: SecurityEvent[] = [];

  @OnSecurityEvent('admin-action', 'refused-origin')
  hear(event: SecurityEvent) {
    this.events.push(event);
  }
}

/** What differs from a shop with its sessions in memory, whose administrators may do everything. */
export interface AdminAppOptions {
  readonly platform?: (typeof PLATFORMS)[number];
  /** False: the application has no sessions. */
  readonly session?: SessionModuleOptions | false;
  /** @default in memory */
  readonly store?: Imports;
  readonly admin?: Partial<SessionAdminModuleOptions>;
  readonly imports?: Imports;
  readonly providers?: NonNullable<ModuleMetadata['providers']>;
  /** Whether somebody hears of security events. @default true */
  readonly listens?: boolean;
  /** @default of the platform, without options */
  readonly adapter?: AbstractHttpAdapter | undefined;
  readonly configure?: (app: INestApplication) => void;
}

/** A shop with an admin. */
export class AdminApp {
  private constructor(
    readonly nest: INestApplication,
    readonly origin: string,
    readonly log: LogRecorder,
  ) {}

  static async start(options: AdminAppOptions = {}): Promise<AdminApp> {
    const { platform = 'Express', session, store = [MapSessionModule.forRoot()], admin, imports = [] } = options;
    const { listens = true, providers = [], configure } = options;
    const log = new LogRecorder();
    class AppModule {}
    const nest = await NestFactory.create(
      {
        module: AppModule,
        imports: [
          ...(session === false ? [] : [SessionModule.forRoot({ devices: true, ...session }), ...store]),
          SessionAdminModule.forRoot({ path: PATH.slice(1), guards: [AdminGuard], ...admin }),
          ...imports,
        ],
        controllers: session === false ? [] : [ShopController],
        providers: [Administrators, ...(listens ? [SecurityLog] : []), ...providers],
      },
      options.adapter ?? (platform === 'Express' ? new ExpressAdapter() : new FastifyAdapter()),
      { logger: log, abortOnError: false },
    );
    running.push(nest);
    configure?.(nest);
    await nest.listen(0, '127.0.0.1');
    return new AdminApp(nest, await nest.getUrl(), log);
  }

  agent(): HttpAgent {
    return new HttpAgent(this.origin, { headers: { 'user-agent': 'Mozilla/5.0 (X11; Linux x86_64) Chrome/140.0' } });
  }

  /** A client that has signed in, and the id of its session. */
  async signIn(name: string): Promise<{ agent: HttpAgent; id: string }> {
    const agent = this.agent();
    const { id } = (await agent.post(`/sign-in/${encodeURIComponent(name)}`)).json<{ id: string }>();
    return { agent, id };
  }

  /** The client of an administrator. */
  async admin(): Promise<HttpAgent> {
    return (await this.signIn('ada')).agent;
  }

  get events(): SecurityEvent[] {
    return this.nest.get(SecurityLog).events;
  }
}

const running: INestApplication[] = [];

/** Closes what `start()` has started; for `afterEach`. */
export async function closeApps(): Promise<void> {
  await Promise.all(running.splice(0).map((nest) => nest.close()));
}
