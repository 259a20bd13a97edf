import { jest } from '@jest/globals';
import { Logger } from '@nestjs/common';
import type { SessionModuleOptions } from '@nest-session/core';
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
async function visit(undecodable: SessionModuleOptions['undecodable']): Promise<{ agent: HttpAgent; id: string }> {
  app = await App.start({ session: { undecodable: undecodable! }, redis: { url: server.url } });
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
  it('is dropped by default, and stays in Redis until the attribute is set', async () => {
    const { agent, id } = await visit(undefined);
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

  it('throws at the read of that attribute only, with `throw`', async () => {
    const { agent, id } = await visit('throw');
    const response = await agent.get('/read');
    expect(response.status).toBe(500);
    expect(response.text).not.toContain('secret');
    expect((await agent.post('/set/fine', { value: 2 })).status).toBe(201);
    await agent.post('/set/broken', { value: 'mended' });
    expect((await agent.get('/read')).json()).toEqual({ id, isNew: false, attributes: { fine: 2, broken: 'mended' } });
  });

  it('ends the session with `drop-session`: the request gets a new one, handlers the readable attributes', async () => {
    const { agent, id } = await visit('drop-session');
    const response = await agent.get('/read');
    expect(response.json()).toMatchObject({ isNew: true, attributes: {} });
    expect(response.setCookies).toEqual([]);
    expect(await client.exists(`nest:session:sessions:expires:${id}`)).toBe(0);
    expect(linesAbout(id)[0]).toContain(`Session ${id} was ended: its attribute "broken" cannot be decoded`);

    const { session } = await app.events.next('deleted', id);
    expect(session.getAttribute('fine')).toBe(1);
    expect(session.getAttribute('broken')).toBeUndefined();
    // One for the end, and one for the session of the event.
    expect(linesAbout(id)).toHaveLength(2);
    expect(linesAbout(id)[1]).toContain(`Attribute "broken" of session ${id} cannot be decoded`);

    const next = (await agent.post('/set/fine', { value: 2 })).json() as { id: string };
    expect(next.id).not.toBe(id);
    expect((await agent.get('/read')).json()).toEqual({ id: next.id, isNew: false, attributes: { fine: 2 } });
  });
});
