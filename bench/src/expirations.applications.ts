import { type INestApplication, Injectable, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { OnSessionEvent, SessionExpiredEvent, SessionModule } from '@nest-session/core';
import { RedisSessionModule, type RedisSessionModuleOptions } from '@nest-session/redis';
import { BeanstalkdSessionTimer } from '@nest-session/timers/beanstalkd';
import { BullMqSessionTimer } from '@nest-session/timers/bullmq';

const NEVER = '0 0 0 29 2 *';

/** A way to notice that a session has expired. */
interface Way {
  /** The server of its timer. */
  readonly timer?: 'beanstalkd' | 'redis';
  /** The options of an application, given the port of that server. */
  options(port: number): RedisSessionModuleOptions;
}

const onlyBy = (expirations: RedisSessionModuleOptions['expirations']): RedisSessionModuleOptions => ({
  notifications: 'off',
  cleanup: { cron: NEVER },
  ...(expirations && { expirations }),
});

export const WAYS: Readonly<Record<string, Way>> = {
  'key events only': { options: () => ({ ...onlyBy(undefined), notifications: 'auto' }) },
  buckets: { options: () => ({ notifications: 'off' }) },
  'sorted set': { options: () => ({ notifications: 'off', expirations: 'sorted-set' }) },
  beanstalkd: {
    timer: 'beanstalkd',
    options: (port) => onlyBy(new BeanstalkdSessionTimer({ host: '127.0.0.1', port })),
  },
  BullMQ: {
    timer: 'redis',
    options: (port) => onlyBy(new BullMqSessionTimer({ connection: { host: '127.0.0.1', port } })),
  },
};

@Injectable()
class ExpiryHandler {
  @OnSessionEvent(SessionExpiredEvent)
  handle(): void {}
}

@Module({})
class ExpirationsModule {}

/** Called by server.main.ts: an application that notices expiries in one of the ways, and handles them. */
export function createApplication(url: string, way: string, port: string): Promise<INestApplication> {
  const options = WAYS[way]!.options(Number(port));
  const imports = [SessionModule.forRoot(), RedisSessionModule.forRoot({ url, ...options })];
  const module = { module: ExpirationsModule, imports, providers: [ExpiryHandler] };
  return NestFactory.create(module, new ExpressAdapter(), { logger: ['error', 'warn'] });
}
