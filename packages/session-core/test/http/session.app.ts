import { type DynamicModule, type INestApplication, Module, type Provider, type Type } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { NestExpressApplication } from '@nestjs/platform-express';
import { HttpAgent } from '@nest-session/testing';
import { SessionModule, type SessionModuleOptions, SessionRepository } from '../../src/index.js';
import { GatedRepository } from './gated.repository.js';
import { LogRecorder } from './log.recorder.js';

export interface SessionAppOptions {
  readonly controllers?: Type[];
  readonly providers?: Provider[];
  readonly session?: SessionModuleOptions;
  readonly store?: GatedRepository;
  /** What main.ts does between creating the application and listening. */
  readonly configure?: (app: NestExpressApplication) => void;
}

export interface SessionApp {
  readonly app: INestApplication;
  readonly store: GatedRepository;
  readonly log: LogRecorder;
  readonly origin: string;
  /** A new client without cookies. */
  agent(): HttpAgent;
}

@Module({})
class TestStoreModule {
  static of(store: GatedRepository): DynamicModule {
    const provider = { provide: SessionRepository, useValue: store };
    return { module: TestStoreModule, global: true, providers: [provider], exports: [SessionRepository] };
  }
}

@Module({})
class TestAppModule {}

const running: INestApplication[] = [];

/** A real Nest application on Express that listens on a free port, with a store that the test has in its hand. */
export async function startApp(options: SessionAppOptions): Promise<SessionApp> {
  const store = options.store ?? new GatedRepository();
  const log = new LogRecorder();
  const module: DynamicModule = {
    module: TestAppModule,
    imports: [SessionModule.forRoot(options.session), TestStoreModule.of(store)],
    controllers: options.controllers ?? [],
    providers: options.providers ?? [],
  };
  const app = await NestFactory.create<NestExpressApplication>(module, { logger: log, abortOnError: false });
  options.configure?.(app);
  await app.listen(0, '127.0.0.1');
  running.push(app);
  const origin = await app.getUrl();
  return { app, store, log, origin, agent: () => new HttpAgent(origin) };
}

/** Closes what `startApp()` has started; for `afterEach`. */
export async function closeApps(): Promise<void> {
  await Promise.all(running.splice(0).map((app) => app.close()));
}
