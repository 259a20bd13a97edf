import { Test } from '@nestjs/testing';
import { IndexedSessionRepository, SessionModule, type SessionModuleOptions, Sessions } from '@nest-session/core';
import { DeadlineModule, Deadlines } from '@nest-session/deadlines';
import { RedisSessionModule } from '@nest-session/redis';
import { RedisDeadlineModule } from '@nest-session/deadlines/redis';
import { SpringSessionModule, type SpringSessionModuleOptions, springSessions } from '@nest-session/spring';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { RedisServer, TestSessionModule } from '@nest-session/testing';
import { Redis } from 'ioredis';
import { SpringWriter } from './support/spring-writer.js';

LeakGuard.install();

let server: RedisServer;
let client: Redis;
beforeAll(async () => {
  server = await RedisServer.start();
  client = new Redis(server.url);
});
afterAll(async () => {
  client.disconnect();
  await server.stop();
});

type Imports = NonNullable<Parameters<typeof Test.createTestingModule>[0]['imports']>;

const sessions = (options: SessionModuleOptions = springSessions()) => SessionModule.forRoot(options);

async function start(...imports: Imports) {
  const module = await Test.createTestingModule({ imports }).compile();
  return module.init();
}

it.each(['read', 'shared'] as const)('takes injected options, with mode %s', async (mode) => {
  const id = await new SpringWriter(client).create({ color: 'red' });
  const useFactory = async (): Promise<SpringSessionModuleOptions> => ({
    url: server.url,
    mode,
    commandTimeout: '30s',
  });
  const app = await start(sessions(), SpringSessionModule.forRootAsync({ useFactory }));
  try {
    const found = await app.get(IndexedSessionRepository, { strict: false }).findById(id);
    expect(found!.getAttribute('color')).toBe('red');
  } finally {
    await app.close();
  }
});

it.each<[string, () => Imports, RegExp]>([
  [
    'twice',
    () => [sessions(), springWith('read'), springWith('shared')],
    /SpringSessionModule.*configured twice in this application/s,
  ],
  ['as a class', () => [sessions(), SpringSessionModule], /write SpringSessionModule\.forRoot\(\) in the imports/],
  [
    'beside RedisSessionModule',
    () => [sessions(), springWith('shared'), RedisSessionModule.forRoot({ url: server.url })],
    /several stores for the sessions: (SpringSessionModule and RedisSessionModule|RedisSessionModule and SpringSessionModule)/,
  ],
  ['without SessionModule', () => [springWith('read')], /SpringSessionModule.*SessionModule is missing/s],
])('refuses to be imported %s', async (_, imports, problem) => {
  await expect(start(...imports())).rejects.toThrow(problem);
});

it.each([
  [{ mode: undefined }, /Option `mode` must be 'read' or 'shared'/],
  [{ mode: 'write' }, /Option `mode` must be 'read' or 'shared'/],
  [{ mode: 'shared', serializer: {} }, /Option `serializer` must be a SpringJsonSerializer of @nest-session\/spring/],
  [{ mode: 'shared', encryption: {} }, /Unknown option `encryption`: the sessions have the form of Spring Session/],
  [{ mode: 'read', replicas: 1 }, /Unknown option `replicas`: it has no effect with `mode: 'read'`/],
  [
    { mode: 'read', ownClasses: ['com.example.Account'] },
    /Option `ownClasses` must be an object of fields by the full/,
  ],
  [{ mode: 'read', ownClasses: { Account: 'email' } }, /Option `ownClasses` must be an object of fields by the full/],
  [{ mode: 'shared', ownClasses: { 'com.example.Account': 1 } }, /Option `ownClasses` must be an object of fields/],
  [{ mode: 'read', namspace: 'a' }, /Unknown option `namspace`: known are mode, /],
])('refuses %j', async (options, problem) => {
  const wrong = { url: server.url, ...options } as unknown as SpringSessionModuleOptions;
  await expect(start(sessions(), SpringSessionModule.forRoot(wrong))).rejects.toThrow(problem);
});

it('is replaced in a test, by its name', async () => {
  const unreachable = SpringSessionModule.forRoot({ url: 'redis://127.0.0.1:1', mode: 'shared' });
  const building = Test.createTestingModule({ imports: [sessions(), unreachable] });
  const module = await building.overrideModule(SpringSessionModule).useModule(TestSessionModule.forRoot()).compile();
  const app = await module.init();
  expect(await app.get(Sessions, { strict: false }).count('ann')).toBe(0);
  await app.close();
});

it('lets deadlines use its connections', async () => {
  const app = await start(sessions(), springWith('read'), DeadlineModule.forRoot(), RedisDeadlineModule.forRoot());
  try {
    expect(app.get(Deadlines, { strict: false })).toBeDefined();
    const names = [...String(await client.client('LIST')).matchAll(/ name=(\S+)/g)].map(([, name]) => name);
    expect(names).toContain('spring:session:background');
    expect(names).not.toContain('nest:deadlines:background');
  } finally {
    await app.close();
  }
});

function springWith(mode: 'read' | 'shared') {
  return SpringSessionModule.forRoot({ url: server.url, mode });
}
