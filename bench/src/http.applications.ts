import fastifyCookie from '@fastify/cookie';
import fastifySession from '@fastify/session';
import { type DynamicModule, type INestApplication, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify';
import { SessionModule } from '@nest-session/core';
import { RedisSessionModule } from '@nest-session/redis';
import { RedisStore as RedisStore8 } from 'connect-redis-8';
import expressSession, { type Store } from 'express-session';
import { Redis } from 'ioredis';
import { createClient } from 'redis';
import {
  BagController,
  ByHandController,
  PlainController,
  SessionController,
  SpringController,
} from './http.controllers.js';
import { SpringSessions } from './spring-sessions.js';

@Module({})
class BenchModule {}

// As long as ours, in seconds.
const TTL = 1800;
const SECRET = 'a secret for benchmarks that is long enough';

/** The application of a contender, which keeps its sessions in the Redis of `url`. */
type Create = (url: string) => Promise<INestApplication>;

const CONTENDERS: Record<string, Create> = {
  'Nest on Express': () => onExpress({}),
  'Redis by hand on Express': (url) => onExpress(byHand(url)),
  'nest-session on Express': (url) => onExpress(ours(url)),
  'express-session + connect-redis 10 (node-redis)': async (url) => {
    // Its syntax is that of Node 22.
    const { RedisStore } = await import('connect-redis-10');
    const client = await createClient({ url }).connect();
    return withExpressSession(new RedisStore({ client, prefix: 'cr10:', ttl: TTL }));
  },
  'express-session + connect-redis 8 (ioredis)': (url) => withExpressSession(connectRedis8(url, 'cr8:')),
  "Spring Session's commands": (url) => {
    const sessions = { provide: SpringSessions, useValue: new SpringSessions(new Redis(url)) };
    return onExpress({ controllers: [PlainController, SpringController], providers: [sessions] });
  },
  'Nest on Fastify': () => onFastify({}),
  'Redis by hand on Fastify': (url) => onFastify(byHand(url)),
  'nest-session on Fastify': (url) => onFastify(ours(url)),
  '@fastify/session + connect-redis 8': (url) => withFastifySession(connectRedis8(url, 'fs:'), true),
  '@fastify/session + connect-redis 8, not rolling': (url) => withFastifySession(connectRedis8(url, 'fn:'), false),
};

/** Called by server.main.ts. */
export async function createApplication(contender: string, url: string): Promise<INestApplication> {
  const create = CONTENDERS[contender];
  if (!create) throw new Error(`There is no contender ${JSON.stringify(contender)}`);
  return create(url);
}

/** With the batches of ioredis, as a careful application would have them. */
function byHand(url: string): Partial<DynamicModule> {
  return {
    controllers: [PlainController, ByHandController],
    providers: [{ provide: Redis, useValue: new Redis(url, { enableAutoPipelining: true }) }],
  };
}

function ours(url: string): Partial<DynamicModule> {
  return {
    imports: [SessionModule.forRoot(), RedisSessionModule.forRoot({ url })],
    controllers: [PlainController, SessionController],
  };
}

async function withExpressSession(store: Store): Promise<INestApplication> {
  const app = await onExpress({ controllers: [PlainController, BagController] });
  const cookie = { httpOnly: true, sameSite: 'lax' } as const;
  app.use(expressSession({ store, secret: SECRET, resave: false, saveUninitialized: false, cookie }));
  return app;
}

async function withFastifySession(store: Store, rolling: boolean): Promise<INestApplication> {
  const app = await onFastify({ controllers: [PlainController, BagController] });
  const cookie = { httpOnly: true, sameSite: 'lax', secure: false } as const;
  await app.register(fastifyCookie);
  await app.register(fastifySession, { store, secret: SECRET, rolling, saveUninitialized: false, cookie });
  return app;
}

function connectRedis8(url: string, prefix: string): Store {
  return new RedisStore8({ client: new Redis(url), prefix, ttl: TTL });
}

function onExpress(module: Partial<DynamicModule>): Promise<INestApplication> {
  return NestFactory.create(moduleOf(module), new ExpressAdapter(), { logger: ['error'] });
}

function onFastify(module: Partial<DynamicModule>): Promise<NestFastifyApplication> {
  return NestFactory.create<NestFastifyApplication>(moduleOf(module), new FastifyAdapter(), { logger: ['error'] });
}

function moduleOf(module: Partial<DynamicModule>): DynamicModule {
  return { module: BenchModule, controllers: [PlainController], ...module };
}
