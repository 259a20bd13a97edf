import { Controller, Get, Post } from '@nestjs/common';
import { PRINCIPAL_NAME_INDEX_NAME, Session } from '@nest-session/core';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { RedisServer } from '@nest-session/testing';
import { Redis } from 'ioredis';
import { SessionKeys } from '../../src/keys/session-keys.js';
import { App } from '../support/app.fixture.js';
import { hashOfValue } from '../support/hash-of-value.js';

LeakGuard.install();

const ROUNDS = 40;

const bound = (session: Session) => session.attributeNames.filter((name) => name.startsWith('nest-session.visitor.'));

@Controller('race')
class RaceController {
  @Post('start')
  start(@Session() session: Session) {
    session.setAttribute('nest-session.visitor.token', 'known');
    session.setAttribute('items', []);
  }

  @Post('plant')
  async plant(@Session() session: Session) {
    session.setAttribute('nest-session.visitor.other', 'planted');
    session.setAttribute('captcha', 'planted');
    await session.save();
    await session.updateAttribute('nest-session.visitor.token', () => 'planted');
    await session.updateAttribute<string[]>('items', (items = []) => [...items, 'late']);
    return { isNew: session.isNew };
  }

  @Post('sign-in')
  signIn(@Session() session: Session) {
    session.signIn('victim');
  }

  @Get('view')
  view(@Session() session: Session) {
    const { principalName, authenticatedAt } = session;
    return {
      principalName,
      authenticatedAt,
      bound: bound(session),
      captcha: session.getAttribute('captcha'),
      items: session.getAttribute('items'),
    };
  }
}

describe.each([
  ['express', 1],
  ['fastify', 16],
] as const)('an attacker with a planted token, on %s with %d partitions,', (adapter, partitions) => {
  let server: RedisServer;
  let client: Redis;
  let apps: readonly [App, App];
  beforeAll(async () => {
    server = await RedisServer.start();
    client = new Redis(server.url);
    const redis = {
      url: server.url,
      namespace: adapter,
      partitions,
      notifications: 'off',
      commandTimeout: '1m',
    } as const;
    const session = { visitorAttributes: ['captcha'] };
    const start = () => App.start({ adapter, redis, session, controllers: [RaceController], handlers: false });
    apps = [await start(), await start()];
  });
  afterAll(async () => {
    await Promise.all(apps.map((app) => app.stop()));
    client.disconnect();
    await server.stop();
  });

  it(`plants nothing that is bound to the visitor in a session that signs in meanwhile, ${ROUNDS} rounds`, async () => {
    const [here, there] = apps;
    for (let round = 0; round < ROUNDS; round++) {
      const victim = here.agent();
      await victim.post('/race/start');
      const attackers = Array.from({ length: 3 }, () => {
        const agent = there.agent();
        agent.setCookie(`SESSION=${victim.cookie('SESSION')}`);
        return agent.post('/race/plant');
      });
      const [login] = await Promise.all([victim.post('/race/sign-in'), ...attackers]);
      expect([login.status, login.setCookies.length]).toEqual([201, 1]);
      const view = (await victim.get('/race/view')).json();
      expect(view).toMatchObject({ principalName: 'victim', authenticatedAt: expect.any(Number), bound: [] });
      expect(view).not.toHaveProperty('captcha');
    }
    const keys = new SessionKeys(adapter);
    if (partitions === 1)
      expect(await client.exists(keys.index(PRINCIPAL_NAME_INDEX_NAME, hashOfValue('victim')))).toBe(1);
  });
});
