import { Redis } from 'ioredis';
import { LeakGuard, SteppableRedisServer } from '@nest-session/test-infrastructure';
import { eventually } from '@nest-session/testing';

LeakGuard.install();

describe('SteppableRedisServer', () => {
  const servers: SteppableRedisServer[] = [];
  const clients: Redis[] = [];

  async function start(): Promise<SteppableRedisServer> {
    const server = await SteppableRedisServer.start();
    servers.push(server);
    return server;
  }

  function connect(server: { url: string }): Redis {
    const client = new Redis(server.url, { lazyConnect: true, disconnectTimeout: 10 });
    client.on('error', () => {});
    clients.push(client);
    return client;
  }

  afterEach(async () => {
    for (const client of clients.splice(0)) client.disconnect();
    await Promise.all(servers.splice(0).map((server) => server.stop()));
  });

  const HOUR = 3_600_000;
  const MINUTE = 60_000;

  /** Milliseconds by which the clock of Redis is ahead of the machine's. */
  async function ahead(client: Redis): Promise<number> {
    const [seconds, microseconds] = await client.time();
    return Number(seconds) * 1000 + Number(microseconds) / 1000 - Date.now();
  }

  // Both clocks are read one after the other, on a machine that may be busy.
  const expectAhead = async (client: Redis, ms: number) =>
    expect(Math.abs((await ahead(client)) - ms)).toBeLessThan(10 * MINUTE);

  it('has the time of the machine until it is stepped, and then the new time at once and after a restart', async () => {
    const server = await start();
    const client = connect(server);
    await expectAhead(client, 0);
    await server.stepClock(2 * HOUR);
    await expectAhead(client, 2 * HOUR);
    await server.restart();
    await expectAhead(client, 2 * HOUR);
    await server.stepClock(-5 * HOUR - 1);
    await expectAhead(client, -3 * HOUR);
    await server.stop();
    await server.restart();
    await expectAhead(client, -3 * HOUR);
  });

  it('expires keys by that time', async () => {
    const server = await start();
    const client = connect(server);
    await client.set('hour', '', 'PX', HOUR);
    await client.set('minute', '', 'PX', MINUTE);
    await client.set('two hours', '', 'PX', 2 * HOUR);
    await server.stepClock(HOUR + MINUTE);
    await expect(client.exists('hour', 'minute')).resolves.toBe(0);
    await expect(client.exists('two hours')).resolves.toBe(1);
    await server.stepClock(-3 * HOUR);
    await expect(client.pttl('two hours')).resolves.toBeGreaterThan(3 * HOUR);
  });

  it('uses the same time in scripts and in the ids of streams', async () => {
    const server = await start();
    const client = connect(server);
    await server.stepClock(2 * HOUR);
    const inScript = await client.eval("return redis.call('TIME')[1]", 0);
    expect(Number(inScript) * 1000 - Date.now()).toBeGreaterThan(HOUR);
    const id = await client.xadd('stream', '*', 'a', '1');
    expect(Number.parseInt(id!) - Date.now()).toBeGreaterThan(HOUR);
  });

  it('stands still once it is stopped, also after a restart, and then moves only when it is stepped', async () => {
    const server = await start();
    const client = connect(server);
    const now = () => client.time().then(([seconds, microseconds]) => Number(seconds) * 1e6 + Number(microseconds));
    await server.stepClock(2 * HOUR);
    await server.stopClock();
    const stopped = await now();
    expect(Math.abs(stopped / 1000 - Date.now() - 2 * HOUR)).toBeLessThan(10 * MINUTE);
    await client.set('second', '', 'PX', 1000);
    // The clock of the machine moves on.
    await eventually(() => Date.now() + 2 * HOUR > stopped / 1000 + 50);
    expect(await now()).toBe(stopped);
    expect(await client.pttl('second')).toBe(1000);
    await server.stepClock(1000);
    expect(await now()).toBe(stopped + 1_000_000);
    expect(await client.pttl('second')).toBe(0);
    await server.stepClock(1);
    expect(await client.exists('second')).toBe(0);
    await server.restart();
    expect(await now()).toBe(stopped + 1_001_000);
  });

  it('fails with what to install when there is no compiler', async () => {
    const before = process.env['PATH'];
    process.env['PATH'] = '/nowhere';
    try {
      await expect(start()).rejects.toThrow(/apt-get install gcc libc6-dev.*ENOENT/);
    } finally {
      process.env['PATH'] = before;
    }
  });
});
