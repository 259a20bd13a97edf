import { once } from 'node:events';
import { createConnection, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { Redis, type RedisOptions } from 'ioredis';
import { LeakGuard, TcpProxy } from '@nest-session/test-infrastructure';
import { eventually, RedisServer } from '@nest-session/testing';

LeakGuard.install();

describe('TcpProxy in front of Redis', () => {
  let redis: RedisServer;
  let direct: Redis;
  let proxy: TcpProxy;
  const clients: Redis[] = [];

  /** A client without retries, so that a fault shows as an error. */
  async function connect(options: RedisOptions = {}): Promise<Redis> {
    const client = new Redis(proxy.url, {
      lazyConnect: true,
      disconnectTimeout: 10,
      retryStrategy: () => null,
      autoResendUnfulfilledCommands: false,
      ...options,
    });
    client.on('error', () => {});
    clients.push(client);
    await client.connect();
    return client;
  }

  beforeAll(async () => {
    redis = await RedisServer.start();
    direct = new Redis(redis.url);
  });

  afterAll(async () => {
    direct.disconnect();
    await redis.stop();
  });

  beforeEach(async () => {
    await direct.flushall();
    proxy = await TcpProxy.start(redis);
  });

  afterEach(async () => {
    for (const client of clients.splice(0)) client.disconnect();
    await proxy.stop();
  });

  describe('flights', () => {
    it('counts one for a command and its reply', async () => {
      const client = await connect();
      proxy.resetFlights();
      await client.set('key', 'value');
      expect(proxy.flights).toBe(1);
      await client.get('key');
      expect(proxy.flights).toBe(2);
    });

    it('counts one for commands that are sent together, two when the second waits for a reply', async () => {
      const client = await connect();
      await expect(proxy.flightsDuring(() => Promise.all([client.set('a', 1), client.get('a')]))).resolves.toBe(1);
      await expect(
        proxy.flightsDuring(async () => {
          await client.set('a', 1);
          await client.get('a');
        }),
      ).resolves.toBe(2);
    });

    it('counts one for a request and a reply of many packets', async () => {
      const client = await connect();
      const big = 'x'.repeat(4 * 1024 * 1024);
      await expect(proxy.flightsDuring(() => client.set('big', big))).resolves.toBe(1);
      await expect(
        proxy.flightsDuring(async () => expect((await client.get('big'))?.length).toBe(big.length)),
      ).resolves.toBe(1);
    });

    it('counts over all connections', async () => {
      const [one, two] = await Promise.all([connect(), connect()]);
      proxy.resetFlights();
      await Promise.all([one.ping(), two.ping()]);
      expect(proxy.flights).toBe(2);
    });

    it('leaves out bursts that do not match', async () => {
      const client = await connect();
      proxy.countFlights('app:');
      await client.ping();
      expect(proxy.flights).toBe(0);
      await client.get('app:key');
      expect(proxy.flights).toBe(1);
      await Promise.all([client.ping(), client.get('app:key'), client.get('app:other')]);
      expect(proxy.flights).toBe(2);
      proxy.countFlights((burst) => burst.includes('ping'));
      await client.get('app:key');
      expect(proxy.flights).toBe(0);
      await client.ping();
      expect(proxy.flights).toBe(1);
    });
  });

  it('passes the data of both directions to listeners', async () => {
    const client = await connect();
    const seen: string[] = [];
    proxy.onData('request', (data) => seen.push(`> ${data.toString()}`));
    const end = proxy.onData('reply', (data) => seen.push(`< ${data.toString()}`));
    await client.ping();
    end();
    await client.ping();
    expect(seen).toEqual(['> *1\r\n$4\r\nping\r\n', '< +PONG\r\n', '> *1\r\n$4\r\nping\r\n']);
  });

  it('holds replies: commands are executed, and the client does not learn of it', async () => {
    const client = await connect();
    proxy.hold();
    let answered = false;
    const set = client.set('key', 'value').then(() => (answered = true));
    await proxy.untilHeld();
    expect(proxy.heldBytes()).toBe('+OK\r\n'.length);
    expect(await direct.get('key')).toBe('value');
    expect(answered).toBe(false);
    proxy.release();
    await set;
    expect(proxy.heldBytes()).toBe(0);
  });

  it('holds requests: commands are not executed before the release, even when the client has given up', async () => {
    const client = await connect();
    proxy.hold('request');
    const set = client.set('key', 'late');
    set.catch(() => {});
    await proxy.untilHeld('request');
    expect(await direct.get('key')).toBeNull();
    client.disconnect();
    await expect(set).rejects.toThrow('Connection is closed');
    expect(await direct.get('key')).toBeNull();
    proxy.release();
    await eventually(async () => expect(await direct.get('key')).toBe('late'));
    await eventually(() => expect(proxy.connections).toBe(0));
  });

  it('holds only matching bursts', async () => {
    const [held, free] = await Promise.all([connect(), connect()]);
    proxy.hold('request', 'app:');
    const set = held.set('app:key', 'value');
    await proxy.untilHeld('request');
    await expect(free.ping()).resolves.toBe('PONG');
    expect(await direct.get('app:key')).toBeNull();
    proxy.release('request');
    await expect(set).resolves.toBe('OK');

    proxy.hold('reply', 'app:');
    const get = held.get('app:key');
    await expect(free.ping()).resolves.toBe('PONG');
    await proxy.untilHeld();
    expect(proxy.heldBytes('request')).toBe(0);
    proxy.release();
    await expect(get).resolves.toBe('value');
  });

  it('keeps holding data when the reply to what came before them arrives and the client sends more', async () => {
    const client = await connect();
    proxy.hold('reply');
    const before = client.ping();
    await proxy.untilHeld('reply');
    proxy.hold('request', 'app:');
    const set = client.set('app:key', 'value');
    await proxy.untilHeld('request');
    proxy.release('reply');
    await before;
    const after = client.ping();
    await proxy.untilHeld('request', proxy.heldBytes('request') + 1);
    expect(await direct.get('app:key')).toBeNull();
    proxy.release('request');
    await expect(Promise.all([set, after])).resolves.toEqual(['OK', 'PONG']);
  });

  it('delays replies, and keeps their order', async () => {
    const client = await connect();
    proxy.delayReplies(50);
    const start = performance.now();
    const slow = client.echo('slow');
    await expect(slow).resolves.toBe('slow');
    expect(performance.now() - start).toBeGreaterThanOrEqual(49);
    proxy.delayReplies(0);
    await expect(Promise.all([client.echo('1'), client.echo('2')])).resolves.toEqual(['1', '2']);
  });

  it('delays requests', async () => {
    const client = await connect();
    proxy.delayRequests(50);
    const start = performance.now();
    await client.ping();
    expect(performance.now() - start).toBeGreaterThanOrEqual(49);
  });

  it('drops a reply: the command is executed, and the connection is closed', async () => {
    const client = await connect();
    const dropped = proxy.dropNextReply();
    await expect(client.set('key', 'value')).rejects.toThrow('Connection is closed');
    await dropped;
    expect(await direct.get('key')).toBe('value');
    await expect((await connect()).get('key')).resolves.toBe('value');
  });

  it('drops the reply to a matching burst, and everything that was sent is executed', async () => {
    const [chosen, other] = await Promise.all([connect(), connect()]);
    const dropped = proxy.dropNextReply('app:');
    await expect(other.ping()).resolves.toBe('PONG');
    await expect(chosen.ping()).resolves.toBe('PONG');
    // The reply to the first comes while Redis still has the others before it.
    const sent = [chosen.call('DEBUG', 'SLEEP', '0.01'), chosen.incr('app:key')];
    sent.push(...Array.from({ length: 1000 }, () => chosen.incr('app:key')));
    const outcomes = await Promise.allSettled(sent);
    expect(new Set(outcomes.map(({ status }) => status))).toEqual(new Set(['rejected']));
    await dropped;
    expect(await direct.get('app:key')).toBe('1001');
    await expect(other.ping()).resolves.toBe('PONG');
  });

  it('cuts connections, and accepts new ones', async () => {
    const client = await connect();
    const closed = once(client, 'end');
    expect(proxy.connections).toBe(1);
    proxy.cut();
    await closed;
    await expect((await connect()).ping()).resolves.toBe('PONG');
  });

  it('refuses new connections until it accepts them again', async () => {
    const open = await connect();
    proxy.refuse();
    const refused = createConnection(proxy.port, '127.0.0.1');
    await expect(once(refused, 'connect')).rejects.toThrow('ECONNREFUSED');
    await expect(open.ping()).resolves.toBe('PONG');
    await proxy.accept();
    await proxy.accept();
    await expect((await connect()).ping()).resolves.toBe('PONG');
  });

  it('is a black hole: it passes nothing and closes nothing, and closes its connections afterwards', async () => {
    const client = await connect();
    const ended = once(client, 'end');
    proxy.blackHole();
    client.options.commandTimeout = 250;
    await expect(client.set('key', 'value')).rejects.toThrow('Command timed out');
    expect(client.status).toBe('ready');
    expect(await direct.get('key')).toBeNull();
    const socket = createConnection(proxy.port, '127.0.0.1');
    await once(socket, 'connect');
    socket.write('PING\r\n');
    const closed = new Promise((resolve) => socket.on('error', () => {}).on('close', resolve));
    proxy.blackHole(false);
    await Promise.all([ended, closed]);
    await expect((await connect()).ping()).resolves.toBe('PONG');
  });

  it('passes the end of the stream from the server', async () => {
    const client = await connect();
    const ended = once(client, 'end');
    await direct.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
    await ended;
    await eventually(() => expect(proxy.connections).toBe(0));
  });

  it('passes the end of the stream from the client', async () => {
    const client = await connect();
    const name = 'ends';
    await client.client('SETNAME', name);
    client.disconnect();
    await eventually(async () => expect(await direct.client('LIST')).not.toContain(`name=${name}`));
    await eventually(() => expect(proxy.connections).toBe(0));
  });

  it('closes everything when it stops, and may be stopped again', async () => {
    const client = await connect();
    const ended = once(client, 'end');
    proxy.hold();
    client.ping().catch(() => {});
    await proxy.untilHeld();
    await proxy.stop();
    await proxy.stop();
    await ended;
    expect(proxy.connections).toBe(0);
    await expect(once(createConnection(proxy.port, '127.0.0.1'), 'connect')).rejects.toThrow('ECONNREFUSED');
  });
});

describe('TcpProxy in front of any server', () => {
  let server: Server;
  let proxy: TcpProxy;
  const sockets = new Set<Socket>();

  beforeEach(async () => {
    server = createServer({ allowHalfOpen: true }, (socket) => {
      sockets.add(socket.on('error', () => {}));
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    proxy = await TcpProxy.start({ port: (server.address() as AddressInfo).port });
  });

  afterEach(async () => {
    await proxy.stop();
    for (const socket of sockets) socket.destroy();
    sockets.clear();
    server.close();
    await once(server, 'close');
  });

  it('lets one side continue after the other has ended', async () => {
    server.on('connection', (socket) => {
      socket.resume().on('end', () => socket.end('reply after the end'));
    });
    const client = createConnection({ port: proxy.port, allowHalfOpen: true });
    client.end('question');
    const [reply] = (await once(client, 'data')) as [Buffer];
    expect(reply.toString()).toBe('reply after the end');
  });

  it('does not read from the server while the client does not read', async () => {
    let sent = 0;
    server.on('connection', (socket) => {
      const chunk = Buffer.alloc(64 * 1024);
      const send = (): void => {
        do sent += chunk.length;
        while (sent < 64 * 1024 * 1024 && socket.write(chunk));
      };
      socket.on('drain', send);
      send();
    });
    const client = createConnection({ port: proxy.port });
    await once(client, 'connect');
    let before = -1;
    // Settled: the buffers on the way are full.
    await eventually(
      () => {
        const settled = sent === before;
        before = sent;
        return settled && sent > 0;
      },
      { interval: 100 },
    );
    expect(sent).toBeLessThan(64 * 1024 * 1024);
    let received = 0;
    client.on('data', (data: Buffer) => (received += data.length));
    await eventually(() => received > before);
    client.destroy();
  });

  it('closes a connection when there is no server behind it', async () => {
    server.close();
    const client = createConnection({ port: proxy.port });
    await once(client, 'close');
    await eventually(() => expect(proxy.connections).toBe(0));
  });
});
