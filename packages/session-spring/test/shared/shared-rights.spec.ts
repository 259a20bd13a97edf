import { IndexedSessionRepository, Sessions } from '@nest-session/core';
import { type HealthLook, SESSION_HEALTH } from '@nest-session/core/internal';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually, RedisServer } from '@nest-session/testing';
import { Redis } from 'ioredis';
import type { App } from '../../../session-redis/test/support/app.fixture.js';
import { startWithSpring } from '../support/spring.app.js';
import { calledBy, scriptsThatRan } from '../../../redis-events/test/support/called.commands.js';
import { documentedCommands, type RightsName } from '../../../session-redis/test/support/documented.rights.js';
import { SpringWriter } from '../support/spring-writer.js';
import { WatchedRights } from '../../../session-redis/test/support/watched-rights.js';

LeakGuard.install();

const RIGHTS: RightsName[] = ['spring shared', 'handlers'];
/** What an instance may run, with handlers. */
const SCRIPTS = [
  ...['create', 'change', 'delete'].map((verb) => `shared/${verb}-shared-session`),
  'shared/look-at-shared-sessions',
  'session/leave-revocation-mark',
  ...['create-group', 'look-at-groups', 'remove-consumer', 'take-cleanup-turn'].map((name) => `stream/${name}`),
  ...['trim-events', 'trim-dead-letters'].map((name) => `stream/${name}`),
  ...['raise-format', 'sign-instance'].map((name) => `namespace/${name}`),
  ...['acknowledge-events', 'pick-up-events', 'register-handlers', 'release-events'].map((name) => `delivery/${name}`),
  ...['renew-lease', 'retry-or-dead-letter', 'want-events'].map((name) => `delivery/${name}`),
];

let server: RedisServer;
let admin: Redis;
let rights: WatchedRights;
beforeAll(async () => {
  server = await RedisServer.start();
  admin = new Redis(server.url);
  rights = await WatchedRights.watch(admin, server.url);
});
afterAll(async () => {
  rights.stop();
  admin.disconnect();
  await server.stop();
});

function start(): Promise<App> {
  const url = server.url.replace('//', '//app:a-long-secret@');
  return startWithSpring({ url, mode: 'shared', cleanup: { cron: '* * * * * *' } });
}

/** What requests and the background of an application do, beside Spring. */
async function live(app: App): Promise<void> {
  const get = <T>(token: { readonly prototype: T }) => app.nest.get<T>(token as never, { strict: false });
  const repository = get(IndexedSessionRepository);
  const agent = app.agent();
  await agent.post('/set/color', { value: 'red' });
  await agent.post('/push/a');
  await agent.post('/login/ann');
  await agent.get('/read');
  const [session] = await repository.findByPrincipalName('ann');
  await repository.touch(session!);
  for await (const { id } of get(Sessions).ofPrincipal('ann')) expect(id).toBe(session!.id);
  await get(Sessions).endAll('ann');
  const spring = new SpringWriter(admin);
  const [renamed, expiring] = [await spring.create({ color: 'blue' }), await spring.create({}, 1)];
  await eventually(() => expect(app.events.all().map(({ type }) => type)).toContain('created'));
  await spring.invalidate(await spring.changeId(renamed));
  await eventually(() => {
    const told = app.events.all().filter(({ sessionId }) => sessionId === expiring);
    expect(told.map(({ type }) => type)).toEqual(['created', 'expired']);
  });
  await admin.zadd('spring:session:sessions:expirations', 1, `"${expiring}"`);
  await agent.post('/set/color', { value: 'red' });
  await eventually(async () => expect(await scriptsThatRan(admin)).toContain('stream/trim-events'));
  const health = app.nest.get<HealthLook>(SESSION_HEALTH, { strict: false });
  expect(await health.look(0)).toMatchObject({ state: 'up' });
  // Every ten seconds.
  await eventually(() => expect(rights.sent).toContain('ping'));
}

it('needs all documented rights and no others', async () => {
  await admin.config('SET', 'notify-keyspace-events', 'Egx');
  // The start looks at it.
  await new SpringWriter(admin).create({}, 1800, { tells: false });
  await rights.grant(RIGHTS);
  const app = await start();
  try {
    await live(app);
  } finally {
    await app.stop();
  }
  expect(await rights.denied()).toEqual([]);
  expect(SCRIPTS).toEqual(expect.arrayContaining(await scriptsThatRan(admin)));
  const needed = new Set([...(await rights.commandsSent()), ...calledBy(SCRIPTS)]);
  // Only with several partitions.
  needed.delete('spublish');
  expect([...needed].toSorted()).toEqual(documentedCommands(RIGHTS).toSorted());
});
