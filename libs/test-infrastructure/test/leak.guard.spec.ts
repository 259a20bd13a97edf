import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer as createHttpServer } from 'node:http';
import { type AddressInfo, createConnection, createServer, type Server, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { runInThisContext } from 'node:vm';
import { Redis } from 'ioredis';
import { LeakGuard, standStill } from '@nest-session/test-infrastructure';
import { HttpAgent, RedisServer } from '@nest-session/testing';

const HERE = /leak\.guard\.spec\.ts/;

describe('LeakGuard', () => {
  let guard: LeakGuard;

  beforeEach(() => {
    guard = new LeakGuard();
    guard.start();
  });

  afterEach(() => guard.stop());

  async function listening(server: Server = createServer()): Promise<{ server: Server; port: number }> {
    await once(server.listen(0, '127.0.0.1'), 'listening');
    return { server, port: (server.address() as AddressInfo).port };
  }

  /** The report of the guard on an open resource; then closes it, and expects no further report. */
  async function findings(close: () => unknown): Promise<string> {
    const failure: Error = await guard.check({ grace: 0 }).then(
      () => new Error('nothing found'),
      (error) => error,
    );
    await close();
    await guard.check();
    return failure.message;
  }

  it('reports nothing when nothing was left open', async () => {
    await guard.check({ grace: 0 });
  });

  it('finds a server, and reports where it was created', async () => {
    const { server, port } = await listening();
    const found = await findings(() => server.close());
    expect(found).toContain(`1. server on 127.0.0.1:${port}\n`);
    expect(found).toMatch(HERE);
    expect(found).not.toContain('2. ');
  });

  it('finds both ends of a connection', async () => {
    const { server, port } = await listening();
    const accepted = once(server, 'connection') as Promise<[Socket]>;
    const client = createConnection(port, '127.0.0.1');
    await once(client, 'connect');
    const [other] = await accepted;
    server.close();
    const local = `127.0.0.1:${client.localPort}`;
    const remote = `127.0.0.1:${port}`;
    const found = await findings(() => [client.destroy(), other.destroy()]);
    expect(found).toContain(`connection ${local} - ${remote}`);
    expect(found).toContain(`connection ${remote} - ${local}`);
    expect(found).toMatch(HERE);
  });

  it('finds a connection that was used again once, and only while it is open', async () => {
    const server = createHttpServer(({ url }, response) => void (url === '/' && response.end()));
    const { port } = await listening(server);
    const agent = new HttpAgent(`http://127.0.0.1:${port}`, { keepAlive: true });
    await agent.get('/');
    // A connection without a request keeps no process alive.
    const request = agent.get('/not-answered').catch(() => {});
    await once(server, 'request');
    const found = await findings(async () => {
      server.closeAllConnections();
      await request;
      agent.close();
      server.close();
    });
    expect(found.match(new RegExp(`connection .* - 127.0.0.1:${port}\n`, 'g'))).toHaveLength(1);
  });

  it('finds timers and intervals', async () => {
    const timers = [setTimeout(() => {}, 60_000), setInterval(() => {}, 50_000)];
    const found = await findings(() => timers.forEach(clearTimeout));
    expect(found).toContain('1. timer of 60000 ms');
    expect(found).toContain('2. timer of 50000 ms');
    expect(found).toMatch(HERE);
  });

  it('finds the timer of a promise', async () => {
    const abort = new AbortController();
    const waiting = delay(60_000, undefined, { signal: abort.signal }).catch(() => {});
    const found = await findings(() => abort.abort());
    await waiting;
    expect(found).toContain('timer of 60000 ms');
  });

  it('finds a child process', async () => {
    const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)']);
    await once(child, 'spawn');
    const { pid } = child;
    const found = await findings(() => child.kill());
    expect(found).toContain(`child process ${pid}`);
    expect(found).toContain('pipe');
  });

  it('finds a Redis and a client of it', async () => {
    const redis = await RedisServer.start();
    const client = new Redis(redis.url);
    await client.ping();
    const found = await findings(async () => {
      client.disconnect();
      await redis.stop();
    });
    expect(found).toContain(`child process ${redis.pid}`);
    expect(found).toMatch(new RegExp(`connection 127.0.0.1:\\d+ - 127.0.0.1:${redis.port}\n.*ioredis`));
  });

  it('ignores resources from before, ended ones and those that keep no process alive', async () => {
    guard.stop();
    const before = setTimeout(() => {}, 60_000);
    guard.start();
    setTimeout(() => {}, 60_000).unref();
    clearTimeout(setTimeout(() => {}, 60_000));
    await delay(1);
    const { server } = await listening();
    server.unref();
    await guard.check({ grace: 0 });
    clearTimeout(before);
    server.close();
  });

  it('finds a timer of a package that keeps no process alive', async () => {
    const filename = '/made-up/packages/session-core/src/background/forgotten.ts';
    const forget = runInThisContext('(start) => start(() => {}, 60_000).unref()', { filename }) as (
      start: typeof setTimeout,
    ) => NodeJS.Timeout;
    const timer = forget(setTimeout);
    const found = await findings(() => clearTimeout(timer));
    expect(found).toContain('1. timer of 60000 ms');
    expect(found).toContain('forgotten.ts');
  });

  it('waits for resources that are about to close', async () => {
    const server = createHttpServer((_request, response) => setTimeout(() => response.end('late'), 50));
    const { port } = await listening(server);
    const response = new HttpAgent(`http://127.0.0.1:${port}`).get('/');
    await once(server, 'request');
    server.close();
    await guard.check();
    await expect(response).resolves.toMatchObject({ text: 'late' });
  });

  it('waits for them also when the process was suspended for the whole time', async () => {
    const { server } = await listening();
    setTimeout(() => {
      standStill(200);
      setImmediate(() => server.close());
    }, 1);
    await guard.check({ grace: 100 });
  });
});
