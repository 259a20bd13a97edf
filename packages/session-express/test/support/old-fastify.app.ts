import { type INestApplication, Module, type Type } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify';
import fastifyCookie from '@fastify/cookie';
import fastifySession, { type FastifySessionOptions } from '@fastify/session';
import { HttpAgent, type RedisServer } from '@nest-session/testing';
import { RedisStore } from 'connect-redis-8';
import { Redis } from 'ioredis';

export const FASTIFY_SECRET = 'a secret of @fastify/session, of 32 characters';

@Module({})
class OldFastifyAppModule {}

/** A Nest application with @fastify/session and connect-redis 8, as it was before the migration. */
export class OldFastifyApp {
  private constructor(
    private readonly app: INestApplication,
    private readonly client: Redis,
    private readonly origin: string,
  ) {}

  static async start(
    server: RedisServer,
    controllers: Type[],
    options: Partial<FastifySessionOptions> = {},
  ): Promise<OldFastifyApp> {
    const client = new Redis(server.port, '127.0.0.1');
    const module = { module: OldFastifyAppModule, controllers };
    const app = await NestFactory.create<NestFastifyApplication>(module, new FastifyAdapter(), { logger: false });
    await app.register(fastifyCookie);
    const store = new RedisStore({ client });
    await app.register(fastifySession, { store, secret: FASTIFY_SECRET, cookie: { secure: false }, ...options });
    await app.listen(0, '127.0.0.1');
    return new OldFastifyApp(app, client, await app.getUrl());
  }

  agent(): HttpAgent {
    return new HttpAgent(this.origin);
  }

  async stop(): Promise<void> {
    await this.app.close();
    await this.client.quit();
  }
}
