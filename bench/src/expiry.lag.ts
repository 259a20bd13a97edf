import { setTimeout as sleep } from 'node:timers/promises';
import { Injectable, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { OnSessionEvent, SessionExpiredEvent, SessionModule } from '@nest-session/core';
import { RedisSessionModule, type RedisSessionModuleOptions, RedisSessionRepository } from '@nest-session/redis';
import { RedisServer } from '@nest-session/testing';
import { Redis } from 'ioredis';
import { redisUsage } from './redis.usage.js';

/** How late the ends of sessions are handled, in milliseconds, and what a session costs its Redis, in microseconds. */
export interface ExpiryLag {
  readonly lags: readonly number[];
  readonly redisTime: number;
}

// Milliseconds from the beginning to the last creation.
const SPREAD = 10_000;
// Seconds.
const SHORTEST = 2;
const LONGEST = 6;

/**
 * Lets so many sessions end, spread over some seconds, in an application with these options, on a Redis of its own. Each
 * lag is the time from the end until a handler in the same application has the event.
 */
export async function expiryLag(options: RedisSessionModuleOptions, sessions: number): Promise<ExpiryLag> {
  const lags: number[] = [];
  @Injectable()
  class Handlers {
    @OnSessionEvent(SessionExpiredEvent)
    record({ session }: SessionExpiredEvent) {
      // The clocks of both processes are that of the machine. The timeout of an ended session is 0.
      lags.push(Date.now() - session.lastAccessedTime - session.getRequiredAttribute<number>('timeout') * 1000);
    }
  }
  const server = await RedisServer.start();
  const redis = new Redis(server.url);
  class Application {}
  Module({
    imports: [SessionModule.forRoot(), RedisSessionModule.forRoot({ url: server.url, ...options })],
    providers: [Handlers],
  })(Application);
  const application = await NestFactory.createApplicationContext(Application, { logger: ['error'] });
  try {
    // Until everything has connected.
    await sleep(1000);
    const before = await redisUsage(redis);
    const repository = application.get(RedisSessionRepository, { strict: false });
    for (let i = 0; i < sessions; i++) {
      const session = repository.createSession();
      session.maxInactiveInterval = SHORTEST + (i % (LONGEST - SHORTEST + 1));
      session.setAttribute('timeout', session.maxInactiveInterval);
      await session.save();
      await sleep((Math.random() * 2 * SPREAD) / sessions);
    }
    while (lags.length < sessions) await sleep(100);
    const { processorTime } = await redisUsage(redis);
    return { lags, redisTime: (processorTime - before.processorTime) / sessions };
  } finally {
    await application.close();
    redis.disconnect();
    await server.stop();
  }
}
