import { type INestApplication, Injectable, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { OnSessionEvent, SessionExpiredEvent, SessionModule } from '@nest-session/core';
import { RedisSessionModule, type RedisSessionModuleOptions } from '@nest-session/redis';

const NEVER = '0 0 0 29 2 *';

/** The ways to notice that a session has expired. */
export const WAYS: Readonly<Record<string, RedisSessionModuleOptions>> = {
  'key events only': { notifications: 'auto', cleanup: { cron: NEVER } },
  buckets: { notifications: 'off' },
  'sorted set': { notifications: 'off', expirations: 'sorted-set' },
};

@Injectable()
class ExpiryHandler {
  @OnSessionEvent(SessionExpiredEvent)
  handle(): void {}
}

@Module({})
class ExpirationsModule {}

/** Called by server.main.ts: an application that notices expiries in one of the ways, and handles them. */
export function createApplication(url: string, way: string): Promise<INestApplication> {
  const imports = [SessionModule.forRoot(), RedisSessionModule.forRoot({ url, ...WAYS[way] })];
  const module = { module: ExpirationsModule, imports, providers: [ExpiryHandler] };
  return NestFactory.create(module, new ExpressAdapter(), { logger: ['error', 'warn'] });
}
