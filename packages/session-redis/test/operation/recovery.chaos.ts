import { Injectable } from '@nestjs/common';
import { OnSessionEvent, SessionEvent, SessionRepository } from '@nest-session/core';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually, freePort, RedisServer } from '@nest-session/testing';
import { Redis } from 'ioredis';
import { REDIS_CONNECTIONS, type RedisConnections } from '../../../redis-events/src/connection/redis-connections.js';
import { App } from '../support/app.fixture.js';
import { commandStats } from '../support/command.stats.js';
import { EventInstance } from '../support/event-instance.fixture.js';
import { LineRecorder } from '../support/line.recorder.js';
import { Store } from '../support/store.fixture.js';

LeakGuard.install();

/** Between two attempts, in milliseconds. */
const PAUSE = 500;

@Injectable()
class Handlers {
  readonly heard: string[] = [];

  @OnSessionEvent(SessionEvent)
  handle() {}

  @OnSessionEvent(SessionEvent, { broadcast: true })
  hear({ sessionId }: SessionEvent) {
    this.heard.push(sessionId);
  }
}

const LINES = [
  { failing: /Events cannot be read, retrying: /, recovered: /^Events are read again/ },
  {
    failing: /Broadcast events cannot be read, retrying: /,
    recovered: /^Broadcast events are read again/,
  },
  {
    failing: /The cleanup of sessions failed and will run again: /,
    recovered: /^The cleanup of sessions works again/,
  },
];

describe('an instance, while a stray key is in place of the events stream,', () => {
  const log = new LineRecorder();
  let store: Store;
  let instance: EventInstance;
  beforeAll(async () => {
    store = await Store.open();
    const redis = { url: store.server.url, cleanup: { cron: '* * * * * *' } };
    instance = await EventInstance.start({ redis, providers: [Handlers] });
    log.install();
    await eventually(async () => expect(await store.readers()).toBe(1));
    await store.client.set(store.keys.events, 'foreign');
  });
  afterAll(async () => {
    await instance.stop();
    await store.close();
  });

  /** How often a command has failed. */
  const failures = async (name: string) => (await commandStats(store.client)).get(name)?.failed ?? 0;

  it.each(['xreadgroup', 'xinfo|stream'])('pauses before it asks again: %s', async (name) => {
    await eventually(async () => (await failures(name)) > 0);
    const begin = performance.now();
    const before = await failures(name);
    await eventually(async () => (await failures(name)) >= before + 6);
    // A pass asks twice at most, to read and to claim, so at least three full pauses lie between them.
    expect(performance.now() - begin).toBeGreaterThan(3 * PAUSE * 0.9);
  });

  it('logs the failure once and the recovery once', async () => {
    await eventually(() => LINES.forEach(({ failing }) => expect(log.matching(failing)).toHaveLength(1)));
    for (const { recovered } of LINES) expect(log.matching(recovered)).toEqual([]);
    await store.client.del(store.keys.events);
    await eventually(() => LINES.forEach(({ recovered }) => expect(log.matching(recovered)).toHaveLength(1)));
    for (const { failing } of LINES) expect(log.matching(failing)).toHaveLength(1);
  });
});

describe.each([1, 4])('an instance with %d partitions that starts before it can read,', (partitions) => {
  let server: RedisServer | undefined;
  let instance: EventInstance | undefined;
  let admin: Redis | undefined;
  const log = new LineRecorder();
  afterEach(async () => {
    admin?.disconnect();
    await instance?.stop();
    await server?.stop();
    log.lines.splice(0);
  });

  async function start(port: number): Promise<void> {
    const url = `redis://:a-secret@127.0.0.1:${port}`;
    const cleanup = { cron: '0 0 0 29 2 *' };
    const redis = { url, partitions, cleanup, commandTimeout: '200ms' };
    instance = await EventInstance.start({ redis, providers: [Handlers] });
    log.install();
  }

  /** Resolves when it hears of an event. Those that are recorded before its first read are not for it. */
  const hears = () =>
    eventually(async () => {
      const session = instance!.module.get(SessionRepository).createSession();
      session.setAttribute('cart', 1);
      await session.save();
      expect(instance!.module.get(Handlers).heard).not.toEqual([]);
    });

  it('logs only that Redis cannot be reached, and that it can again: another password', async () => {
    server = await RedisServer.start({ args: ['--requirepass', 'another-secret'] });
    admin = new Redis(`redis://:another-secret@127.0.0.1:${server.port}`);
    EventInstance.log.lines.splice(0);
    await start(server.port);
    // Between two attempts, reads wait for longer than a round does.
    const refused = async () =>
      Number(/errorstat_WRONGPASS:count=(\d+)/.exec(await admin!.info('errorstats'))?.[1] ?? 0);
    await eventually(async () => expect(await refused()).toBeGreaterThan(60), { timeout: 60_000 });
    expect(EventInstance.log.matching(/^error/)).toEqual([
      expect.stringMatching(/^error Redis cannot be reached, retrying: .*WRONGPASS/),
    ]);
    expect(log.matching(/WRONGPASS/)).toEqual([]);
    await admin.config('SET', 'requirepass', 'a-secret');
    await hears();
    await eventually(() => expect(log.matching(/^Redis can be reached again/)).toHaveLength(1));
    expect(log.matching(/vents (cannot be|are) read/)).toEqual([]);
  }, 120_000);

  it('logs nothing of events when it reads at last: Redis starts later', async () => {
    const port = await freePort();
    await start(port);
    // By then, nothing waits any longer for the reply to the first read.
    let attempts = 0;
    instance!.module.get<RedisConnections>(REDIS_CONNECTIONS).background.on('reconnecting', () => attempts++);
    await eventually(() => expect(attempts).toBeGreaterThan(4));
    server = await RedisServer.start({ port, args: ['--requirepass', 'a-secret'] });
    await hears();
    expect(log.matching(/vents (cannot be|are) read/)).toEqual([]);
  }, 60_000);
});

it('a failing store is logged once, and its recovery once, in each outage', async () => {
  const server = await RedisServer.start();
  const app = await App.start({ redis: { url: server.url, commandTimeout: '200ms' } });
  const log = new LineRecorder().install();
  try {
    const agent = app.agent();
    expect((await agent.post('/set/a', { value: 1 })).status).toBe(201);
    for (let outage = 1; outage <= 2; outage++) {
      await server.kill();
      for (let i = 0; i < 3; i++) expect((await agent.get('/read')).status).toBe(503);
      await server.restart();
      await eventually(async () => expect((await agent.get('/read')).status).toBe(200));
      await eventually(async () => {
        expect((await agent.get('/read')).status).toBe(200);
        expect(log.matching(/^The session store works again after \d+ failed calls?/)).toHaveLength(outage);
      });
      expect(log.matching(/^The session store failed/)).toHaveLength(outage);
      await eventually(() => expect(log.matching(/^Redis can be reached again/)).toHaveLength(outage));
      expect(log.matching(/^Redis cannot be reached/)).toHaveLength(outage);
    }
  } finally {
    await app.stop();
    await server.stop();
  }
});

it('a full Redis is logged as one that still loads and ends sessions', async () => {
  const server = await RedisServer.start();
  const app = await App.start({ redis: { url: server.url } });
  const admin = new Redis(server.url);
  const log = new LineRecorder().install();
  try {
    const agent = app.agent();
    expect((await agent.post('/set/a', { value: 1 })).status).toBe(201);
    await admin.config('SET', 'maxmemory', '1mb');
    expect((await agent.post('/set/a', { value: 2 })).status).toBe(503);
    expect((await agent.get('/read')).status).toBe(200);
    const line =
      /^The session store failed, .*OOM.* Redis is full: it loads and ends sessions and deadlines, and saves none\. Raise/;
    expect(log.matching(/^The session store/)).toEqual([expect.stringMatching(line)]);
  } finally {
    admin.disconnect();
    await app.stop();
    await server.stop();
  }
});
