// An application that keeps changing sessions and deadlines at random, in a process that a test can kill. It runs the
// built packages. Some of its handlers fail.
import { setTimeout as pause } from 'node:timers/promises';
import 'reflect-metadata';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import {
  IndexedSessionRepository,
  OnSessionEvent,
  SessionCreatedEvent,
  SessionDestroyedEvent,
  SessionModule,
  Sessions,
} from '@nest-session/core';
import { deadline, DeadlineModule, Deadlines, OnDeadline } from '@nest-session/deadlines';
import { RedisSessionModule } from '@nest-session/redis';
import { RedisDeadlineModule } from '@nest-session/deadlines/redis';

const { REDIS_URL, PARTITIONS = '1', EXPIRATIONS = 'buckets' } = process.env;
const order = deadline('order');
const partitions = Number(PARTITIONS);
const events = { attempts: 2, lease: '2s', retention: '20m' };

const random = (most) => Math.floor(Math.random() * most);
const chance = (probability) => Math.random() < probability;

class Handlers {
  handle() {
    if (chance(0.02)) throw new Error('on purpose');
  }
}
const handle = Object.getOwnPropertyDescriptor(Handlers.prototype, 'handle');
for (const decorate of [
  OnSessionEvent(SessionCreatedEvent),
  OnSessionEvent(SessionDestroyedEvent),
  OnDeadline(order),
]) {
  decorate(Handlers.prototype, 'handle', handle);
}

class WorkerModule {}
Module({
  imports: [
    SessionModule.forRoot({ timeout: '10m', maxSessions: { perPrincipal: 20 } }),
    RedisSessionModule.forRoot({
      url: REDIS_URL,
      partitions,
      expirations: EXPIRATIONS,
      events,
      cleanup: { cron: '* * * * * *' },
    }),
    DeadlineModule,
    RedisDeadlineModule.forRoot({ partitions, events }),
  ],
  providers: [Handlers],
})(WorkerModule);

const app = await NestFactory.createApplicationContext(WorkerModule, { logger: false });
const repository = app.get(IndexedSessionRepository);
const sessions = app.get(Sessions);
const deadlines = app.get(Deadlines);
const known = [];
const one = () => known[random(known.length)] ?? '';

const STEPS = [
  async () => {
    const session = repository.createSession();
    session.setAttribute('cart', ['apple']);
    session.maxInactiveInterval = [60, 300, 1800][random(3)];
    if (chance(0.6)) session.signIn(`user-${random(30)}`);
    await repository.save(session);
    known.push(session.id);
    if (known.length > 2000) known.shift();
  },
  async () => {
    const session = await repository.findById(one());
    if (!session) return;
    session.setAttribute('cart', ['apple', random(100)]);
    if (chance(0.1)) session.maxInactiveInterval = 120;
    if (chance(0.2)) session.changeSessionId();
    if (chance(0.2)) session.signIn(`user-${random(30)}`);
    await repository.save(session);
    known.push(session.id);
  },
  () => repository.deleteById(one()),
  async () => chance(0.02) && sessions.endAll(`user-${random(30)}`),
  () => deadlines.schedule(order, `order-${random(3000)}`, { in: `${1 + random(1200)}s` }),
  () => deadlines.cancel(order, `order-${random(3000)}`),
  () => deadlines.reschedule(order, `order-${random(3000)}`, { in: `${1 + random(1200)}s` }),
];

async function work() {
  for (;;) {
    // While Redis is away.
    await Promise.resolve(STEPS[random(STEPS.length)]()).catch(() => pause(100));
    await pause(2);
  }
}
for (let i = 0; i < 8; i++) void work();
process.stdout.write('ready\n');
