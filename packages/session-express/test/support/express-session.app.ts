import {
  type DynamicModule,
  type INestApplication,
  Module,
  type ModuleMetadata,
  type Provider,
  type Type,
} from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { MapSessionModule, SessionModule, type SessionModuleOptions } from '@nest-session/core';
import { LogRecorder } from '@nest-session/test-infrastructure';
import { HttpAgent } from '@nest-session/testing';
import { ExpressSessionModule, type ExpressSessionModuleOptions } from '../../src/index.js';

export interface ExpressSessionAppOptions {
  /** @default 'express' */
  readonly platform?: 'express' | 'fastify';
  /** The options of Fastify. */
  readonly fastify?: ConstructorParameters<typeof FastifyAdapter>[0];
  readonly controllers?: Type[];
  readonly providers?: Provider[];
  readonly imports?: ModuleMetadata['imports'];
  readonly session?: SessionModuleOptions;
  readonly express?: ExpressSessionModuleOptions;
  /** The module of the store. @default MapSessionModule */
  readonly store?: DynamicModule;
  /** Runs between creating the application and listening, as code in main.ts does. */
  readonly configure?: ((app: INestApplication) => unknown) | undefined;
}

export interface ExpressSessionApp {
  readonly app: INestApplication;
  readonly log: LogRecorder;
  readonly origin: string;
  /** A new client without cookies. */
  agent(): HttpAgent;
}

@Module({})
class TestAppModule {}

/** Also records the lines that are neither warnings nor errors. */
class AllRecorder extends LogRecorder {
  override log(message?: unknown): void {
    this.lines.push(`log ${String(message)}`);
  }
}

const running: INestApplication[] = [];

/** Starts a real Nest application with ExpressSessionModule on a free port. */
export async function startApp(options: ExpressSessionAppOptions): Promise<ExpressSessionApp> {
  const log = new AllRecorder();
  const module: DynamicModule = {
    module: TestAppModule,
    imports: [
      SessionModule.forRoot(options.session),
      options.store ?? MapSessionModule.forRoot(),
      ExpressSessionModule.forRoot(options.express),
      ...(options.imports ?? []),
    ],
    controllers: options.controllers ?? [],
    providers: options.providers ?? [],
  };
  const adapter = options.platform === 'fastify' ? new FastifyAdapter(options.fastify) : new ExpressAdapter();
  const app = await NestFactory.create(module, adapter, { logger: log, abortOnError: false });
  await options.configure?.(app);
  await app.listen(0, '127.0.0.1');
  running.push(app);
  const origin = await app.getUrl();
  return { app, log, origin, agent: () => new HttpAgent(origin) };
}

/** Closes what `startApp()` has started; for `afterEach`. */
export async function closeApps(): Promise<void> {
  await Promise.all(running.splice(0).map((app) => app.close()));
}
