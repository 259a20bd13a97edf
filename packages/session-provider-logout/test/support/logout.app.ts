import type { OutgoingHttpHeaders } from 'node:http';
import {
  Body,
  Controller,
  type DynamicModule,
  Get,
  type INestApplication,
  Injectable,
  Module,
  type ModuleMetadata,
  Post,
  type Type,
} from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import {
  MapSessionModule,
  OnSecurityEvent,
  OnSessionEvent,
  type ProviderClaims,
  RecentlyAuthenticated,
  type SecurityEvent,
  Session,
  SessionDeletedEvent,
  SessionModule,
  type SessionModuleOptions,
} from '@nest-session/core';
import { RedisSessionModule, type RedisSessionModuleOptions } from '@nest-session/redis';
import { LogRecorder } from '@nest-session/test-infrastructure';
import { HttpAgent, type HttpResponse } from '@nest-session/testing';
import {
  OnProviderEvent,
  type ProviderEvent,
  ProviderLogoutModule,
  type ProviderLogoutModuleOptions,
} from '../../src/index.js';

export type Platform = 'express' | 'fastify';
export const PLATFORMS: readonly Platform[] = ['express', 'fastify'];

@Controller()
class Routes {
  @Post('sign-in')
  signIn(@Session() session: Session, @Body() { name, ...provider }: ProviderClaims & { readonly name: string }) {
    session.signIn(name, { provider });
    return { id: session.id };
  }

  @Post('sign-in-again')
  signInAgain(@Session() session: Session, @Body() { name }: { readonly name: string }) {
    session.signIn(name);
  }

  @Post('become')
  become(@Session() session: Session, @Body() { name }: { readonly name?: string }) {
    session.principalName = name;
  }

  @Post('rotate')
  rotate(@Session() session: Session) {
    session.changeSessionId();
  }

  @Get('who')
  who(@Session() session: Session) {
    return { name: session.principalName ?? null };
  }

  @RecentlyAuthenticated('5m')
  @Get('money')
  money() {
    return 'money';
  }
}

/** What the application was told. */
@Injectable()
export class Told {
  readonly security: SecurityEvent[] = [];
  readonly provider: ProviderEvent[] = [];
  readonly ended: SessionDeletedEvent[] = [];

  @OnSecurityEvent('provider-logout', 'refused-provider-token')
  hearSecurity(event: SecurityEvent) {
    this.security.push(event);
  }

  @OnProviderEvent()
  hearProvider(event: ProviderEvent) {
    this.provider.push(event);
  }

  @OnSessionEvent(SessionDeletedEvent)
  hearEnd(event: SessionDeletedEvent) {
    this.ended.push(event);
  }
}

export interface LogoutAppOptions extends ProviderLogoutModuleOptions {
  readonly platform?: Platform;
  /** Unset: sessions in memory. */
  readonly redis?: RedisSessionModuleOptions;
  readonly session?: SessionModuleOptions;
  readonly imports?: ModuleMetadata['imports'];
  readonly providers?: ModuleMetadata['providers'];
  readonly controllers?: Type[];
  readonly configure?: (app: INestApplication) => unknown;
}

@Module({})
class TestAppModule {}

const running: INestApplication[] = [];

/** A real application with `ProviderLogoutModule`, on a free port. */
export class LogoutApp {
  private constructor(
    readonly nest: INestApplication,
    readonly origin: string,
    readonly log: LogRecorder,
  ) {}

  static async start({ platform, redis, session, configure, ...options }: LogoutAppOptions): Promise<LogoutApp> {
    const { imports = [], providers = [], controllers = [], ...logout } = options;
    const store = redis ? RedisSessionModule.forRoot(redis) : MapSessionModule.forRoot();
    const module: DynamicModule = {
      module: TestAppModule,
      imports: [SessionModule.forRoot(session), store, ProviderLogoutModule.forRoot(logout), ...imports],
      controllers: [Routes, ...controllers],
      providers: [Told, ...providers],
    };
    const log = new LogRecorder();
    const adapter = platform === 'fastify' ? new FastifyAdapter() : new ExpressAdapter();
    const nest = await NestFactory.create(module, adapter, { logger: log, abortOnError: false });
    await configure?.(nest);
    await nest.listen(0, '127.0.0.1');
    running.push(nest);
    return new LogoutApp(nest, await nest.getUrl(), log);
  }

  get told(): Told {
    return this.nest.get(Told);
  }

  agent(): HttpAgent {
    return new HttpAgent(this.origin);
  }

  /** A client in which the provider has signed a user in. */
  async signedIn(claims: ProviderClaims, name = claims.sub): Promise<HttpAgent> {
    const agent = this.agent();
    const response = await agent.post('/sign-in', { ...claims, name });
    if (response.status !== 201) throw new Error(`The sign-in got ${response.status}`);
    return agent;
  }

  send(path: string, body: unknown, headers: OutgoingHttpHeaders = {}, method = 'POST'): Promise<HttpResponse> {
    return this.agent().request(method, path, { body, headers });
  }

  logOut(token: string, headers: OutgoingHttpHeaders = {}): Promise<HttpResponse> {
    const type = { 'Content-Type': 'application/x-www-form-urlencoded' };
    return this.send('/session/provider/logout', `logout_token=${token}`, { ...type, ...headers });
  }

  pushEvent(token: string, headers: OutgoingHttpHeaders = {}): Promise<HttpResponse> {
    const type = { 'Content-Type': 'application/secevent+jwt', Accept: 'application/json' };
    return this.send('/session/provider/events', token, { ...type, ...headers });
  }
}

export async function nameOf(agent: HttpAgent): Promise<string | null> {
  const response = await agent.get('/who');
  return response.json<{ readonly name: string | null }>().name;
}

/** Closes what was started; for `afterEach`. */
export async function closeApps(): Promise<void> {
  await Promise.all(running.splice(0).map((app) => app.close()));
}
