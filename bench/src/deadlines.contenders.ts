import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { deadline, type DeadlineEvent, DeadlineModule, Deadlines, OnDeadline } from '@nest-session/deadlines';
import { RedisDeadlineModule } from '@nest-session/deadlines/redis';
import { Queue, Worker } from 'bullmq';

/** What is done later under a key, by one way to do so. */
export interface DeadlineContender {
  schedule(key: string, wait: number, data: object): Promise<unknown>;
  cancel(key: string): Promise<unknown>;
  /** Schedules many at once. */
  fill(keys: readonly string[], wait: number, data: object): Promise<unknown>;
  onHandled(listener: (key: string) => void): void;
  stop(): Promise<unknown>;
}

export type StartContender = (url: string) => Promise<DeadlineContender>;

const CONCURRENCY = 100;
/** More than the default, with which a million is the most. */
const MOST = 10_000_000;

const paymentDue = deadline<object>('payment-due');

@Module({})
class DeadlinesModule {}

async function startDeadlines(url: string, partitions: number): Promise<DeadlineContender> {
  let tell: (key: string) => void = () => undefined;
  class Handler {
    @OnDeadline(paymentDue)
    handle({ key }: DeadlineEvent<typeof paymentDue>): void {
      tell(key);
    }
  }
  const store = RedisDeadlineModule.forRoot({ url, partitions, events: { concurrency: CONCURRENCY } });
  const module = {
    module: DeadlinesModule,
    imports: [DeadlineModule.forRoot({ maxScheduled: MOST }), store],
    providers: [Handler],
  };
  const app = await NestFactory.createApplicationContext(module, { logger: ['error', 'warn'] });
  const deadlines = app.get(Deadlines);
  return {
    schedule: (key, wait, data) => deadlines.schedule(paymentDue, key, { in: `${Math.max(0, wait)}ms`, data }),
    cancel: (key) => deadlines.cancel(paymentDue, key),
    fill: (keys, wait, data) => {
      const all = keys.map((key, i) => ({ key, in: `${wait + i}ms` as const, data }));
      return deadlines.scheduleMany(paymentDue, all);
    },
    onHandled: (listener) => (tell = listener),
    stop: () => app.close(),
  };
}

/** Delayed jobs whose id is the key; a job is removed to cancel it. */
async function startBullMq(url: string): Promise<DeadlineContender> {
  let tell: (key: string) => void = () => undefined;
  const connection = { host: '127.0.0.1', port: Number(new URL(url).port) };
  const queue = new Queue('payment-due', { connection, defaultJobOptions: { removeOnComplete: true } });
  const worker = new Worker('payment-due', (job) => Promise.resolve(tell(job.id!)), {
    connection: { ...connection, maxRetriesPerRequest: null },
    concurrency: CONCURRENCY,
  });
  await Promise.all([queue.waitUntilReady(), worker.waitUntilReady()]);
  return {
    schedule: (jobId, wait, data) => queue.add('due', data, { jobId, delay: Math.max(0, wait) }),
    cancel: (key) => queue.remove(key),
    fill: (keys, wait, data) =>
      queue.addBulk(keys.map((jobId, i) => ({ name: 'due', data, opts: { jobId, delay: wait + i } }))),
    onHandled: (listener) => (tell = listener),
    stop: async () => {
      await worker.close();
      await queue.close();
    },
  };
}

export const CONTENDERS: Readonly<Record<string, StartContender>> = {
  BullMQ: startBullMq,
  deadlines: (url) => startDeadlines(url, 1),
  'deadlines, 4 partitions': (url) => startDeadlines(url, 4),
};
