import { text } from 'node:stream/consumers';
import { Controller, Get, Post } from '@nestjs/common';
import type { NestExpressApplication } from '@nestjs/platform-express';
import { Test } from '@nestjs/testing';
import { Authenticated, DeviceBound, Session, Sessions, SessionModule } from '@nest-session/core';
import { HttpAgent, TestClock, TestSessionModule } from '../src/index.js';

@Controller()
class ShopController {
  @Post('sign-in')
  signIn(@Session() session: Session) {
    session.signIn('ann');
  }

  @Authenticated()
  @Get('account')
  account(@Session() { principalName, device }: Session) {
    return { of: principalName, isBound: device?.bound ?? false };
  }

  @DeviceBound()
  @Post('transfer')
  transfer() {
    return 'done';
  }
}

let app: NestExpressApplication;
let clock: TestClock;
let browser: HttpAgent;
beforeEach(async () => {
  const imports = [SessionModule.forRoot({ deviceBound: { mode: 'enforce' } }), TestSessionModule.forRoot()];
  const testing = await Test.createTestingModule({ imports, controllers: [ShopController] }).compile();
  app = testing.createNestApplication<NestExpressApplication>();
  app.set('trust proxy', 'loopback');
  browser = await HttpAgent.for(app, { bindsSessions: true });
  clock = app.get(TestClock);
  expect((await browser.post('/sign-in')).status).toBe(201);
  expect((await browser.get('/account')).json()).toEqual({ of: 'ann', isBound: true });
});
afterEach(() => app.close());

it('proves its key before each request that would leave without a proof', async () => {
  for (let i = 0; i < 3; i++) {
    await clock.advance('11m');
    expect((await browser.post('/transfer')).text).toBe('done');
  }
  expect(browser.origin).toMatch(/^https:/);
});

it('proves it before a response that the test reads itself, and registers where that says so', async () => {
  await clock.advance('11m');
  const message = await browser.open('POST', '/transfer');
  expect([message.statusCode, await text(message)]).toEqual([201, 'done']);
  await browser.post('/sign-in');
  (await browser.open('POST', '/sign-in')).resume();
  expect((await browser.post('/transfer')).text).toBe('done');
});

it('has a fork with its cookies, which cannot prove it', async () => {
  await clock.advance('2m');
  const thief = browser.fork();
  expect((await thief.get('/account')).status).toBe(200);
  await clock.advance('11m');
  expect((await thief.get('/account')).status).toBe(401);
  expect((await browser.get('/account')).status).toBe(200);
});

it('is bound anew after another sign-in, and forgets a binding that is over', async () => {
  await browser.post('/sign-in');
  await clock.advance('11m');
  expect((await browser.post('/transfer')).text).toBe('done');
  await app.get(Sessions).endAll('ann');
  await clock.advance('11m');
  expect((await browser.get('/account')).status).toBe(401);
  await browser.post('/sign-in');
  await browser.get('/account');
  expect((await browser.post('/transfer')).text).toBe('done');
});

it('binds nothing as other clients', async () => {
  const other = await HttpAgent.for(app, { secure: true });
  await other.post('/sign-in');
  expect((await other.get('/account')).json()).toEqual({ of: 'ann', isBound: false });
});
