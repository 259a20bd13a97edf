import { Body, Controller, Module, Post } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { HttpAgent } from '@nest-session/testing';
import { IndexedSessionRepository, MapSessionModule, Session, SessionModule } from '../../src/index.js';

LeakGuard.install();

interface User {
  readonly tenant: string;
}

@Controller()
class UserController {
  @Post('user')
  set(@Session() session: Session, @Body() user: User) {
    session.setAttribute('user', user);
  }

  @Post('move')
  move(@Session() session: Session, @Body() { tenant }: User) {
    return session.updateAttribute<User>('user', (user) => ({ ...user, tenant }));
  }

  @Post('rotate')
  rotate(@Session() session: Session) {
    session.changeSessionId();
  }

  @Post('logout')
  logout(@Session() session: Session) {
    session.invalidate();
  }
}

@Module({
  imports: [
    SessionModule.forRoot({ indexes: { tenant: (session) => session.getAttribute<User>('user')?.tenant } }),
    MapSessionModule.forRoot(),
  ],
  controllers: [UserController],
})
class AppModule {}

it.each([
  { platform: 'express', Adapter: ExpressAdapter },
  { platform: 'fastify', Adapter: FastifyAdapter },
])('on $platform, requests are followed by the indexes of the application', async ({ Adapter }) => {
  const app = await NestFactory.create(AppModule, new Adapter(), { logger: false });
  const client = await HttpAgent.for(app);
  const sessions = app.get(IndexedSessionRepository, { strict: false });
  const counts = async () => [
    (await sessions.findByIndex('tenant', 'acme')).length,
    (await sessions.findByIndex('tenant', 'other')).length,
  ];
  await client.post('/user', { tenant: 'acme' });
  expect(await counts()).toEqual([1, 0]);
  await client.post('/move', { tenant: 'other' });
  expect(await counts()).toEqual([0, 1]);
  await client.post('/rotate');
  expect(await counts()).toEqual([0, 1]);
  await client.post('/logout');
  expect(await counts()).toEqual([0, 0]);
  await app.close();
});
