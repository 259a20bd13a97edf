import { Controller, Get } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ExpressAdapter, type NestExpressApplication } from '@nestjs/platform-express';
import { Session, SessionModule } from '@nest-session/core';
import { RedisSessionModule } from '@nest-session/redis';
import { LeakGuard, TcpProxy } from '@nest-session/test-infrastructure';
import { HttpAgent, RedisServer } from '@nest-session/testing';
import { rateLimit } from 'express-rate-limit';

LeakGuard.install();

let server: RedisServer;
let proxy: TcpProxy;
beforeAll(async () => {
  server = await RedisServer.start();
  proxy = await TcpProxy.start({ port: server.port });
});
afterAll(async () => {
  await proxy.stop();
  await server.stop();
});

@Controller()
class TestController {
  @Get('visit')
  visit(@Session() session: Session) {
    session.setAttribute('visited', true);
    return { id: session.id };
  }
}

function appModule() {
  class AppModule {}
  return {
    module: AppModule,
    imports: [
      SessionModule.forRoot(),
      RedisSessionModule.forRoot({ url: proxy.url, notifications: 'off', commandTimeout: '1m' }),
    ],
    controllers: [TestController],
  };
}

const options = { logger: false, abortOnError: false } as const;

describe('a rate limiter', () => {
  const limiter = () => rateLimit({ limit: 1, legacyHeaders: false, message: 'slow down' });
  const ofSessions = (burst: Buffer) => burst.includes(':sessions:');

  async function visits(app: NestExpressApplication) {
    await app.listen(0, '127.0.0.1');
    const agent = new HttpAgent(await app.getUrl());
    const first = await agent.get('/visit');
    proxy.countFlights(ofSessions);
    const second = await agent.get('/visit');
    await app.close();
    return { first, second, flights: proxy.flights };
  }

  it('on the HTTP adapter rejects requests before their session is loaded', async () => {
    const adapter = new ExpressAdapter();
    adapter.use(limiter());
    const app = await NestFactory.create<NestExpressApplication>(appModule(), adapter, options);
    const { first, second, flights } = await visits(app);
    expect([first.status, first.setCookies.length]).toEqual([200, 1]);
    expect([second.status, second.text, second.setCookies, flights]).toEqual([429, 'slow down', [], 0]);
  });

  it('in the application can read the session', async () => {
    const app = await NestFactory.create<NestExpressApplication>(appModule(), options);
    const keys: string[] = [];
    const keyGenerator = (request: { session?: Session }) => {
      keys.push(request.session!.id);
      return '';
    };
    app.use(rateLimit({ limit: 1, keyGenerator: keyGenerator as never, validate: false }));
    const { first, second, flights } = await visits(app);
    expect([first.status, second.status, flights]).toEqual([200, 429, 1]);
    expect(keys).toEqual([first.json<{ id: string }>().id, first.json<{ id: string }>().id]);
  });
});
