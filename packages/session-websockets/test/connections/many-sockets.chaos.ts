import { SessionRepository } from '@nest-session/core';
import { RedisServer, sessionOf, signIn } from '@nest-session/testing';
import { closeApps, PLATFORMS, SocketApp } from '../support/socket.app.js';
import { closeClients, connect, type SocketClient } from '../support/socket.client.js';

// Without LeakGuard: it records the stack of everything that is opened, which costs more than what is measured here.

const SOCKETS = 500;
const A_SECOND = 1000;

let redis: RedisServer;
beforeEach(async () => {
  redis = await RedisServer.start();
});
afterEach(async () => {
  closeClients();
  await closeApps();
  await redis.stop();
});

describe.each(PLATFORMS)(`${SOCKETS} sockets of a session on another instance of %s`, (platform) => {
  async function connectAll() {
    const one = await SocketApp.start({ platform, url: redis.url });
    const two = await SocketApp.start({ platform, url: redis.url });
    const agent = await signIn(one.nest, { principalName: 'ada' });
    const clients: SocketClient[] = [];
    // A browser does not open them all at once either.
    while (clients.length < SOCKETS) {
      const batch = Array.from({ length: 50 }, () => connect(platform, agent, { origin: two.origin }));
      clients.push(...(await Promise.all(batch)));
    }
    return { one, agent, clients };
  }

  it('are closed within a second of a sign-out', async () => {
    const { agent, clients } = await connectAll();
    const begin = performance.now();
    await agent.post('/logout');
    await Promise.race(clients.map(({ closed }) => closed));
    const first = performance.now() - begin;
    await Promise.all(clients.map(({ closed }) => closed));
    const took = performance.now() - begin;
    process.stdout.write(
      `\n  ${platform}: ${SOCKETS} sockets closed in ${took.toFixed(0)} ms, first ${first.toFixed(0)}\n`,
    );
    expect(took).toBeLessThan(A_SECOND);
  });

  it('are closed within a second of its expiry, with notifications', async () => {
    const { one, agent, clients } = await connectAll();
    const repository = one.nest.get(SessionRepository, { strict: false });
    const session = (await sessionOf(one.nest, agent))!;
    session.maxInactiveInterval = 1;
    const begin = performance.now();
    await repository.save(session);
    await Promise.race(clients.map(({ closed }) => closed));
    const first = performance.now() - begin;
    await Promise.all(clients.map(({ closed }) => closed));
    const took = performance.now() - begin - A_SECOND;
    process.stdout.write(
      `\n  ${platform}: ${SOCKETS} sockets closed ${took.toFixed(0)} ms after the expiry, first ${(first - A_SECOND).toFixed(0)}\n`,
    );
    expect(took).toBeLessThan(A_SECOND);
  });
});
