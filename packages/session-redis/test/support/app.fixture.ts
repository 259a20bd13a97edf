import {
  Body,
  Controller,
  type DynamicModule,
  Get,
  type INestApplication,
  Injectable,
  type ModuleMetadata,
  Param,
  Post,
  type Provider,
  Redirect,
  type Type,
} from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { OnSessionEvent, Session, SessionEvent, SessionModule, type SessionModuleOptions } from '@nest-session/core';
import { RedisSessionModule, type RedisSessionModuleOptions, SessionExpirationSweeper } from '@nest-session/redis';
import { Gate } from '@nest-session/test-infrastructure';
import { HttpAgent, SessionEventRecorder } from '@nest-session/testing';
import { PATIENCE } from './patience.js';

@Controller()
class TestController {
  static gates = new Map<string, Gate>();

  @Get('plain')
  plain() {
    return { ok: true };
  }

  @Get('read')
  read(@Session() session: Session) {
    const values = session.attributeNames.map((name) => [name, session.getAttribute(name)]);
    return { id: session.id, isNew: session.isNew, attributes: Object.fromEntries(values) as unknown };
  }

  @Post('set/:name')
  set(@Session() session: Session, @Param('name') name: string, @Body() body: { value: unknown; interval?: number }) {
    session.setAttribute(name, body.value);
    if (body.interval !== undefined) session.maxInactiveInterval = body.interval;
    return { id: session.id };
  }

  @Post('slow/:name')
  async slow(@Session() session: Session, @Param('name') name: string) {
    session.setAttribute(name, 'late');
    await TestController.gates.get(name)!.pass();
    return { ok: true };
  }

  @Post('push/:value')
  push(@Session() session: Session, @Param('value') value: string) {
    return session.updateAttribute<string[]>('list', (list = []) => [...list, value]);
  }

  @Post('count')
  count(@Session() session: Session) {
    return session.updateAttribute<number>('count', (count = 0) => count + 1);
  }

  @Post('login/:name')
  login(@Session() session: Session, @Param('name') name: string) {
    session.principalName = name;
    session.setAttribute('user', name);
    return { id: session.changeSessionId() };
  }

  @Post('logout')
  logout(@Session() session: Session) {
    session.invalidate();
    return { ok: true };
  }

  @Get('redirect')
  @Redirect('/read', 302)
  redirect(@Session() session: Session) {
    session.setAttribute('redirected', true);
  }
}

const ADAPTERS = { express: ExpressAdapter, fastify: FastifyAdapter };

export interface AppOptions {
  /** @default 'express' */
  adapter?: keyof typeof ADAPTERS;
  session?: SessionModuleOptions;
  /** @default with `commandTimeout: PATIENCE` */
  redis?: RedisSessionModuleOptions;
  /** In the place of `RedisSessionModule`. */
  store?: DynamicModule;
  imports?: ModuleMetadata['imports'];
  /** Of the root module. */
  providers?: Provider[];
  /** Beside those of the fixture. */
  controllers?: Type[];
  /** In the place of main.ts. */
  configure?: (nest: never) => Promise<void> | void;
  /** @default '127.0.0.1' */
  host?: string;
  /** Without handlers an instance does not join the group of its events. @default true */
  handlers?: boolean;
}

/** A Nest application with sessions in Redis, listening on a free port. */
export class App {
  private constructor(
    readonly nest: INestApplication,
    readonly url: string,
    readonly events: SessionEventRecorder,
  ) {}

  static async start(options: AppOptions = {}): Promise<App> {
    const { adapter = 'express', session, redis, imports = [], providers = [], controllers = [] } = options;
    const { configure, handlers = true, host = '127.0.0.1' } = options;
    const store = options.store ?? RedisSessionModule.forRoot({ commandTimeout: PATIENCE, ...redis });
    const recorder = new SessionEventRecorder();
    @Injectable()
    class Handlers {
      @OnSessionEvent(SessionEvent)
      record(event: SessionEvent) {
        recorder.record(event);
      }
    }
    class AppModule {}
    const nest = await NestFactory.create(
      {
        module: AppModule,
        imports: [SessionModule.forRoot(session), store, ...imports],
        controllers: [TestController, ...controllers],
        providers: [...providers, ...(handlers ? [Handlers] : [])],
      },
      new ADAPTERS[adapter](),
      { logger: false, abortOnError: false },
    );
    await configure?.(nest as never);
    await nest.listen(0, host);
    return new App(nest, await nest.getUrl(), recorder);
  }

  agent(): HttpAgent {
    return new HttpAgent(this.url);
  }

  get sweeper(): SessionExpirationSweeper {
    return this.nest.get(SessionExpirationSweeper, { strict: false });
  }

  /** Sends a request that sets `name` at once, and gets its response when the gate is opened. */
  slow(agent: HttpAgent, name: string) {
    const gate = new Gate();
    TestController.gates.set(name, gate);
    return { gate, response: agent.post(`/slow/${name}`) };
  }

  async stop(): Promise<void> {
    await this.nest.close();
  }
}
