import { Test } from '@nestjs/testing';
import { INestApplication } from '@nestjs/common';
import request from 'supertest';
import { App } from 'supertest/types';
import { eventually } from '@nest-session/testing';
import { AppModule } from './../src/app.module';

describe('ShopController (e2e)', () => {
  let app: INestApplication<App>;

  beforeEach(async () => {
    const testing = await Test.createTestingModule({ imports: [AppModule] }).compile();
    app = testing.createNestApplication();
    await app.init();
  });

  afterEach(async () => {
    await app.close();
  });

  it('keeps items in Redis, and hears of what expires', async () => {
    const customer = request.agent(app.getHttpServer());
    await customer.post('/shop/items').send({ item: 'apple' }).expect(201);
    await customer.get('/shop/items').expect(200).expect(['apple']);
    await customer.post('/shop/leave').expect(201);
    await eventually(async () => {
      // Without the cookie: a request of the customer would keep the session alive.
      const { body } = await request(app.getHttpServer()).get('/shop/left-behind');
      expect(body.sort()).toEqual(['apple by @OnEvent', 'apple by @OnSessionEvent']);
    });
  });
});
