import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { Controller, Get, Param, Post, Req } from '@nestjs/common';
import { Gate, LeakGuard } from '@nest-session/test-infrastructure';
import { type HttpAgent, RedisServer } from '@nest-session/testing';
import type { Request } from 'express';
import { Redis } from 'ioredis';
import { OldApp } from '../support/old.app.js';

LeakGuard.install();

type Bag = Record<string, unknown>;

/** Where `POST /slowly/...` waits, with the session that it has loaded. */
let gate: Gate;

@Controller()
class BagController {
  @Post('set/:name')
  set(@Req() { session }: Request, @Param('name') name: string) {
    (session as unknown as Bag)[name] = true;
    return name;
  }

  @Post('slowly/:name')
  async slowly(@Req() { session }: Request, @Param('name') name: string) {
    await gate.pass();
    (session as unknown as Bag)[name] = true;
    return name;
  }

  @Post('logout')
  async logout(@Req() { session }: Request) {
    await new Promise((resolve) => session.destroy(resolve));
  }

  @Get('names')
  names(@Req() { session }: Request) {
    return Object.keys(session).filter((name) => name !== 'cookie');
  }
}

let server: RedisServer;
/** Two instances of one application. */
let apps: OldApp[];
beforeAll(async () => {
  server = await RedisServer.start();
  const start = () => OldApp.start(server, 'connect-redis 8 with ioredis', [BagController], () => undefined);
  apps = [await start(), await start()];
});
afterAll(async () => {
  await Promise.all(apps.map((app) => app.stop()));
  await server.stop();
});

let agent: HttpAgent;
beforeEach(async () => {
  gate = new Gate();
  agent = apps[0]!.agent();
  await agent.post('/set/first');
});

const names = async () => (await agent.get('/names')).json<string[]>();

/** What the README says of express-session 1.19 with connect-redis 8 and `resave: false`. */
describe('express-session', () => {
  it('loses the change of one of two parallel requests that change different properties', async () => {
    const slow = agent.post('/slowly/slow');
    await gate.reached();
    await agent.post('/set/fast');
    expect(await names()).toEqual(['first', 'fast']);
    gate.open();
    await slow;
    expect(await names()).toEqual(['first', 'slow']);
  });

  it('stores a session again when a request that loaded it before the logout has finished', async () => {
    const slow = agent.post('/slowly/slow');
    await gate.reached();
    await agent.post('/logout');
    expect(await names()).toEqual([]);
    gate.open();
    await slow;
    expect(await names()).toEqual(['first', 'slow']);
  });

  it('sends the headers, and all of the body but its last byte, before the store has replied', async () => {
    const client = new Redis(server.url);
    try {
      await client.client('PAUSE', 600_000, 'WRITE');
      const response = await agent.open('POST', '/set/second');
      expect([response.statusCode, await firstOf(response)]).toEqual([201, 'secon']);
      // As of a client that follows a redirect, to the other instance.
      const next = await apps[1]!.agent().open('GET', '/names', { headers: agent.headersFor('/') });
      expect(await firstOf(next)).toBe('["first"');
      await client.client('UNPAUSE');
      expect([await restOf(response), await restOf(next)]).toEqual(['d', ']']);
      expect(await names()).toEqual(['first', 'second']);
    } finally {
      await client.client('UNPAUSE');
      client.disconnect();
    }
  });
});

async function firstOf(message: IncomingMessage): Promise<string> {
  const [chunk] = (await once(message, 'data')) as [Buffer];
  message.pause();
  return chunk.toString();
}

const restOf = async (message: IncomingMessage) => Buffer.concat(await message.toArray()).toString();
