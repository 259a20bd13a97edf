import { Controller, Get, Inject, Module } from '@nestjs/common';
import { BrowserSessions } from '@nest-session/core';
import { LeakGuard, TcpProxy } from '@nest-session/test-infrastructure';
import { RedisServer } from '@nest-session/testing';
import { App, type AppOptions } from '../support/app.fixture.js';

LeakGuard.install();

@Controller()
class AccountsController {
  constructor(@Inject(BrowserSessions) private readonly manager: BrowserSessions) {}

  @Get('accounts')
  async accounts() {
    return Object.fromEntries(
      [...(await this.manager.list())].map(([alias, session]) => [alias, session.principalName]),
    );
  }
}

@Module({ controllers: [AccountsController] })
class AccountsModule {}

it('the sessions of a browser, created on several instances, are listed in one more round trip', async () => {
  const server = await RedisServer.start();
  const proxy = await TcpProxy.start({ port: server.port });
  const options: AppOptions = {
    session: { multipleSessions: true },
    redis: { url: proxy.url, notifications: 'off' },
    imports: [AccountsModule],
    handlers: false,
  };
  const [here, there] = [await App.start(options), await App.start(options)];
  try {
    proxy.countFlights((burst) => burst.includes(':sessions:'));
    const [browser, elsewhere] = [here.agent(), there.agent()];
    for (let alias = 0; alias < 20; alias++) {
      const agent = alias % 2 === 0 ? browser : elsewhere;
      await agent.post(`/login/u${alias}?_s=${alias}`);
    }
    for (const [name, token] of Object.entries(elsewhere.cookies)) browser.setCookie(`${name}=${token}; Path=/`);
    let accounts: unknown;
    const flights = await proxy.flightsDuring(async () => {
      accounts = (await browser.get('/accounts?_s=1')).json();
    });
    expect(accounts).toEqual(Object.fromEntries(Array.from({ length: 20 }, (_, alias) => [`${alias}`, `u${alias}`])));
    expect(flights).toBe(2);
  } finally {
    await Promise.all([here.stop(), there.stop()]);
    await proxy.stop();
    await server.stop();
  }
});
