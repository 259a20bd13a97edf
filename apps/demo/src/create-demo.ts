import { fileURLToPath } from 'node:url';
import type { NestApplicationOptions } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { NestExpressApplication } from '@nestjs/platform-express';
import { AppModule } from './app.module.js';

// Beside src and dist, so that the page is found from both.
const PAGE = fileURLToPath(new URL('../public/', import.meta.url));

/** The demo, ready to listen. */
export async function createDemo(options: NestApplicationOptions = {}): Promise<NestExpressApplication> {
  const app = await NestFactory.create<NestExpressApplication>(AppModule, options);
  // Without them SIGTERM and Ctrl-C would cut off requests and event handlers that are running.
  app.enableShutdownHooks();
  app.useStaticAssets(PAGE);
  return app;
}
