import { Injectable } from '@nestjs/common';
import { OnSessionEvent, SessionDeletedEvent, SessionRepository } from '@nest-session/core';
import { LeakGuard, TcpProxy } from '@nest-session/test-infrastructure';
import { eventually, RedisServer } from '@nest-session/testing';
import { Redis } from 'ioredis';
import { EventInstance } from '../../../session-redis/test/support/event-instance.fixture.js';
import { calledCommand } from '../support/called.command.js';

LeakGuard.install();

// More than one page of the dead letters.
const COUNT = 130;

@Injectable()
class Handlers {
  calls = 0;

  @OnSessionEvent(SessionDeletedEvent)
  handle() {
    this.calls++;
    throw new Error('the mail server is down');
  }
}

let server: RedisServer;
let client: Redis;
let proxy: TcpProxy;
let app: EventInstance;
beforeAll(async () => {
  server = await RedisServer.start();
  client = new Redis(server.url);
  proxy = await TcpProxy.start(server);
  const redis = { url: server.url, partitions: 1, events: { attempts: 1 } };
  app = await EventInstance.start({ redis, providers: [Handlers] });
});
afterAll(async () => {
  await app.stop();
  client.disconnect();
  await proxy.stop();
  await server.stop();
});

it('dead-letters --replay all replays none again that its handler could not handle meanwhile', async () => {
  const repository = app.module.get(SessionRepository, { strict: false });
  const handlers = app.module.get(Handlers);
  const letters = () => client.xlen('nest:session:events:dead');
  for (let i = 0; i < COUNT; i++) {
    const session = repository.createSession();
    session.setAttribute('cart', 'apple');
    await session.save();
    session.invalidate();
    await session.save();
  }
  await eventually(async () => expect(await letters()).toBe(COUNT));
  // The command reads the second page when the letters of the first one are back, at the end.
  proxy.hold('request', (burst) => /xrange[^]*:dead[^]*\(\d+-/i.test(String(burst)));
  const replayed = calledCommand(['dead-letters', '--replay', 'all', '--url', proxy.url]);
  await proxy.untilHeld('request');
  await eventually(async () => expect([handlers.calls, await letters()]).toEqual([COUNT + 100, COUNT]));
  proxy.release();
  expect(JSON.parse(await replayed)).toEqual({ replayed: COUNT });
  await eventually(async () => expect([handlers.calls, await letters()]).toEqual([2 * COUNT, COUNT]));
});
