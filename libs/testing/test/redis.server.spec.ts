import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { access, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { transformFile } from '@swc/core';
import { Redis, type RedisOptions } from 'ioredis';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually, freePort, RedisServer } from '@nest-session/testing';

LeakGuard.install();

describe('RedisServer', () => {
  const servers: RedisServer[] = [];
  const clients: Redis[] = [];

  async function start(...options: Parameters<typeof RedisServer.start>): Promise<RedisServer> {
    const server = await RedisServer.start(...options);
    servers.push(server);
    return server;
  }

  function connect(server: { url: string }, options: RedisOptions = {}): Redis {
    const client = new Redis(server.url, { ...options, lazyConnect: true, disconnectTimeout: 10 });
    client.on('error', () => {});
    clients.push(client);
    return client;
  }

  afterEach(async () => {
    for (const client of clients.splice(0)) client.disconnect();
    await Promise.all(servers.splice(0).map((server) => server.stop()));
  });

  it('replies as soon as it has started', async () => {
    const server = await start();
    await expect(connect(server).ping()).resolves.toBe('PONG');
    expect(server.isRunning).toBe(true);
  });

  it('is a separate server each time', async () => {
    const [one, two] = await Promise.all([start(), start()]);
    await connect(one).set('key', 'of one');
    await expect(connect(two).get('key')).resolves.toBeNull();
  });

  it('passes arguments to redis-server', async () => {
    const server = await start({ args: ['--maxmemory', '10mb'] });
    await expect(connect(server).config('GET', 'maxmemory')).resolves.toEqual(['maxmemory', `${10 * 1024 * 1024}`]);
  });

  it('starts with a password', async () => {
    const server = await start({ args: ['--requirepass', 'secret'] });
    await expect(connect(server).ping()).rejects.toThrow('NOAUTH');
  });

  it('leaves neither a process nor a folder behind when it has stopped', async () => {
    const server = await start();
    const [, dir] = (await connect(server).config('GET', 'dir')) as [string, string];
    await access(dir);
    await server.stop();
    await server.stop();
    expect(isAlive(server.pid)).toBe(false);
    expect(server.isRunning).toBe(false);
    await expect(access(dir)).rejects.toThrow('ENOENT');
  });

  it('stops while it is frozen', async () => {
    const server = await start();
    server.freeze();
    await server.stop();
    expect(isAlive(server.pid)).toBe(false);
  });

  it('does not reply while it is frozen', async () => {
    const server = await start();
    const client = connect(server);
    await client.ping();
    server.freeze();
    const ping = client.ping();
    const first = await Promise.race([ping, delay(250).then(() => 'nothing')]);
    server.thaw();
    expect(first).toBe('nothing');
    await expect(ping).resolves.toBe('PONG');
  });

  it('restarts on the same port after it was killed, without its data', async () => {
    const server = await start();
    const client = connect(server);
    await client.set('key', 'value');
    const { pid, url } = server;
    await server.kill();
    expect(isAlive(pid)).toBe(false);
    await server.restart();
    expect(server.url).toBe(url);
    expect(server.pid).not.toBe(pid);
    await expect(client.get('key')).resolves.toBeNull();
  });

  it('restarts with its data when it is configured to keep them', async () => {
    const server = await start({ args: ['--appendonly', 'yes', '--appendfsync', 'always'] });
    const client = connect(server);
    await client.set('key', 'value');
    await server.restart();
    await expect(client.get('key')).resolves.toBe('value');
    await server.kill();
    await server.restart();
    await expect(client.get('key')).resolves.toBe('value');
  });

  it('restarts after it was stopped', async () => {
    const server = await start();
    await server.stop();
    await server.restart();
    await expect(connect(server).ping()).resolves.toBe('PONG');
  });

  it('does not remove a folder that is not its own', async () => {
    const dir = await mkdtemp(join(tmpdir(), 'redis-spec-'));
    try {
      const server = await start({ dir });
      await expect(connect(server).config('GET', 'dir')).resolves.toEqual(['dir', dir]);
      await server.stop();
      await access(dir);
    } finally {
      await rm(dir, { recursive: true });
    }
  });

  it('fails with the output of Redis when Redis cannot start', async () => {
    await expect(RedisServer.start({ args: ['--no-such-option', 'x'] })).rejects.toThrow(/no-such-option/);
  });

  it('refuses a port of another server, even of a Redis that replies there', async () => {
    const other = await start();
    await expect(RedisServer.start({ port: other.port })).rejects.toThrow('Address already in use');
  });

  it('says what to do when Redis is not installed', async () => {
    const before = process.env['REDIS_SERVER'];
    process.env['REDIS_SERVER'] = '/nowhere/redis-server';
    try {
      await expect(RedisServer.start()).rejects.toThrow(
        /Cannot run \/nowhere\/redis-server \(ENOENT\): install Redis .* or set REDIS_SERVER/s,
      );
    } finally {
      if (before === undefined) delete process.env['REDIS_SERVER'];
      else process.env['REDIS_SERVER'] = before;
    }
  });

  it('ends with the process that started it, even one that is killed', async () => {
    const modules = ['redis/redis.server', 'redis/redis.process', 'net/free-port', 'wait/eventually'];
    const folder = await compile(...modules);
    const started = await startInProcess(folder);
    const [, dir] = (await connect(started).config('GET', 'dir')) as [string, string];
    await access(dir);
    started.parent.kill('SIGKILL');
    await eventually(() => !isAlive(started.pid));
    await eventually(() => expect(access(dir)).rejects.toThrow('ENOENT'));
    await rm(folder, { recursive: true });
  });
});

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

/** Compiles modules of this library into a new folder, for a process of their own. */
async function compile(...modules: string[]): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'redis-spec-'));
  await writeFile(join(folder, 'package.json'), '{ "type": "module" }');
  for (const module of modules) {
    const source = new URL(`../src/${module}.ts`, import.meta.url);
    const { code } = await transformFile(source.pathname, {
      jsc: { target: 'es2022', parser: { syntax: 'typescript' } },
      module: { type: 'es6' },
    });
    await mkdir(dirname(join(folder, module)), { recursive: true });
    await writeFile(join(folder, `${module}.js`), code);
  }
  return folder;
}

/** A process that has started a Redis, with the port and folder of that Redis. */
async function startInProcess(folder: string): Promise<{ parent: ChildProcess; pid: number; url: string }> {
  const module = pathToFileURL(join(folder, 'redis/redis.server.js')).href;
  const script = `import('${module}').then(m => m.RedisServer.start()).then(redis => console.log(redis.pid, redis.url))`;
  const parent = spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'inherit'] });
  const [line] = (await once(parent.stdout, 'data')) as [Buffer];
  const [pid, url] = line.toString().trim().split(' ') as [string, string];
  return { parent, pid: Number(pid), url };
}

describe('freePort', () => {
  it('finds a free port outside the range of outgoing connections', async () => {
    const port = await freePort();
    expect(port).toBeLessThan(32_768);
    const server = createServer().listen(port, '127.0.0.1');
    await once(server, 'listening');
    expect((server.address() as AddressInfo).port).toBe(port);
    server.close();
    await once(server, 'close');
  });
});
