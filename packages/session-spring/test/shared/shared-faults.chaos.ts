import { setTimeout as pause } from 'node:timers/promises';
import { Logger } from '@nestjs/common';
import { LeakGuard, SteppableRedisServer } from '@nest-session/test-infrastructure';
import { eventually } from '@nest-session/testing';
import { Redis } from 'ioredis';
import type { App } from '../../../session-redis/test/support/app.fixture.js';
import { startWithSpring } from '../support/spring.app.js';
import { SpringWriter } from '../support/spring-writer.js';

LeakGuard.install();
Logger.overrideLogger(false);

const ROUNDS = 40;

let server: SteppableRedisServer;
let client: Redis;
let spring: SpringWriter;
beforeAll(async () => {
  server = await SteppableRedisServer.start({ args: ['--appendonly', 'yes', '--appendfsync', 'always'] });
  client = new Redis(server.url);
  spring = new SpringWriter(client);
});
afterAll(async () => {
  client.disconnect();
  await server.stop();
});

const start = () =>
  startWithSpring({ url: server.url, mode: 'shared', commandTimeout: '30s', cleanup: { cron: '* * * * * *' } });

it('two instances tell of each end once, while connections are cut and Redis is killed', async () => {
  const apps = [await start(), await start()];
  try {
    const [deleted, expired]: [string[], string[]] = [[], []];
    for (let round = 0; round < ROUNDS; round++) {
      const ids = [await spring.create({ round }), await spring.create({ round }), await spring.create({ round }, 1)];
      if (round % 2 === 0) await client.call('CLIENT', 'KILL', 'TYPE', 'pubsub');
      if (round === ROUNDS / 2) {
        await server.kill();
        await server.restart();
        await eventually(() => client.ping());
      }
      await spring.invalidate(ids[0]!);
      await eventually(async () => expect((await post(apps[round % 2]!, '/logout', ids[1]!)).status).toBe(201));
      deleted.push(ids[0]!, ids[1]!);
      expired.push(ids[2]!);
      await pause(50);
    }
    const told = (type: string) =>
      apps
        .flatMap(({ events }) => events.all())
        .filter((event) => event.type === type)
        .map(({ sessionId }) => sessionId)
        .toSorted();
    await eventually(
      () => {
        expect(told('expired')).toEqual(expired.toSorted());
        expect(told('deleted')).toEqual(deleted.toSorted());
        expect(told('created')).toEqual([...deleted, ...expired].toSorted());
      },
      { timeout: 120_000 },
    );
    const all = apps.flatMap(({ events }) => events.all());
    expect(all.filter(({ type, dataLost }) => dataLost && type !== 'created')).toEqual([]);
  } finally {
    await Promise.all(apps.map((app) => app.stop()));
  }
});

function post(app: App, path: string, id: string) {
  const cookie = `SESSION=${Buffer.from(id).toString('base64')}`;
  return app.agent().post(path, {}, { headers: { cookie } });
}
