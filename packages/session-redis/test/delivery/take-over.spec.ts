import { Logger } from '@nestjs/common';
import { RedisServer, LeakGuard, eventually } from '@nest-session/testing';
import { Redis } from 'ioredis';
import { SessionEventGroup } from '../../src/delivery/session-event.group.js';

LeakGuard.install();
Logger.overrideLogger(false);

let server: RedisServer;
let client: Redis;
beforeAll(async () => {
  server = await RedisServer.start();
  client = new Redis(server.url);
});
afterAll(async () => {
  client.disconnect();
  await server.stop();
});

it('entries that are never finished do not hide those behind them', async () => {
  const group = (consumer: string) => new SessionEventGroup(client, client, 'events', 'group', consumer);
  await group('dead').ensure();
  for (let i = 0; i < 20; i++) await client.xadd('events', '*', 'n', String(i));
  await group('dead').read(100, 1);
  const alive = group('alive');
  const seen = new Set<string>();
  // Nothing of it is ever acknowledged, and each look may take four.
  await eventually(async () => {
    for (const [, fields] of await alive.takeOver(4, 1)) seen.add(fields[1]!);
    return seen.size === 20;
  });
});
