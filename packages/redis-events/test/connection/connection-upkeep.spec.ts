import { jest } from '@jest/globals';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { RedisServer } from '@nest-session/testing';
import { ConnectionUpkeep } from '../../src/namespace/store-connections.js';
import { closeConnections, createConnections } from '../../src/connection/redis-connections.js';

LeakGuard.install();

it('a question goes over each connection that has sent nothing since the last look, and over no other one', async () => {
  const server = await RedisServer.start();
  const rules = { namespace: 'nest:session', commandTimeout: 1000, replicas: 1, requireAtStart: false };
  const connections = createConnections({ connection: { url: server.url, tls: undefined }, ...rules });
  const [request, writes] = [connections.request.of(undefined)!, connections.writes.of(undefined)!];
  const clients = { request, writes, background: connections.background };
  try {
    await Promise.all(Object.values(clients).map((client) => client.connect()));
    const upkeep = new ConnectionUpkeep(connections, undefined);
    const asked = async () => {
      const spies = Object.entries(clients).map(([name, client]) => [name, jest.spyOn(client, 'time')] as const);
      upkeep.look();
      const names = spies.flatMap(([name, spy]) => (spy.mock.calls.length > 0 ? [name] : []));
      await Promise.all(spies.flatMap(([, spy]) => spy.mock.results.map(({ value }) => value as Promise<unknown>)));
      for (const [, spy] of spies) spy.mockRestore();
      return names;
    };
    await Promise.all(Object.values(clients).map((client) => client.get('used')));
    expect(await asked()).toEqual([]);
    for (let silence = 1; silence <= 2; silence++) {
      expect(await asked()).toEqual(['request', 'writes', 'background']);
      // A question is a use.
      expect(await asked()).toEqual([]);
    }
    await writes.get('used');
    expect(await asked()).toEqual(['request', 'background']);
  } finally {
    await closeConnections(connections);
    await server.stop();
  }
});
