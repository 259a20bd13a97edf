import { type INestApplication, Module, type Type } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { HttpAgent, type RedisServer } from '@nest-session/testing';
import { RedisStore as RedisStore10 } from 'connect-redis-10';
import { RedisStore as RedisStore8 } from 'connect-redis-8';
import { RedisStore as RedisStore9 } from 'connect-redis-9';
import session, { type SessionOptions, type Store } from 'express-session';
import { Redis } from 'ioredis';
import { createClient } from 'redis';

export const SECRET = 'a secret of express-session';

/** The stores that wrote the sessions that applications have. */
export const STORES = {
  'connect-redis 8 with ioredis': RedisStore8,
  'connect-redis 8 with node-redis': RedisStore8,
  'connect-redis 9': RedisStore9,
  'connect-redis 10': RedisStore10,
} as const;

export type StoreName = keyof typeof STORES;

@Module({})
class OldAppModule {}

/** A Nest application with express-session and connect-redis, as it was before the migration. */
export class OldApp {
  private constructor(
    private readonly app: INestApplication,
    private readonly closeClient: () => Promise<unknown>,
    readonly origin: string,
  ) {}

  static async start(
    server: RedisServer,
    name: StoreName,
    controllers: Type[],
    configure: (app: INestApplication) => unknown,
    options: Partial<SessionOptions> = {},
  ): Promise<OldApp> {
    const { client, close } = await connect(server, name);
    const Store = STORES[name] as unknown as new (options: object) => Store;
    const app = await NestFactory.create({ module: OldAppModule, controllers }, new ExpressAdapter(), {
      logger: false,
    });
    app.use(
      session({ store: new Store({ client }), secret: SECRET, resave: false, saveUninitialized: false, ...options }),
    );
    await configure(app);
    await app.listen(0, '127.0.0.1');
    return new OldApp(app, close, await app.getUrl());
  }

  agent(): HttpAgent {
    return new HttpAgent(this.origin);
  }

  async stop(): Promise<void> {
    await this.app.close();
    await this.closeClient();
  }
}

async function connect(server: RedisServer, name: StoreName) {
  if (name.endsWith('ioredis')) {
    const client = new Redis(server.port, '127.0.0.1');
    return { client, close: () => client.quit() };
  }
  const client = await createClient({ url: server.url }).connect();
  return { client, close: () => client.close() };
}
