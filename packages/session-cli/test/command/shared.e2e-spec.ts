import { LeakGuard } from '@nest-session/test-infrastructure';
import { RedisServer } from '@nest-session/testing';
import { Redis } from 'ioredis';
import type { App } from '../../../session-redis/test/support/app.fixture.js';
import { startWithSpring } from '../../../session-spring/test/support/spring.app.js';
import { jsonOf, runCommand } from '../support/command.process.js';

LeakGuard.install();

let server: RedisServer;
let app: App;
beforeAll(async () => {
  server = await RedisServer.start();
  app = await startWithSpring({ url: server.url, mode: 'shared' });
  await app.agent().post('/set/color', { value: 'red' });
  await app.events.next('created');
});
afterAll(async () => {
  await app.stop();
  await server.stop();
});

const beside = (command: string) => `${command} --namespace spring:session:nest`;

it('the namespace beside that of Spring has groups, and says what it holds', async () => {
  const { json } = await jsonOf<{ holds: string; groups: { name: string }[] }>(beside('stats'), {
    REDIS_URL: server.url,
  });
  expect(json).toMatchObject({ holds: 'shared-sessions', groups: [{ name: 'default' }] });
});

it('there, doctor looks whether Redis announces what both applications need', async () => {
  const admin = new Redis(server.url);
  try {
    const looked = async () => (await runCommand(beside('doctor'), { REDIS_URL: server.url })).stdout;
    const announced = await looked();
    expect(announced).toContain('Redis announces what happens to sessions of Spring');
    expect(announced).toContain('The shared sessions in namespace "spring:session:nest" are in 1 partition');
    await admin.config('SET', 'notify-keyspace-events', 'Kx');
    const silent = await looked();
    expect(silent).toContain('does not announce what happens to sessions of Spring');
    expect(silent).toContain('Set notify-keyspace-events to Egx');
  } finally {
    admin.disconnect();
  }
});

it.each(['verify', 'verify --repair', 'end --user ann --yes', 'list --user ann'])(
  'there, %s refuses to take it for sessions of ours',
  async (command) => {
    const { code, stderr } = await runCommand(beside(command), { REDIS_URL: server.url });
    expect([code, stderr]).toEqual([1, expect.stringContaining('beside sessions of Spring Session')]);
  },
);
