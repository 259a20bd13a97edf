// An application that handles events, in a process that a test can kill. It runs the built packages.
import 'reflect-metadata';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { OnRedisEvent, RedisEventsModule } from '@nest-session/redis-events';
import { Redis } from 'ioredis';

const { REDIS_URL, PARTITIONS = '1' } = process.env;
const effects = new Redis(REDIS_URL, { db: 1 });
// One step: the process may be killed at any moment.
const EFFECT = `redis.call('INCR', 'calls')
  if redis.call('SET', KEYS[1], ARGV[1], 'NX') then redis.call('INCR', KEYS[2]) end`;

class Handler {
  async handle({ id, data }) {
    await new Promise((resolve) => setTimeout(resolve, Math.random() * 20));
    await effects.eval(EFFECT, 2, `effect:${id}`, `count:${data.order}`, id);
  }
}
OnRedisEvent('paid')(Handler.prototype, 'handle', Object.getOwnPropertyDescriptor(Handler.prototype, 'handle'));

class WorkerModule {}
Module({
  imports: [
    RedisEventsModule.forRoot({
      url: REDIS_URL,
      partitions: Number(PARTITIONS),
      commandTimeout: '30s',
      events: { lease: '2s', concurrency: 50 },
    }),
  ],
  providers: [Handler],
})(WorkerModule);

await NestFactory.createApplicationContext(WorkerModule, { logger: ['error'] });
process.stdout.write('ready\n');
