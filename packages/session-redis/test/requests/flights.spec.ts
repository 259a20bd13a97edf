import { generateSessionKey } from '@nest-session/core/internal';
import { RedisSessionRepository } from '@nest-session/redis';
import { LeakGuard, TcpProxy } from '@nest-session/test-infrastructure';
import { RedisServer } from '@nest-session/testing';
import { LivingInstances } from '../../../redis-events/src/namespace/living-instances.js';
import { PartitionSignals } from '../../../redis-events/src/connection/partition-signals.js';
import { OlderSessionSweeper, SessionEpochsListener } from '../../src/repository/session-epochs.js';
import type { BackgroundService } from '../../../redis-events/src/timing/background-service.js';
import { App } from '../support/app.fixture.js';

LeakGuard.install();

/** Never during a test: without the job and the other services, only requests send commands to Redis. */
const NEVER = '0 0 0 29 2 *';

describe.each([1, 4])('round trips between the application and Redis, with %d partitions,', (partitions) => {
  let server: RedisServer;
  let proxy: TcpProxy;
  let app: App;
  beforeAll(async () => {
    server = await RedisServer.start();
    proxy = await TcpProxy.start({ port: server.port });
    const silence = { notifications: 'off', cleanup: { cron: NEVER }, events: { consume: false } } as const;
    const redis = { url: proxy.url, partitions, ...silence };
    app = await App.start({ redis, handlers: false });
    for (const service of [OlderSessionSweeper, SessionEpochsListener, LivingInstances, PartitionSignals]) {
      await app.nest.get<BackgroundService>(service, { strict: false }).stop();
    }
    proxy.countFlights();
  });
  afterAll(async () => {
    await app.stop();
    await proxy.stop();
    await server.stop();
  });

  it.each([
    ['no cookie', undefined],
    ['a malformed cookie', 'SESSION=nonsense'],
    ['a cookie of 9 KB', `SESSION=${'a'.repeat(9 * 1024)}`],
    ['other cookies of 9 KB', `other=${'a'.repeat(9 * 1024)}`],
    ['an encoded cookie', 'SESSION=%0d%0a%00expires%3Ax'],
    ['a key name', 'SESSION=expires:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA'],
  ])('are none for %s', async (_, cookie) => {
    const headers = cookie === undefined ? {} : { cookie };
    let status = 0;
    const flights = await proxy.flightsDuring(async () => {
      status = (await app.agent().get('/read', { headers })).status;
    });
    expect(status).toBe(200);
    expect(flights).toBe(0);
  });

  it('are one for a read, two for a write, two for a login', async () => {
    const agent = app.agent();
    expect(await proxy.flightsDuring(() => agent.post('/set/a', { value: 1 }))).toBe(1);
    expect(await proxy.flightsDuring(() => agent.get('/read'))).toBe(1);
    expect(await proxy.flightsDuring(() => agent.get('/plain'))).toBe(1);
    expect(await proxy.flightsDuring(() => agent.post('/set/b', { value: 1 }))).toBe(2);
    expect(await proxy.flightsDuring(() => agent.post('/push/x'))).toBe(2);
    expect(await proxy.flightsDuring(() => agent.post('/login/ann'))).toBe(2);
    expect(await proxy.flightsDuring(() => agent.post('/logout'))).toBe(2);
  });

  it('are two to replace a session that has ended, and three across partitions', async () => {
    const others = new Set<number>();
    for (let round = 0; round < 40; round++) {
      const agent = app.agent();
      const headers = { cookie: `SESSION=${generateSessionKey().token.reveal()}` };
      others.add(await proxy.flightsDuring(() => agent.post('/set/a', { value: 1 }, { headers })));
    }
    expect(others).toEqual(new Set(partitions === 1 ? [2] : [2, 3]));
  });

  it('are one for five session cookies, of which the last opens the session', async () => {
    const agent = app.agent();
    await agent.post('/set/a', { value: 1 });
    const unknown = Array.from({ length: 4 }, () => generateSessionKey().token.reveal());
    const cookie = [...unknown, agent.cookie('SESSION')].map((token) => `SESSION=${token}`).join('; ');
    const flights = await proxy.flightsDuring(async () => {
      const response = await app.agent().get('/read', { headers: { cookie } });
      expect(response.json()).toMatchObject({ attributes: { a: 1 } });
    });
    expect(flights).toBe(1);
  });

  it('are one write for all loads of a turn, and two for the sessions of a principal', async () => {
    const sessions = app.nest.get(RedisSessionRepository, { strict: false });
    const open = async () => {
      const session = sessions.createSession();
      session.principalName = 'many';
      await session.save();
      return session.id;
    };
    const ids = await Promise.all(Array.from({ length: 20 }, open));
    let writes = 0;
    const stop = proxy.onData('request', () => writes++);
    const found = await Promise.all([sessions.findByIds(ids), ...ids.map((id) => sessions.findById(id))]);
    expect(found.flat().map((session) => session?.id)).toEqual([...ids, ...ids]);
    expect(writes).toBe(1);
    expect(await sessions.findByPrincipalName('many')).toHaveLength(20);
    stop();
    expect(writes).toBe(3);
  });
});
