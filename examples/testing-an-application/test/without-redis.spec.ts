import type { INestApplication } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { SessionExpiredEvent, SessionIdChangedEvent } from '@nest-session/core';
import { RedisSessionModule } from '@nest-session/redis';
import {
  HttpAgent,
  TestClock,
  SessionEventRecorder,
  sessionOf,
  signIn,
  TestSessionModule,
} from '@nest-session/testing';
import { AppModule } from '../src/app.module.js';
import { Mailer } from '../src/mailer.js';

describe('the shop, without Redis', () => {
  let app: INestApplication;
  const letters: string[] = [];
  const mailer = { send: async (to: string, text: string) => void letters.push(`${to}: ${text}`) };

  beforeEach(async () => {
    const testing = await Test.createTestingModule({ imports: [AppModule] })
      .overrideModule(RedisSessionModule)
      .useModule(TestSessionModule.forRoot())
      .overrideProvider(Mailer)
      .useValue(mailer)
      .compile();
    app = testing.createNestApplication();
  });

  afterEach(async () => {
    await app.close();
    letters.length = 0;
  });

  it('keeps the cart at the sign-in, and rotates the session', async () => {
    const agent = await HttpAgent.for(app);
    await agent.post('/cart', { item: 'apple' });
    const before = await sessionOf(app, agent);
    await agent.post('/login', { name: 'ada' });
    const after = await sessionOf(app, agent);
    expect(after?.getAttribute('items')).toEqual(['apple']);
    expect(after?.id).not.toBe(before?.id);
    const { previousSessionId } = await app.get(SessionEventRecorder).next(SessionIdChangedEvent);
    expect(previousSessionId).toBe(before?.id);
  });

  it('shows orders to signed-in users only', async () => {
    const anybody = await HttpAgent.for(app);
    const ada = await signIn(app, { principalName: 'ada' });
    expect((await anybody.get('/orders')).status).toBe(401);
    expect((await ada.get('/orders')).json()).toEqual({ user: 'ada' });
    await ada.post('/logout');
    expect((await ada.get('/orders')).status).toBe(401);
  });

  it('sends a reminder of a cart that was abandoned for half an hour', async () => {
    await signIn(app, { principalName: 'ada', attributes: { items: ['apple', 'pear'] } });
    await app.get(TestClock).advance('29m');
    expect(letters).toEqual([]);
    await app.get(TestClock).advance('2m');
    expect(letters).toEqual(['ada: You left behind: apple, pear']);
    expect(app.get(SessionEventRecorder).count(SessionExpiredEvent)).toBe(1);
  });
});
