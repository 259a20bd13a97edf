import { ConfigModule, ConfigService } from '@nestjs/config';
import { Controller, Get } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { Session, SessionModule } from '@nest-session/core';
import { RedisSessionModule } from '@nest-session/redis';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { HttpAgent, RedisServer } from '@nest-session/testing';
import { Redis } from 'ioredis';
import { PATIENCE } from '../support/patience.js';

LeakGuard.install();

@Controller()
class VisitController {
  @Get('visit')
  visit(@Session() session: Session) {
    session.setAttribute('visited', true);
    return { id: session.id, maxInactiveInterval: session.maxInactiveInterval };
  }
}

let server: RedisServer;
beforeAll(async () => {
  server = await RedisServer.start();
});
afterAll(() => server.stop());

it.each([true, false])('@nestjs/config gives forRootAsync() its options, global: %s', async (isGlobal) => {
  const values = { SESSION_TIMEOUT: '7m', COOKIE: 'SHOP', REDIS_URL: server.url, NAMESPACE: `shop-${isGlobal}` };
  const imports = isGlobal ? [] : [ConfigModule];
  const inject = [ConfigService];
  const testing = await Test.createTestingModule({
    imports: [
      ConfigModule.forRoot({ isGlobal, ignoreEnvFile: true, load: [() => values] }),
      SessionModule.forRootAsync({
        imports,
        inject,
        useFactory: (config: ConfigService) => ({
          timeout: config.getOrThrow('SESSION_TIMEOUT'),
          cookie: { name: config.getOrThrow('COOKIE') },
        }),
      }),
      RedisSessionModule.forRootAsync({
        imports,
        inject,
        useFactory: (config: ConfigService) => ({
          url: config.getOrThrow('REDIS_URL'),
          namespace: config.getOrThrow('NAMESPACE'),
          commandTimeout: PATIENCE,
        }),
      }),
    ],
    controllers: [VisitController],
  }).compile();
  const app = testing.createNestApplication();
  const agent = await HttpAgent.for(app);
  const { id, maxInactiveInterval } = (await agent.get('/visit')).json<{ id: string; maxInactiveInterval: number }>();
  expect([maxInactiveInterval, Object.keys(agent.cookies)]).toEqual([420, ['SHOP']]);
  const client = new Redis(server.url);
  expect(await client.exists(`shop-${isGlobal}:sessions:${id}`)).toBe(1);
  client.disconnect();
  await app.close();
});
