// An instance of an application that does what a test tells it to sessions and deadlines, and counts what its handlers
// hear. It runs the packages that stand beside it, so a copy of it runs another version.
import { createInterface } from 'node:readline';
import 'reflect-metadata';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { IndexedSessionRepository, OnSessionEvent, SessionEvent, SessionModule } from '@nest-session/core';
import { deadline, DeadlineModule, Deadlines, OnDeadline } from '@nest-session/deadlines';
import { RedisSessionModule } from '@nest-session/redis';
import { RedisDeadlineModule } from '@nest-session/deadlines/redis';
import { Redis } from 'ioredis';

const { REDIS_URL, PARTITIONS = '1' } = process.env;
const order = deadline('order');
// A handler that fails while Redis is away is called again.
const effects = new Redis(REDIS_URL, { db: 1 }).on('error', () => undefined);
const say = (word, value) => process.stdout.write(`${word} ${JSON.stringify(value)}\n`);

// An event may come again, when its instance is killed: it has the same id then.
class Handlers {
  async onSession({ id, type, sessionId, session }) {
    const [name, count] = [session.getAttribute('name'), session.getAttribute('count')];
    await effects.set(`session:${id}`, JSON.stringify({ type, id: sessionId, name, count }));
  }

  async onDeadline({ id, key, data }) {
    await effects.set(`deadline:${id}`, JSON.stringify({ key, data }));
  }
}
for (const [decorate, name] of [
  [OnSessionEvent(SessionEvent), 'onSession'],
  [OnDeadline(order), 'onDeadline'],
]) {
  decorate(Handlers.prototype, name, Object.getOwnPropertyDescriptor(Handlers.prototype, name));
}

// Longer than Redis is away, and than a busy machine keeps an instance waiting.
const commandTimeout = '60s';
const partitions = Number(PARTITIONS);
// Often, so that a test need not wait for the next minute.
const cleanup = { cron: '* * * * * *' };
const events = { lease: '2s' };

class InstanceModule {}
Module({
  imports: [
    SessionModule.forRoot({ timeout: '30m' }),
    RedisSessionModule.forRoot({ url: REDIS_URL, partitions, cleanup, events, commandTimeout }),
    DeadlineModule.forRoot(),
    RedisDeadlineModule.forRoot({ url: REDIS_URL, partitions, events, commandTimeout }),
  ],
  providers: [Handlers],
})(InstanceModule);

const app = await NestFactory.createApplicationContext(InstanceModule, { logger: ['error'] });
app.enableShutdownHooks();
const [repository, deadlines] = [app.get(IndexedSessionRepository), app.get(Deadlines)];

async function change(id, act) {
  const session = await repository.findById(id);
  if (!session) return undefined;
  act(session);
  await repository.save(session);
  return session.id;
}

const OPERATIONS = {
  async create({ name, seconds, user }) {
    const session = repository.createSession();
    session.setAttribute('name', name);
    session.setAttribute('count', 0);
    if (user) session.signIn(user);
    // A sign-in sets the timeouts.
    session.maxInactiveInterval = seconds;
    await repository.save(session);
    return session.id;
  },
  save: ({ id, count }) => change(id, (session) => session.setAttribute('count', count)),
  rotate: ({ id, count }) =>
    change(id, (session) => {
      session.setAttribute('count', count);
      session.changeSessionId();
    }),
  signIn: ({ id, count, user }) =>
    change(id, (session) => {
      const name = session.getAttribute('name');
      session.signIn(user);
      // The session of another user starts empty.
      session.setAttribute('name', name);
      session.setAttribute('count', count);
    }),
  delete: ({ id }) => repository.deleteById(id),
  read: async ({ id }) => (await repository.findById(id))?.getAttribute('count'),
  schedule: ({ key, data, seconds }) => deadlines.schedule(order, key, { in: `${seconds}s`, data }),
  reschedule: ({ key, seconds }) => deadlines.reschedule(order, key, { in: `${seconds}s` }),
  cancel: ({ key }) => deadlines.cancel(order, key),
};

async function perform(operations) {
  const answers = await Promise.allSettled(operations.map((each) => OPERATIONS[each.call](each)));
  // `null` is nothing: JSON has no `undefined`.
  return answers.map(({ status, value, reason }) => (status === 'fulfilled' ? [value ?? null] : String(reason)));
}
createInterface({ input: process.stdin }).on('line', (line) => {
  const { number, operations } = JSON.parse(line);
  void perform(operations).then((answers) => say('answers', { number, answers }));
});
say('ready', import.meta.resolve('@nest-session/redis'));
