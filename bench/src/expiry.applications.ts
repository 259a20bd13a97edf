import { Injectable, Module } from '@nestjs/common';
import { type INestApplication } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { OnSessionEvent, SessionExpiredEvent, SessionModule } from '@nest-session/core';
import { RedisSessionModule } from '@nest-session/redis';

@Injectable()
class ExpiryHandler {
  @OnSessionEvent(SessionExpiredEvent)
  handle(event: SessionExpiredEvent): void {
    if (event.dataLost) throw new Error('An expiry came without its data');
  }
}

@Module({})
class ExpiryModule {}

/** Called by server.main.ts: an application that handles every expiry. */
export function createApplication(url: string): Promise<INestApplication> {
  const imports = [SessionModule.forRoot(), RedisSessionModule.forRoot({ url })];
  const module = { module: ExpiryModule, imports, providers: [ExpiryHandler] };
  return NestFactory.create(module, new ExpressAdapter(), { logger: ['error', 'warn'] });
}
