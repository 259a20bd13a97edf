import type { EventEmitter } from 'node:events';
import { WebSocketGateway } from '@nestjs/websockets';
import { SessionRepository, Sessions } from '@nest-session/core';
import { LeakGuard, SteppableRedisServer } from '@nest-session/test-infrastructure';
import { eventually, type HttpAgent, sessionOf, signIn } from '@nest-session/testing';
import { Redis } from 'ioredis';
import { OpenConnections } from '@nest-session/core/internal';
import { closeApps, PLATFORMS, SocketApp, VisitsGateway } from '../support/socket.app.js';
import { closeClients, connect, type SocketClient } from '../support/socket.client.js';

LeakGuard.install();

const MINUTE = 60_000;

let redis: SteppableRedisServer;
beforeEach(async () => {
  redis = await SteppableRedisServer.start();
});
afterEach(async () => {
  closeClients();
  await closeApps();
  await redis.stop();
});

describe.each(PLATFORMS)('the sockets of %s on another instance', (platform) => {
  let [one, two]: SocketApp[] = [];
  let agent: HttpAgent;
  beforeEach(async () => {
    one = await SocketApp.start({ platform, url: redis.url });
    two = await SocketApp.start({ platform, url: redis.url });
    agent = await signIn(one.nest, { principalName: 'ada' });
  });

  const connectToTwo = (): Promise<SocketClient> => connect(platform, agent, { origin: two!.origin });

  it('are closed when the session is deleted', async () => {
    const clients = await Promise.all(Array.from({ length: 20 }, connectToTwo));
    await agent.post('/logout');
    const reasons = await Promise.all(clients.map(({ closed }) => closed));
    expect(new Set(reasons)).toEqual(new Set([platform === 'ws' ? '4401 session ended' : 'io server disconnect']));
  });

  it('are closed when the session id changes, and do not follow the login', async () => {
    const planted = await connectToTwo();
    await agent.post('/login/bob');
    await planted.closed;
    expect(await (await connectToTwo()).ask('read')).toMatchObject({ user: 'bob' });
  });

  it('are closed when every session ends, although what records the events of their ends has not come to them', async () => {
    const client = await connectToTwo();
    await eventually(() => expect(two!.nest.get(VisitsGateway).connected).toHaveLength(1));
    const admin = new Redis(redis.url);
    try {
      // It looks for the sessions by this command.
      await admin.acl('SETUSER', 'default', '-scan');
      await one!.nest.get(Sessions).endEverySession();
      await client.closed;
      expect(await admin.keys('nest:session:sessions:*')).not.toEqual([]);
      const later = await signIn(one!.nest, { principalName: 'bob' });
      expect(await (await connect(platform, later, { origin: two!.origin })).ask('read')).toMatchObject({
        user: 'bob',
      });
    } finally {
      admin.disconnect();
    }
  });

  it('keep a session alive that they use, and are closed when one that they do not use expires', async () => {
    const client = await connectToTwo();
    await eventually(() => expect(two!.nest.get(VisitsGateway).connected).toHaveLength(1));
    const lastAccess = async () => (await sessionOf(one!.nest, agent))?.lastAccessedTime;
    await redis.stepClock(20 * MINUTE);
    const before = await lastAccess();
    await client.ask('ping');
    expect(await lastAccess()).toBe(before);
    await client.ask('read');
    await eventually(async () => expect(await lastAccess()).toBeGreaterThan(before!));
    await redis.stepClock(20 * MINUTE);
    expect(await client.ask('read')).toMatchObject({ user: 'ada' });
    await eventually(async () => expect(await lastAccess()).toBeGreaterThan(before! + 20 * MINUTE));
    await redis.stepClock(31 * MINUTE);
    await client.closed;
    expect(await lastAccess()).toBeUndefined();
  });

  it('do not handle a message of a session that has ended, whose event has not come yet', async () => {
    const client = await connectToTwo();
    const { id } = (await sessionOf(one!.nest, agent))!;
    const repository = one!.nest.get(SessionRepository, { strict: false });
    const ending = repository.deleteById(id);
    client.tell('visit');
    await ending;
    client.tell('visit');
    await client.closed;
    expect(two!.nest.get(VisitsGateway).visits).toBeLessThan(2);
  });
});

it('sockets whose session is gone are closed when events were missed, and others stay open', async () => {
  const app = await SocketApp.start({ platform: 'ws', url: redis.url });
  // Events are recorded, which Redis will lose.
  const bob = await signIn(app.nest, { principalName: 'bob' });
  const witness = await connect('ws', bob);
  await app.nest.get(SessionRepository, { strict: false }).deleteById((await sessionOf(app.nest, bob))!.id);
  await witness.closed;
  const client = await connect('ws', await signIn(app.nest, { principalName: 'ada' }));
  const stranger = await connect('ws', app.agent());
  await eventually(() => expect(app.nest.get(VisitsGateway).connected).toHaveLength(3));
  await redis.kill();
  // Its positions are before those of the events that were read so far.
  await redis.stepClock(-10 * MINUTE);
  await redis.restart();
  await client.closed;
  expect(stranger.isOpen).toBe(true);
});

it.each(PLATFORMS)(
  'a client of %s with a session is refused while the store is down, and one without is not',
  async (platform) => {
    const app = await SocketApp.start({ platform, url: redis.url, redis: { commandTimeout: '300ms' } });
    const agent = await signIn(app.nest, { principalName: 'ada' });
    const client = await connect(platform, agent);
    await client.ask('read');
    await redis.kill();
    await expect(client.ask('read')).rejects.toThrow('Session store unavailable');
    expect(await client.ask('ping', 'pong')).toBe('pong');
    const cause = expect.objectContaining({ statusCode: 503, reason: 'store-unavailable' });
    await expect(connect(platform, agent)).rejects.toMatchObject({ cause });
    expect((await connect(platform, app.agent())).isOpen).toBe(true);
    await redis.restart();
  },
);

it.each(PLATFORMS)('a client of %s that leaves while its session is loaded leaves nothing behind', async (platform) => {
  const app = await SocketApp.start({ platform, url: redis.url });
  const agent = await signIn(app.nest, { principalName: 'ada' });
  const { id } = (await sessionOf(app.nest, agent))!;
  const connections = app.nest.get(OpenConnections, { strict: false });
  process.kill(redis.pid, 'SIGSTOP');
  const connecting = connect(platform, agent).catch(() => undefined);
  try {
    await eventually(() => expect(connections.ids).toEqual([id]));
    closeClients();
    // A server of ws hears of it only when it has accepted the client.
    if (platform === 'socket.io') await eventually(() => expect(connections.ids).toEqual([]));
  } finally {
    process.kill(redis.pid, 'SIGCONT');
  }
  // Redis replies in order, so the session of the client has been loaded before.
  expect(await sessionOf(app.nest, agent)).toMatchObject({ id });
  await eventually(() => expect(connections.ids).toEqual([]));
  // A client of socket.io that was closed never hears anything.
  if (platform === 'ws') await connecting;
});

it.each(PLATFORMS)('no gateway hears of a client of %s whose session ends during its handshake', async (platform) => {
  const app = await SocketApp.start({ platform, url: redis.url });
  const agent = await signIn(app.nest, { principalName: 'ada' });
  const { id } = (await sessionOf(app.nest, agent))!;
  const connections = app.nest.get(OpenConnections, { strict: false });
  process.kill(redis.pid, 'SIGSTOP');
  const refusal = platform === 'ws' ? '4401 session ended' : 'refused: session ended';
  const connecting = connect(platform, agent).then(
    ({ closed }) => closed,
    ({ message }: Error) => message,
  );
  try {
    await eventually(() => expect(connections.ids).toEqual([id]));
    // The event comes before the reply of the load, which has found the session.
    connections.close(id, 'session ended');
  } finally {
    process.kill(redis.pid, 'SIGCONT');
  }
  expect(await connecting).toBe(refusal);
  expect(app.nest.get(VisitsGateway).connected).toEqual([]);
});

it('a listener of the application that fails keeps no other socket of the session open', async () => {
  @WebSocketGateway({ path: '/sockets' })
  class Failing {
    readonly clients: EventEmitter[] = [];

    handleConnection(client: EventEmitter): void {
      this.clients.push(client);
      client.on('disconnect', () => {
        throw new Error('The listener fails on purpose');
      });
    }
  }
  const app = await SocketApp.start({ platform: 'socket.io', url: redis.url, providers: [Failing] });
  const agent = await signIn(app.nest, { principalName: 'ada' });
  const clients = await Promise.all(Array.from({ length: 3 }, () => connect('socket.io', agent)));
  const gateway = app.nest.get(Failing);
  await eventually(() => expect(gateway.clients).toHaveLength(3));
  await agent.post('/logout');
  await Promise.all(clients.map(({ closed }) => closed));
  expect(app.log.matching(/The listener fails on purpose/)).not.toEqual([]);
  for (const client of gateway.clients) client.removeAllListeners('disconnect');
});
