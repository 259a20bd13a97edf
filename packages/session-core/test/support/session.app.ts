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
import { LogRecorder } from '@nest-session/test-infrastructure';
import { HttpAgent } from '@nest-session/testing';
import {
  type IndexedSessionRepository,
  SessionModule,
  type SessionModuleOptions,
  SessionRepository,
} from '../../src/index.js';
import { GatedRepository, type GatedStore, putGates } from './gated.repository.js';

type Platform = 'express' | 'fastify';

export interface SessionAppOptions {
  /** A platform, or an adapter with options of its own. @default express */
  readonly platform?: Platform | ExpressAdapter | FastifyAdapter;
  /** The `trust proxy` setting of the platform. */
  readonly trustProxy?: string;
  readonly controllers?: Type[];
  readonly providers?: Provider[];
  readonly imports?: ModuleMetadata['imports'];
  readonly session?: SessionModuleOptions;
  readonly store?: GatedRepository;
  /** A module with another store, which gets gates, in the place of `store`. */
  readonly storeModule?: DynamicModule;
  /** Runs between creating the application and listening, as code in main.ts does. */
  readonly configure?: (app: INestApplication) => unknown;
}

export interface SessionApp {
  readonly app: INestApplication;
  readonly store: GatedStore;
  readonly log: LogRecorder;
  readonly origin: string;
  /** A new client without cookies; in strict mode it acts as if over https. */
  agent(): HttpAgent;
}

@Module({})
export class TestStoreModule {
  static of(store: SessionRepository): DynamicModule {
    const provider = { provide: SessionRepository, useValue: store };
    return { module: TestStoreModule, global: true, providers: [provider], exports: [SessionRepository] };
  }
}

@Module({})
class TestAppModule {}

const running: INestApplication[] = [];

/** Starts a real Nest application on a free port, with a store that the test controls. */
export async function startApp(options: SessionAppOptions): Promise<SessionApp> {
  const { store: given = new GatedRepository(), storeModule = TestStoreModule.of(given) } = options;
  const log = new LogRecorder();
  const module: DynamicModule = {
    module: TestAppModule,
    imports: [SessionModule.forRoot(options.session), storeModule, ...(options.imports ?? [])],
    controllers: options.controllers ?? [],
    providers: options.providers ?? [],
  };
  const app = await NestFactory.create(module, adapterOf(options), { logger: log, abortOnError: false });
  const store = options.storeModule ? putGates(app.get<IndexedSessionRepository>(SessionRepository)) : given;
  await options.configure?.(app);
  await app.listen(0, '127.0.0.1');
  running.push(app);
  const origin = await app.getUrl();
  const secure = options.session?.security === 'strict';
  return { app, store, log, origin, agent: () => new HttpAgent(origin, { secure }) };
}

function adapterOf({ platform, trustProxy }: SessionAppOptions): ExpressAdapter | FastifyAdapter {
  if (typeof platform === 'object') return platform;
  if (platform === 'fastify') return new FastifyAdapter(trustProxy === undefined ? {} : { trustProxy });
  const adapter = new ExpressAdapter();
  if (trustProxy !== undefined) adapter.set('trust proxy', trustProxy);
  return adapter;
}

/** Closes what `startApp()` has started; for `afterEach`. */
export async function closeApps(): Promise<void> {
  await Promise.all(running.splice(0).map((app) => app.close()));
}
