import { randomUUID } from 'node:crypto';
import { Logger } from '@nestjs/common';
import { SessionTokenGenerator } from '@nest-session/core';
import { LeakGuard, LogRecorder } from '@nest-session/test-infrastructure';
import { eventually, RedisServer } from '@nest-session/testing';
import { Redis } from 'ioredis';
import { App } from '../support/app.fixture.js';
import { FailingHandlers, TooLateModule } from '../support/logged.failures.js';

LeakGuard.install();

class Uuids extends SessionTokenGenerator {
  generate(): string {
    return randomUUID();
  }
}

describe("sessions with plain ids of the application's own generator", () => {
  const log = new LogRecorder();
  let server: RedisServer;
  let client: Redis;
  let app: App;
  beforeAll(async () => {
    server = await RedisServer.start();
    client = new Redis(server.url);
    app = await App.start({
      session: { sessionIds: 'plain', sessionTokenGenerator: new Uuids() },
      redis: { url: server.url },
      imports: [TooLateModule],
      providers: [FailingHandlers],
    });
    Logger.overrideLogger(log);
  });
  afterAll(async () => {
    await app.stop();
    Logger.overrideLogger(false);
    client.disconnect();
    await server.stop();
  });

  it('are stored under the value of the cookie, and rotate', async () => {
    const agent = app.agent();
    const { id } = (await agent.post('/set/a', { value: 1 })).json<{ id: string }>();
    expect(agent.cookie('SESSION')).toBe(id);
    expect(id).toMatch(/^[0-9a-f]{8}-/);
    expect(await client.exists(`nest:session:sessions:${id}`)).toBe(1);

    const rotated = (await agent.post('/login/ann')).json<{ id: string }>().id;
    expect(agent.cookie('SESSION')).toBe(rotated);
    expect((await agent.get('/read')).json()).toMatchObject({ id: rotated, attributes: { a: 1 } });
    const old = await app.agent().get('/read', { headers: { cookie: `SESSION=${id}` } });
    expect(old.json()).toMatchObject({ isNew: true, attributes: {} });
  });

  it('appear in the log as fingerprints only', async () => {
    const agent = app.agent();
    const { id } = (await agent.post('/set/a', { value: 1 })).json<{ id: string }>();
    await agent.post('/too-late', { value: true });
    const shown = 'sha256:[\\w-]{16}';
    await eventually(() => {
      expect(log.matching(new RegExp(`fail failed to handle session event created-${shown}`))).not.toEqual([]);
      expect(log.matching(new RegExp(`Changes of session ${shown} are lost`))).not.toEqual([]);
    });
    expect(log.lines.join('\n')).not.toContain(id);
  });

  it('do not appear in the log when a stray key is in place of a session', async () => {
    const agent = app.agent();
    const { id } = (await agent.post('/set/a', { value: 1 })).json<{ id: string }>();
    const shadow = `nest:session:sessions:expires:${id}`;
    await client.multi().del(shadow).rpush(shadow, 'foreign').expire(shadow, 3600).exec();
    expect((await agent.post('/set/a', { value: 2 })).status).toBe(503);
    expect(
      log.matching(/store failed.*WRONGTYPE nest:session:sessions:expires:\.\.\. is a list, not a string/),
    ).toHaveLength(1);
    expect(log.lines.join('\n')).not.toContain(id);
  });
});
