import { Injectable, Module, type OnApplicationShutdown } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { IndexedSessionRepository, OnSessionEvent, SessionEvent, SessionModule } from '@nest-session/core';
import { DeadlineEvent, DeadlineEvents, DeadlineModule, Deadlines, OnDeadline } from '@nest-session/core/deadlines';
import { SESSION_READER, type SessionReader } from '@nest-session/core/internal';
import { RedisSessionModule, SessionEventGroups } from '@nest-session/redis';
import { RedisDeadlineModule } from '@nest-session/redis/deadlines';
import { SoakClients, soaked } from './soak.clients.js';
import { HeardEvents } from './soak.events.js';
import type { Answers, Question } from './soak.instance.js';

// An instance of the soak, which SoakInstance starts: the ports of the Sentinel and of the Redis that counts events.
const [name = '', sentinel, master = '', counting] = process.argv.slice(2);
const heard = new HeardEvents(`redis://127.0.0.1:${counting}`);

@Injectable()
class Handlers implements OnApplicationShutdown {
  @OnSessionEvent(SessionEvent)
  async onSession({ type, id }: SessionEvent): Promise<void> {
    await heard.note(type, id);
  }

  @OnDeadline(soaked)
  async onDeadline({ id }: DeadlineEvent<typeof soaked>): Promise<void> {
    await heard.note('fired', id);
  }

  onApplicationShutdown(): void {
    heard.disconnect();
  }
}

@Module({
  imports: [
    SessionModule.forRoot({ timeout: '30m' }),
    RedisSessionModule.forRoot({
      sentinels: [{ host: '127.0.0.1', port: Number(sentinel) }],
      name: master,
      replicas: 1,
      commandTimeout: '2s',
      // A minute of the day is about a second here, and by the clock of Redis a handler takes a minute at each step.
      cleanup: { cron: '* * * * * *' },
      events: { lease: '10m' },
      requireAtStart: true,
    }),
    DeadlineModule.forRoot(),
    RedisDeadlineModule.forRoot({ commandTimeout: '2s', events: { lease: '10m' } }),
  ],
  providers: [Handlers],
})
class SoakModule {}

const app = await NestFactory.createApplicationContext(SoakModule, { logger: ['error', 'warn'] });
app.enableShutdownHooks();
const deadlines = app.get(Deadlines);
const clients = new SoakClients(name, app.get(IndexedSessionRepository), deadlines);
const reader = app.get<SessionReader>(SESSION_READER);
const groups = [app.get(SessionEventGroups), app.get(DeadlineEvents)];

const ANSWERS: { [Word in keyof Answers]: (minute: number) => Promise<Answers[Word]> } = {
  spend: (minute) => clients.spend(minute),
  memory: async () => {
    globalThis.gc!();
    const { heapUsed, rss } = process.memoryUsage();
    return { heap: heapUsed, resident: rss };
  },
  store: async () => {
    const { sessions } = await reader.read();
    const all = (await Promise.all(groups.map((each) => each.list()))).flat();
    const letters = await Promise.all(groups.map((each) => each.deadLetters()));
    return {
      sessions,
      deadlines: await deadlines.count(soaked),
      lag: all.reduce((sum, { lag, pending }) => sum + lag + pending, 0),
      deadLetters: letters.flat().length,
      dropped: all.reduce((sum, { dropped }) => sum + dropped, 0),
    };
  },
};

// Ends with the process that has started it.
process.on('disconnect', () => process.exit());
process.on(
  'message',
  ({ word, minute }: Question) => void ANSWERS[word](minute).then((answer) => process.send!(answer)),
);
process.send!('ready');
