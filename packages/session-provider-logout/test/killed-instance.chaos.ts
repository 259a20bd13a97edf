import { fileURLToPath } from 'node:url';
import { SessionRepository, Sessions } from '@nest-session/core';
import { LeakGuard, TcpProxy } from '@nest-session/test-infrastructure';
import { eventually, freePort, HttpAgent, RedisServer } from '@nest-session/testing';
import { WorkerProcess } from '../../session-redis/test/support/worker.process.js';
import { IdentityProvider } from './support/identity.provider.js';
import { closeApps, LogoutApp } from './support/logout.app.js';

LeakGuard.install();
afterEach(closeApps);

const PROGRAM = fileURLToPath(new URL('support/logout.worker.mjs', import.meta.url));
const COUNT = 1000;

/** Of a session by the index that lists it. */
const isDeletion = (burst: string) => burst.includes('nest-session.provider-sub') && !burst.includes(':index:');

it('a logout whose instance is killed in the middle is finished by another one', async () => {
  const [provider, server] = await Promise.all([IdentityProvider.start(), RedisServer.start()]);
  const proxy = await TcpProxy.start(server);
  const app = await LogoutApp.start({
    issuers: [{ issuer: provider.issuer, audience: 'shop' }],
    redis: { url: server.url, partitions: 4 },
  });
  const port = await freePort();
  const settings = { REDIS_URL: proxy.url, ISSUER: provider.issuer, PORT: String(port) };
  const worker = await WorkerProcess.start(settings, { program: PROGRAM });
  try {
    const repository = app.nest.get<SessionRepository>(SessionRepository, { strict: false });
    const signIn = async () => {
      const session = repository.createSession();
      session.signIn('ann', { provider: { iss: provider.issuer, sub: 'ann' } });
      await session.save();
    };
    for (let i = 0; i < COUNT; i += 100) await Promise.all(Array.from({ length: 100 }, signIn));
    const token = await provider.logoutToken({ sub: 'ann' });
    const headers = { 'Content-Type': 'application/x-www-form-urlencoded' };
    // It does not learn that the first hundred have ended.
    proxy.hold('reply', (burst) => isDeletion(burst.toString('latin1')));
    const killed = new HttpAgent(`http://127.0.0.1:${port}`).post('/session/provider/logout', `logout_token=${token}`, {
      headers,
    });
    const failed = killed.then(
      ({ status }) => status,
      () => 'no answer',
    );
    const left = () => app.nest.get(Sessions).count('ann');
    await eventually(async () => expect(await left()).toBeLessThan(COUNT), { timeout: 120_000, interval: 1 });
    await worker.end('SIGKILL');
    expect(await failed).toBe('no answer');
    const remaining = await left();
    expect(remaining).toBeGreaterThan(0);
    const answer = await app.logOut(token);
    expect([answer.status, answer.json()]).toEqual([200, { ended: remaining }]);
    expect(await left()).toBe(0);
    await eventually(() => expect(new Set(app.told.ended.map(({ sessionId }) => sessionId)).size).toBe(COUNT), {
      timeout: 120_000,
    });
    expect(app.told.ended).toHaveLength(COUNT);
  } finally {
    await worker.end();
    await closeApps();
    await proxy.stop();
    await Promise.all([provider.stop(), server.stop()]);
  }
});
