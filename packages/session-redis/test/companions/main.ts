// The program of a CompanionProcess.
import 'reflect-metadata';
import type { ModuleMetadata } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { SessionModule, type SessionModuleOptions } from '@nest-session/core';
import { RedisSessionModule } from '@nest-session/redis';

/** What a companion adds to an application. */
export interface Companion extends Pick<ModuleMetadata, 'imports' | 'controllers' | 'providers'> {
  readonly session?: SessionModuleOptions;
  /** In the place of main.ts. */
  readonly configure?: (nest: never) => void;
}

const { COMPANION, ADAPTER, REDIS_URL } = process.env;
const { companion } = (await import(`./${COMPANION}.companion.js`)) as { companion: Companion };
const { session, imports = [], configure, ...metadata } = companion;

class AppModule {}
const store = RedisSessionModule.forRoot({ url: REDIS_URL, notifications: 'off', commandTimeout: '30s' });
const root = { module: AppModule, imports: [SessionModule.forRoot(session), store, ...imports], ...metadata };
const adapter = ADAPTER === 'fastify' ? new FastifyAdapter() : new ExpressAdapter();
const app = await NestFactory.create(root, adapter, { logger: ['error', 'warn'] });
configure?.(app as never);
await app.listen(0, '127.0.0.1');
process.stdout.write(`listening on ${await app.getUrl()}\n`);
