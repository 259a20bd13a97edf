// An application that handles deadlines, in a process that a test can kill. It runs the built packages. It prints a
// line for each deadline, and takes commands as lines of JSON.
import { createInterface } from 'node:readline';
import 'reflect-metadata';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { deadline, DeadlineModule, Deadlines, OnDeadline } from '@nest-session/deadlines';
import { RedisDeadlineModule } from '@nest-session/deadlines/redis';
import { Redis } from 'ioredis';
import { play } from './deadline-player.mjs';

const { REDIS_URL, PARTITIONS = '1', LEASE = '1h', TIMEOUT = '30s', EFFECTS, SLOW = '0' } = process.env;
const race = deadline('race');
const effects = EFFECTS === undefined ? undefined : new Redis(REDIS_URL, { db: 1 });
// One step: the process may be killed at any moment.
const EFFECT = `redis.call('INCR', KEYS[3])
  if redis.call('SET', KEYS[1], ARGV[1], 'NX') then redis.call('INCR', KEYS[2]) end`;
const say = (word, value) => process.stdout.write(`${word} ${JSON.stringify(value)}\n`);

class Handler {
  /** With `EFFECTS`, the effect of a deadline is counted once, however often it is handled. */
  async handle({ id, key, data, dueAt, at, attempt }) {
    if (!effects) return say('heard', { id, key, data, dueAt, at });
    if (SLOW > 0) await new Promise((resolve) => setTimeout(resolve, Math.random() * SLOW));
    const text = JSON.stringify({ key, data, dueAt, at, attempt });
    await effects.eval(EFFECT, 3, `effect:${id}`, `count:${key}`, 'calls', text);
  }
}
OnDeadline(race)(Handler.prototype, 'handle', Object.getOwnPropertyDescriptor(Handler.prototype, 'handle'));

class WorkerModule {}
Module({
  imports: [
    DeadlineModule.forRoot(),
    RedisDeadlineModule.forRoot({
      url: REDIS_URL,
      partitions: Number(PARTITIONS),
      commandTimeout: TIMEOUT,
      events: { lease: LEASE, concurrency: 50 },
    }),
  ],
  providers: [Handler],
})(WorkerModule);

const app = await NestFactory.createApplicationContext(WorkerModule, { logger: ['error'] });
createInterface({ input: process.stdin }).on('line', (line) => {
  void play(app.get(Deadlines), race, JSON.parse(line)).then((played) => say('played', played));
});
process.stdout.write('ready\n');
