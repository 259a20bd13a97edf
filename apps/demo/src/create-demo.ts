import type { IncomingMessage, ServerResponse } from 'node:http';
import { isIP } from 'node:net';
import { fileURLToPath } from 'node:url';
import type { NestApplicationOptions } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ExpressAdapter, type NestExpressApplication } from '@nestjs/platform-express';
import { WsAdapter } from '@nestjs/platform-ws';
import { AppModule } from './app.module.js';
import { measureRequest } from './engine-room/request-costs.js';
import { LISTEN_ADDRESS } from './http/address.js';
import { HostMiddleware } from './http/host.middleware.js';
import { SECURITY_HEADERS } from './http/security-headers.js';

// Beside src and dist, so that the page is found from both.
const PAGE = fileURLToPath(new URL('../public/', import.meta.url));

/** The demo, ready to listen. */
export async function createDemo(options: NestApplicationOptions = {}): Promise<NestExpressApplication> {
  const app = await NestFactory.create<NestExpressApplication>(AppModule, guardedAdapter(), options);
  // Without them SIGTERM and Ctrl-C would cut off requests and event handlers that are running.
  app.enableShutdownHooks();
  // Who connects from this machine may say that TLS ends there.
  app.set('trust proxy', ['loopback', ...(isIP(LISTEN_ADDRESS) ? [LISTEN_ADDRESS] : [])]);
  app.useStaticAssets(PAGE);
  app.useWebSocketAdapter(new WsAdapter(app));
  return app;
}

/** Middleware that the adapter has before Nest gets it runs first, so no session is loaded for a refused request. */
function guardedAdapter(): ExpressAdapter {
  const adapter = new ExpressAdapter();
  const hosts = new HostMiddleware();
  adapter.use((request: IncomingMessage, response: ServerResponse, next: () => void) => {
    response.setHeaders(SECURITY_HEADERS);
    hosts.use(request, response, next);
  });
  adapter.use(measureRequest);
  return adapter;
}
