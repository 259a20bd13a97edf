import type { INestApplication } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { SessionExpiredEvent } from '@nest-session/core';
import { RedisSessionRepository } from '@nest-session/redis';
import { RedisServer, SessionEventRecorder, sessionOf, signIn } from '@nest-session/testing';
import { AppModule } from '../src/app.module.js';

describe('the shop, with a Redis of its own', () => {
  let redis: RedisServer;
  let app: INestApplication;

  beforeAll(async () => {
    redis = await RedisServer.start();
    process.env['REDIS_URL'] = redis.url;
    const testing = await Test.createTestingModule({
      imports: [AppModule],
      providers: [SessionEventRecorder],
    }).compile();
    app = testing.createNestApplication();
  });

  afterAll(async () => {
    await app?.close();
    await redis?.stop();
  });

  it('keeps every item of concurrent requests', async () => {
    const ada = await signIn(app, { principalName: 'ada' });
    await Promise.all(['apple', 'pear', 'plum'].map((item) => ada.post('/cart', { item })));
    const session = await sessionOf(app, ada);
    expect(session?.getAttribute('items')?.toSorted()).toEqual(['apple', 'pear', 'plum']);
    expect(await app.get(RedisSessionRepository).findByPrincipalName('ada')).toHaveLength(1);
  });

  it('handles the expiry of a session, with its attributes', async () => {
    const cart = { principalName: 'bob', attributes: { items: ['plum'] }, maxInactiveInterval: 1 };
    const bob = await signIn(app, cart);
    const id = (await sessionOf(app, bob))?.id;
    const expired = await app.get(SessionEventRecorder).next(SessionExpiredEvent, id);
    expect(expired.session.getAttribute('items')).toEqual(['plum']);
  });
});
