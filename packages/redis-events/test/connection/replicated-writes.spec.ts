import { setImmediate as nextTurn } from 'node:timers/promises';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { RedisServer } from '@nest-session/testing';
import { Redis } from 'ioredis';
import { ReplicatedWrites } from '../../src/connection/request.connection.js';
import { commandStats } from '../../../session-redis/test/support/command.stats.js';

LeakGuard.install();

/** Milliseconds that Redis waits for a replica. There is none. */
const TIMEOUT = 1;

let server: RedisServer;
let direct: Redis;
let connection: Redis;
let writes: ReplicatedWrites;
beforeAll(async () => {
  server = await RedisServer.start();
  direct = new Redis(server.url);
});
beforeEach(async () => {
  await direct.call('ACL', 'SETUSER', 'writer', 'on', '>secret', '~*', '&*', '+@all');
  const user = { username: 'writer', password: 'secret' };
  const rules = { autoResendUnfulfilledCommands: false, retryStrategy: () => 10 };
  connection = new Redis(server.port, { ...user, ...rules }).on('error', () => undefined);
  await connection.ping();
  writes = new ReplicatedWrites(connection, 1, TIMEOUT);
});
afterEach(() => connection.disconnect());
afterAll(async () => {
  direct.disconnect();
  await server.stop();
});

const waits = async () => (await commandStats(direct)).get('wait')?.calls ?? 0;

it('writes go on as before each time that Redis has refused to wait, and each time that too few replicas replied', async () => {
  for (let round = 1; round <= 3; round++) {
    await direct.call('ACL', 'SETUSER', 'writer', '-wait');
    await expect(writes.client.set('a', round)).rejects.toThrow('Redis cannot wait for replicas: NOPERM');
    expect(writes.turn).toBeUndefined();
    await direct.call('ACL', 'SETUSER', 'writer', '+wait');
    await expect(writes.client.set('a', round)).rejects.toThrow('0 of the 1 replicas');
    expect(writes.turn).toBeUndefined();
    expect(await direct.get('a')).toBe(`${round}`);
  }
});

it('no replicas are waited for on the next connection for what was sent on the last one, each time', async () => {
  await direct.config('RESETSTAT');
  for (let round = 1; round <= 2; round++) {
    const lost = writes.client.set('a', 'lost');
    // In the turn of the event loop in which the command was sent.
    connection.emit('close');
    await expect(lost).rejects.toThrow('The connection was lost');
    await nextTurn();
    expect(writes.turn).toBeUndefined();
    await connection.ping();
    expect(await waits()).toBe(round - 1);
    await expect(writes.client.set('a', 'kept')).rejects.toThrow('0 of the 1 replicas');
  }
});
