import { SessionRepository } from '@nest-session/core';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { RedisServer } from '@nest-session/testing';
import { Redis } from 'ioredis';
import { OlderProxy } from '../../../session-redis/test/support/older.proxy.js';
import { startWithSpring } from '../support/spring.app.js';
import { SpringWriter } from '../support/spring-writer.js';

LeakGuard.install();

let server: RedisServer;
let older: OlderProxy;
let client: Redis;
beforeAll(async () => {
  server = await RedisServer.start();
  older = await OlderProxy.start(server);
  client = new Redis(server.url);
});
afterAll(async () => {
  client.disconnect();
  await older.stop();
  await server.stop();
});

it('sessions of Spring can be read on a server that is too old for sessions of ours', async () => {
  const id = await new SpringWriter(client).create({ color: 'red' });
  const app = await startWithSpring({ url: older.url, mode: 'read' });
  try {
    const sessions = app.nest.get(SessionRepository, { strict: false });
    expect((await sessions.findById(id))!.getAttribute('color')).toBe('red');
  } finally {
    await app.stop();
  }
});

it('sessions cannot be shared with Spring on it', async () => {
  const started = startWithSpring({ url: older.url, mode: 'shared' });
  await expect(started).rejects.toThrow(/SpringSessionModule.*(Redis 7\.0|Valkey 7\.2) is the oldest that works/s);
});
