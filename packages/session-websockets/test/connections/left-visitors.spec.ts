import { randomBytes } from 'node:crypto';
import { SessionRepository } from '@nest-session/core';
import { KeptEntries, LeakGuard } from '@nest-session/test-infrastructure';
import { eventually, RedisServer, sessionOf, signIn } from '@nest-session/testing';
import { closeApps, type Platform, PLATFORMS, SocketApp, type SocketAppOptions } from '../support/socket.app.js';
import { closeClients, connect } from '../support/socket.client.js';

LeakGuard.install();

let redis: RedisServer;
beforeAll(async () => {
  redis = await RedisServer.start();
});
afterEach(async () => {
  closeClients();
  await closeApps();
});
afterAll(() => redis.stop());

/** What visitors do: they sign in, connect, change their sessions at once, leave, sign out or are ended. */
async function visit({ nest }: SocketApp, platform: Platform): Promise<void> {
  const names = ['ada', 'bob', 'eve', 'dan', 'fay'];
  const agents = await Promise.all(names.map((principalName) => signIn(nest, { principalName })));
  const clients = await Promise.all(agents.map((agent) => connect(platform, agent)));
  await Promise.all(clients.flatMap((client) => [client.ask('visit'), client.ask('read')]));
  await Promise.all(agents.flatMap((agent) => [agent.post('/visits/1'), agent.post('/count'), agent.post('/count')]));
  await expect(clients[0]!.ask('fail')).rejects.toThrow();
  await expect(clients[0]!.ask('rotate')).rejects.toThrow();
  const [ada, bob, eve, ...others] = agents;
  await ada!.post('/login/carl');
  await bob!.post('/logout');
  const { id } = (await sessionOf(nest, eve!))!;
  await nest.get(SessionRepository, { strict: false }).deleteById(id);
  await Promise.all(clients.slice(0, 3).map(({ closed }) => closed));
  // The others leave by themselves, and their sessions end later.
  closeClients();
  await Promise.all([ada!, ...others].map((agent) => agent.post('/logout')));
}

/** With one partition, and with all that several and other options need besides. */
const OPTIONS: Readonly<Record<Platform, Partial<SocketAppOptions>>> = {
  'socket.io': {},
  ws: {
    session: { maxSessions: { perPrincipal: 3 }, devices: true },
    redis: { partitions: 4, encryption: { keys: [{ id: 'k1', key: randomBytes(32).toString('base64') }] } },
  },
};

it.each(PLATFORMS)('an application holds no more when visitors over %s have left than before', async (platform) => {
  const { session, redis: ofStore } = OPTIONS[platform];
  const kept = new KeptEntries();
  try {
    const app = await SocketApp.start({
      platform,
      url: redis.url,
      session,
      redis: { namespace: platform, ...ofStore },
    });
    await visit(app, platform);
    const before = kept.counts();
    expect([...before.keys()]).not.toEqual([]);
    for (let again = 0; again < 2; again++) await visit(app, platform);
    // What runs at the time of a reading may hold one entry.
    await eventually(() => expect(kept.grownSince(before, 1)).toEqual([]));
  } finally {
    kept.stop();
  }
});
