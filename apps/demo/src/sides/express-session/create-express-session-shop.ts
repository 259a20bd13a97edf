import type { IncomingMessage, ServerResponse } from 'node:http';
import { type DynamicModule, Module, type NestApplicationOptions } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ExpressAdapter, type NestExpressApplication } from '@nestjs/platform-express';
import { WsAdapter } from '@nestjs/platform-ws';
import { RedisStore } from 'connect-redis-8';
import session from 'express-session';
import type { RequestHandler } from 'express';
import type { Redis } from 'ioredis';
import { HostMiddleware } from '../../http/host.middleware.js';
import { AbandonedCarts } from './abandoned-carts.js';
import { ExpressSessionEnds } from './express-session.ends.js';
import { ExpressSessionGateway, MIDDLEWARE } from './express-session.gateway.js';
import { ExpressSessionSide } from './express-session.side.js';
import { connect, CONNECTION, PREFIX } from './redis.connection.js';
import { UnpaidOrders } from './unpaid-orders.js';

const SECONDS_UNUSED = 1800;
// Not a secret: the sessions of this shop protect nothing.
const SECRET = 'of the demo';

/** The shop of the left side. */
@Module({})
class ExpressSessionModule {
  static on(connection: Redis, middleware: RequestHandler): DynamicModule {
    return {
      module: ExpressSessionModule,
      controllers: [ExpressSessionSide, ExpressSessionEnds],
      providers: [
        AbandonedCarts,
        ExpressSessionGateway,
        UnpaidOrders,
        { provide: CONNECTION, useValue: connection },
        { provide: MIDDLEWARE, useValue: middleware },
      ],
    };
  }
}

/** A shop as many have it, ready to listen: express-session and connect-redis, with the options that both recommend. */
export async function createExpressSessionShop(options: NestApplicationOptions = {}): Promise<NestExpressApplication> {
  const connection = connect();
  const adapter = new ExpressAdapter();
  const hosts = new HostMiddleware();
  adapter.use((request: IncomingMessage, response: ServerResponse, next: () => void) =>
    hosts.use(request, response, next),
  );
  const store = new RedisStore({ client: connection, prefix: PREFIX, ttl: SECONDS_UNUSED });
  const middleware = session({ store, secret: SECRET, resave: false, saveUninitialized: false });
  const module = ExpressSessionModule.on(connection, middleware);
  const app = await NestFactory.create<NestExpressApplication>(module, adapter, options);
  app.enableShutdownHooks();
  app.use(middleware);
  app.useWebSocketAdapter(new WsAdapter(app));
  return app;
}
