import { INestApplication } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { SessionEventDispatcher } from '@nest-session/core/store';
import { RedisSessionModule } from '@nest-session/redis';
import { TestClock, signIn, TestSessionModule } from '@nest-session/testing';
import { LeftBehind, ShopModule } from './shop.module';

describe('ShopController', () => {
  let app: INestApplication;

  beforeEach(async () => {
    const testing = await Test.createTestingModule({ imports: [ShopModule] })
      .overrideModule(RedisSessionModule)
      .useModule(TestSessionModule.forRoot())
      .compile();
    app = testing.createNestApplication();
  });

  afterEach(async () => {
    await app.close();
  });

  it('tells what was left behind', async () => {
    const ann = await signIn(app, { principalName: 'ann', attributes: { items: ['apple'] } });
    await ann.post('/shop/items', { item: 'pear' });
    expect((await ann.get('/shop/items')).json()).toEqual(['apple', 'pear']);
    await app.get(TestClock).advance('31m');
    expect(app.get(LeftBehind).items.sort()).toEqual(['apple,pear by @OnEvent', 'apple,pear by @OnSessionEvent']);
  });

  it('has one copy of the packages behind all of their entry points', () => {
    expect(app.get(SessionEventDispatcher)).toBeInstanceOf(SessionEventDispatcher);
  });
});
