// An application without HTTP that handles session events, in a process that a test can kill. It runs the built
// packages. It prints a line for each event.
import { createInterface } from 'node:readline';
import 'reflect-metadata';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { OnSessionEvent, SessionEvent, SessionModule } from '@nest-session/core';
import { RedisSessionModule, SessionExpirationSweeper } from '@nest-session/redis';

class Handlers {
  async handle(event) {
    if (event.type === 'created') return;
    process.stdout.write(`handling ${event.id} ${JSON.stringify(event.session.getAttribute('cart'))}\n`);
    if (process.env.HANG) await new Promise(() => setInterval(() => undefined, 1000));
    process.stdout.write(`handled ${event.id}\n`);
  }
}
OnSessionEvent(SessionEvent)(
  Handlers.prototype,
  'handle',
  Object.getOwnPropertyDescriptor(Handlers.prototype, 'handle'),
);

/** Of the module whose URL is `TIMER`: it may be that of another package. */
const { timer } = process.env.TIMER ? await import(process.env.TIMER) : {};

class WorkerModule {}
Module({
  imports: [
    SessionModule.forRoot(),
    RedisSessionModule.forRoot({
      url: process.env.REDIS_URL,
      notifications: process.env.NOTIFICATIONS,
      expirations: timer ?? process.env.EXPIRATIONS,
      grace: process.env.GRACE,
      partitions: Number(process.env.PARTITIONS ?? 1),
      cleanup: { cron: process.env.CRON },
      events: { lease: process.env.LEASE ?? '1s' },
    }),
  ],
  providers: [Handlers],
})(WorkerModule);

const app = await NestFactory.createApplicationContext(WorkerModule, { logger: ['error'] });

// `sweep`: sweeps all buckets now, with those of the coming minute, and prints the result.
async function sweep() {
  const found = await app.get(SessionExpirationSweeper, { strict: false }).runOnce({ ahead: 60_000 });
  process.stdout.write(`swept ${JSON.stringify(found)}\n`);
}
createInterface({ input: process.stdin }).on('line', () => void sweep());
process.stdout.write('ready\n');
