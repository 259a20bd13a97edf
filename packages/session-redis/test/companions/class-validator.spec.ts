import { Body, Controller, Get, type INestApplication, Post, ValidationPipe } from '@nestjs/common';
import { instanceToPlain, Type } from 'class-transformer';
import { IsInt, IsOptional, IsString, Min } from 'class-validator';
import { Session, SessionAttribute } from '@nest-session/core';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { RedisServer } from '@nest-session/testing';
import { App } from '../support/app.fixture.js';

LeakGuard.install();

class Item {
  @IsString()
  readonly name!: string;

  @IsInt()
  @Min(1)
  @Type(() => Number)
  readonly count!: number;

  @IsOptional()
  @IsString()
  readonly note?: string;
}

@Controller('item')
class ItemController {
  @Post()
  put(@Session() session: Session, @Body() item: Item) {
    expect(item).toBeInstanceOf(Item);
    session.setAttribute('item', instanceToPlain(item));
  }

  @Get()
  show(@SessionAttribute('item') item: object) {
    return item;
  }
}

let server: RedisServer;
beforeAll(async () => {
  server = await RedisServer.start();
});
afterAll(() => server.stop());

it.each(['express', 'fastify'] as const)('class-validator keeps DTOs in the session, on %s', async (adapter) => {
  const app = await App.start({
    adapter,
    redis: { url: server.url },
    controllers: [ItemController],
    configure: (nest: INestApplication) => {
      nest.useGlobalPipes(new ValidationPipe({ transform: true, whitelist: true }));
    },
  });
  const agent = app.agent();
  expect((await agent.post('/item', { name: 'apple', count: 'many' })).status).toBe(400);
  expect(agent.cookies).toEqual({});
  expect((await agent.post('/item', { name: 'apple', count: '2', note: 'ripe', isAdmin: true })).status).toBe(201);
  expect((await agent.get('/item')).json()).toEqual({ name: 'apple', count: 2, note: 'ripe' });
  await app.stop();
});
