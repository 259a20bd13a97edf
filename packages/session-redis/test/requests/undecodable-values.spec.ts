import { jest } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { type HttpAgent, RedisServer } from '@nest-session/testing';
import { Redis } from 'ioredis';
import { App } from '../support/app.fixture.js';

LeakGuard.install();

const GARBAGE = '{secret';

let server: RedisServer;
let client: Redis;
let app: App;
let lines: string[];
beforeAll(async () => {
  server = await RedisServer.start();
  client = new Redis(server.url);
});
beforeEach(() => {
  lines = [];
  jest.spyOn(Logger.prototype, 'warn').mockImplementation((line) => void lines.push(String(line)));
});
afterEach(async () => {
  await app.stop();
  jest.restoreAllMocks();
});
afterAll(async () => {
  client.disconnect();
  await server.stop();
});

/** A browser whose session has a value that the serializer did not write. */
async function visit(): Promise<{ agent: HttpAgent; id: string }> {
  app = await App.start({ redis: { url: server.url } });
  const agent = app.agent();
  const { id } = (await agent.post('/set/fine', { value: 1 })).json() as { id: string };
  expect(await client.hset(hashOf(id), 'sessionAttr:broken', GARBAGE)).toBe(1);
  return { agent, id };
}

function hashOf(id: string): string {
  return `nest:session:sessions:${id}`;
}

function linesAbout(id: string): string[] {
  return lines.filter((line) => line.includes(id));
}

describe('garbage in a session hash', () => {
  it('reads as undefined, and stays in Redis until the attribute is set', async () => {
    const { agent, id } = await visit();
    const response = await agent.get('/read');
    expect(response.status).toBe(200);
    expect(response.json()).toEqual({ id, isNew: false, attributes: { fine: 1 } });
    await agent.post('/set/fine', { value: 2 });
    expect(await client.hget(hashOf(id), 'sessionAttr:broken')).toBe(GARBAGE);
    await agent.post('/set/broken', { value: 'mended' });
    expect((await agent.get('/read')).json()).toMatchObject({ attributes: { fine: 2, broken: 'mended' } });
    expect(linesAbout(id)).toEqual([expect.stringContaining(`Attribute "broken" of session ${id} cannot be decoded`)]);
    expect(lines.join()).not.toContain('secret');
  });

  it('is left out of the session of an event', async () => {
    const { agent, id } = await visit();
    await agent.post('/logout');
    const { session } = await app.events.next('deleted', id);
    expect(session.getAttribute('broken')).toBeUndefined();
    expect(session.getAttribute('fine')).toBe(1);
    expect(linesAbout(id)).toEqual([expect.stringContaining(`Attribute "broken" of session ${id} cannot be decoded`)]);
  });
});
