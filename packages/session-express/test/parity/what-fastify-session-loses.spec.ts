import { Controller, Get, Param, Post, Req } from '@nestjs/common';
import { Gate, LeakGuard } from '@nest-session/test-infrastructure';
import { type HttpAgent, RedisServer } from '@nest-session/testing';
import { OldFastifyApp } from '../support/old-fastify.app.js';

LeakGuard.install();

/** Where the slow requests wait, with the session that they have loaded. */
let gate: Gate;

@Controller()
class BagController {
  @Post('set/:name')
  set(@Req() { session }: any, @Param('name') name: string) {
    session[name] = true;
  }

  @Post('slowly/:name')
  async slowly(@Req() { session }: any, @Param('name') name: string) {
    await gate.pass();
    session[name] = true;
  }

  @Get('slowly')
  async read() {
    await gate.pass();
  }

  @Post('logout')
  async logout(@Req() { session }: any) {
    await session.destroy();
  }

  @Get('names')
  names(@Req() { session }: any) {
    return Object.keys(session).filter((name) => name !== 'cookie');
  }
}

let server: RedisServer;
let app: OldFastifyApp;
let agent: HttpAgent;
beforeAll(async () => {
  server = await RedisServer.start();
});
afterAll(() => server.stop());
beforeEach(() => {
  gate = new Gate();
});
afterEach(() => app.stop());

async function start(options: { rolling?: boolean; saveUninitialized?: boolean } = {}): Promise<void> {
  app = await OldFastifyApp.start(server, [BagController], options);
  agent = app.agent();
  await agent.post('/set/first');
}

const names = async () => (await agent.get('/names')).json<string[]>();

/** What docs/comparison.md says of @fastify/session 11 with connect-redis 8. */
describe('@fastify/session', () => {
  it('loses the change of one of two parallel requests that change different properties', async () => {
    await start({ rolling: false, saveUninitialized: false });
    const slow = agent.post('/slowly/slow');
    await gate.reached();
    await agent.post('/set/fast');
    expect(await names()).toEqual(['first', 'fast']);
    gate.open();
    await slow;
    expect(await names()).toEqual(['first', 'slow']);
  });

  it('stores a session again when a request that loaded it before the logout has finished', async () => {
    await start({ rolling: false, saveUninitialized: false });
    const slow = agent.post('/slowly/slow');
    await gate.reached();
    await agent.post('/logout');
    expect(await names()).toEqual([]);
    gate.open();
    await slow;
    expect(await names()).toEqual(['first', 'slow']);
  });

  it('by default, undoes the change of another request by a request that only reads', async () => {
    await start();
    const slow = agent.get('/slowly');
    await gate.reached();
    await agent.post('/set/fast');
    expect(await names()).toEqual(['first', 'fast']);
    gate.open();
    await slow;
    expect(await names()).toEqual(['first']);
  });
});
