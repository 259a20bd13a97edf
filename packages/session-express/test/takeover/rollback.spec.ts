import { Controller, Get, Param, Post, Req } from '@nestjs/common';
import { RedisSessionModule } from '@nest-session/redis';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { HttpAgent, RedisServer } from '@nest-session/testing';
import { closeApps, startApp } from '../support/express-session.app.js';
import { OldApp, SECRET } from '../support/old.app.js';

LeakGuard.install();

let server: RedisServer;
beforeAll(async () => {
  server = await RedisServer.start();
});
afterAll(() => server.stop());

@Controller()
class AccountController {
  @Post('login/:user')
  login(@Req() { session }: any, @Param('user') user: string) {
    session.user = user;
  }

  @Get('me')
  me(@Req() { session }: any) {
    return { user: session.user ?? null };
  }
}

const withOld = async (use: (agentOf: (browser: Browser) => HttpAgent) => Promise<void>) => {
  const old = await OldApp.start(server, 'connect-redis 8 with ioredis', [AccountController], () => undefined);
  await use((browser) => browser.at(old.origin));
  await old.stop();
};

const withNew = async (namespace: string, use: (agentOf: (browser: Browser) => HttpAgent) => Promise<void>) => {
  const { origin } = await startApp({
    controllers: [AccountController],
    express: { secret: SECRET, principal: 'passport' },
    store: RedisSessionModule.forRoot({ url: server.url, namespace, notifications: 'off', commandTimeout: '1m' }),
  });
  await use((browser) => browser.at(origin));
  await closeApps();
};

/** One that keeps its cookies while the application at its address is replaced. */
class Browser {
  #agent: HttpAgent | undefined;

  at(origin: string): HttpAgent {
    const agent = new HttpAgent(origin);
    for (const [name, value] of Object.entries(this.#agent?.cookies ?? {})) {
      agent.setCookie(`${name}=${value}; Path=/`);
    }
    this.#agent = agent;
    return agent;
  }
}

const userOf = async (agent: HttpAgent) => (await agent.get('/me')).json<{ user: string | null }>().user;

it('a move that is undone signs out whoever came meanwhile, and the next one needs another namespace', async () => {
  const [came, stayedAway] = [new Browser(), new Browser()];
  await withOld(async (at) => {
    await at(came).post('/login/ann');
    await at(stayedAway).post('/login/ben');
  });
  await withNew('nest:session', async (at) => {
    expect(await userOf(at(came))).toBe('ann');
  });
  await withOld(async (at) => {
    expect(await userOf(at(came))).toBeNull();
    expect(await userOf(at(stayedAway))).toBe('ben');
    await at(came).post('/login/anna');
  });
  await withNew('nest:session', async (at) => {
    // The session from before the rollback is alive, and counts before the old cookie.
    expect(await userOf(at(came))).toBe('ann');
  });
  await withNew('shop:session', async (at) => {
    expect(await userOf(at(came))).toBe('anna');
    expect(await userOf(at(stayedAway))).toBe('ben');
  });
});
