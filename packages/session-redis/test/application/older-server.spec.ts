import { Logger } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { InvalidSessionOptionsError, SessionModule } from '@nest-session/core';
import { DeadlineModule } from '@nest-session/deadlines';
import { RedisSessionModule, type RedisSessionModuleOptions } from '@nest-session/redis';
import { LeakGuard, LogRecorder } from '@nest-session/test-infrastructure';
import { eventually, freePort, RedisServer } from '@nest-session/testing';
import { Redis } from 'ioredis';
import { RedisDeadlineModule } from '../../../deadlines/src/redis/redis-deadline.module.js';
import { adviceFor } from '../../../redis-events/src/logging/advice.js';
import { calledCommand } from '../../../session-cli/test/support/called.command.js';
import { OlderProxy } from '../support/older.proxy.js';

LeakGuard.install();

const TOO_OLD =
  /(Redis 7\.0|Valkey 7\.2) is the oldest that works, this is (6\.2|7\.1)\.\S+\. Upgrade (Redis|Valkey)\./;

let server: RedisServer;
let older: OlderProxy;
let client: Redis;
beforeAll(async () => {
  server = await RedisServer.start();
  older = await OlderProxy.start(server);
  client = new Redis(server.url);
});
afterEach(() => client.flushall());
afterAll(async () => {
  client.disconnect();
  await older.stop();
  await server.stop();
});

const sessions = (redis: RedisSessionModuleOptions) => [SessionModule.forRoot(), RedisSessionModule.forRoot(redis)];
const deadlines = (redis: object) => [DeadlineModule.forRoot(), RedisDeadlineModule.forRoot(redis)];

async function start(
  imports: NonNullable<Parameters<typeof Test.createTestingModule>[0]['imports']>,
  log = new LogRecorder(),
) {
  const app = await Test.createTestingModule({ imports }).setLogger(log).compile();
  return app.init();
}

it.each([
  ['sessions', sessions, {}],
  ['sessions that require Redis', sessions, { requireAtStart: true }],
  ['deadlines', deadlines, {}],
])(
  'an application with %s does not start on a server that is too old, and writes nothing',
  async (_, modules, options) => {
    const started = start(modules({ url: older.url, ...options }));
    await expect(started).rejects.toThrow(TOO_OLD);
    await expect(started).rejects.toThrow(InvalidSessionOptionsError);
    expect(await client.keys('*')).toEqual([]);
  },
);

it('an application that starts before its server logs at the first connection that it is too old', async () => {
  const port = await freePort();
  const log = new LogRecorder();
  const app = await start(sessions({ url: `redis://127.0.0.1:${port}`, commandTimeout: '100ms' }), log);
  const late = await OlderProxy.start(server, port);
  try {
    await eventually(() => expect(log.matching(TOO_OLD)).toHaveLength(1));
  } finally {
    await app.close();
    await late.stop();
    Logger.overrideLogger(false);
  }
});

it('the command says the same, and so does the advice about its reply to a script', async () => {
  const printed = await calledCommand(['doctor', '--url', older.url]);
  expect(printed).toMatch(/Upgrade it: (Redis 7\.0|Valkey 7\.2) is the oldest that works\./);
  const reply = "ERR Error compiling script (new function): user_script:1: unexpected symbol near '#'";
  expect(adviceFor(new Error(reply))).toContain('Redis 7.0 is the oldest that works');
});
