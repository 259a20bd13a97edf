import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Injectable } from '@nestjs/common';
import { IndexedSessionRepository, OnSessionEvent, SessionDeletedEvent } from '@nest-session/core';
import type { RedisSessionModuleOptions } from '@nest-session/redis';
import { LeakGuard, Sentinel } from '@nest-session/test-infrastructure';
import { eventually, RedisCluster, RedisServer } from '@nest-session/testing';
import { Redis } from 'ioredis';
import { jsonOf, runCommand } from '../support/command.process.js';
import { EventInstance } from '../../../session-redis/test/support/event-instance.fixture.js';
import { CertificateAuthority, TlsRedis } from '../../../session-redis/test/support/tls.redis.js';

LeakGuard.install();

@Injectable()
class Handlers {
  @OnSessionEvent(SessionDeletedEvent)
  handle() {}
}

const running: EventInstance[] = [];
afterEach(() => Promise.all(running.splice(0).map((app) => app.stop())));

/** An application with a session of ann. */
async function start(redis: RedisSessionModuleOptions): Promise<string> {
  const app = await EventInstance.start({ redis, providers: [Handlers] });
  running.push(app);
  return signIn(app);
}

async function signIn(app: EventInstance): Promise<string> {
  const session = app.module.get(IndexedSessionRepository, { strict: false }).createSession();
  session.signIn('ann');
  await session.save();
  return session.id;
}

interface Checked {
  readonly checks: readonly { readonly check: string; readonly status: string; readonly message: string }[];
}

/** What every kind of Redis must allow. */
async function expectAll(address: string, id: string, env: Record<string, string> = {}): Promise<void> {
  const { json: list } = await jsonOf(`list --user ann ${address}`, env);
  expect(list).toMatchObject({ total: 1, sessions: [{ id }] });
  expect((await jsonOf(`stats ${address}`, env)).json).toMatchObject({ sessions: 1, instances: 1 });
  expect((await jsonOf(`groups ${address}`, env)).json).toMatchObject({ groups: [{ name: 'default', instances: 1 }] });
  const { json } = await jsonOf<Checked>(`doctor --ignore cleanup,persistence,latency ${address}`, env);
  expect(json.checks.filter(({ status }) => status !== 'ok')).toEqual([]);
  expect(await runCommand(['end', ...address.split(' '), '--', id], env)).toMatchObject({ code: 0, stderr: '' });
  const listed = async () => (await jsonOf<{ sessions: unknown[] }>(`list --user ann ${address}`, env)).json.sessions;
  expect(await listed()).toEqual([]);
  await signIn(running.at(-1)!);
  expect(await listed()).toHaveLength(1);
  const ended = await jsonOf(`end --begun-before ${new Date().toISOString()} --yes ${address}`, env);
  expect([ended.code, await listed()]).toEqual([0, []]);
}

describe('the command reaches', () => {
  it('a Cluster, whose credentials are in the environment', async () => {
    const cluster = await RedisCluster.start();
    try {
      for (const { url } of cluster.nodes) {
        const admin = new Redis(url);
        await admin.acl('SETUSER', 'app', 'on', '>a-secret', '~*', '&*', '+@all');
        await admin.acl('SETUSER', 'default', 'off');
        admin.disconnect();
      }
      const login = { username: 'app', password: 'a-secret' };
      const id = await start({ cluster: { nodes: cluster.addresses }, partitions: 8, ...login });
      const [node] = cluster.addresses as [{ host: string; port: number }];
      const address = `--cluster ${node.host}:${node.port}`;
      const env = { REDIS_USERNAME: 'app', REDIS_PASSWORD: 'a-secret' };
      const { json } = await jsonOf<Checked>(`doctor --ignore cleanup ${address}`, env);
      expect(json.checks.filter(({ check }) => check === 'server')).toHaveLength(3);
      const asServer = await jsonOf<Checked>('doctor', { REDIS_URL: `redis://app:a-secret@${node.host}:${node.port}` });
      expect(asServer.json.checks).toContainEqual(
        expect.objectContaining({
          check: 'server',
          status: 'error',
          message: expect.stringContaining('is a node of a Cluster'),
        }),
      );
      const anonymous = await runCommand(`list --user ann ${address}`);
      expect(anonymous.stderr).toMatch(
        /NOAUTH.*, with --sentinel or --cluster into REDIS_USERNAME and REDIS_PASSWORD, /,
      );
      await expectAll(address, id, env);
      const [, , frozen] = cluster.nodes;
      frozen!.freeze();
      const { code, json: found } = await jsonOf<Checked>(`doctor --ignore cleanup ${address}`, env);
      frozen!.thaw();
      expect([code, found.checks]).toEqual([
        2,
        expect.arrayContaining([
          expect.objectContaining({
            check: 'server',
            status: 'error',
            message: expect.stringContaining(`127.0.0.1:${frozen!.port} does not reply`),
          }),
        ]),
      ]);
    } finally {
      await Promise.all(running.splice(0).map((app) => app.stop()));
      await cluster.stop();
    }
  });

  it('the master that Sentinels name', async () => {
    const master = await RedisServer.start();
    const replica = await RedisServer.start({ args: ['--replicaof', `127.0.0.1 ${master.port}`] });
    const sentinel = await Sentinel.start('main', master);
    try {
      const id = await start({ sentinels: [{ host: '127.0.0.1', port: sentinel.port }], name: 'main' });
      const address = `--sentinel 127.0.0.1:${sentinel.port} --master main`;
      await expectAll(address, id);
      const { json } = await jsonOf<Checked>(`doctor --ignore cleanup ${address}`);
      expect(json.checks.find(({ check }) => check === 'server')).toMatchObject({
        message: expect.stringContaining(`127.0.0.1:${master.port} is Redis`),
      });
      const unknown = await runCommand(`stats --sentinel 127.0.0.1:${sentinel.port} --master other`);
      expect([unknown.code, unknown.stdout]).toEqual([1, '']);
      expect(unknown.stderr).toMatch(/\. Correct --master: the Sentinels know no master of this name\n$/);
    } finally {
      await Promise.all(running.splice(0).map((app) => app.stop()));
      await Promise.all([sentinel.stop(), replica.stop(), master.stop()]);
    }
  });

  it('a server with TLS that asks for a certificate', async () => {
    const authority = await CertificateAuthority.create('ours');
    const certificate = await authority.ofClient('app');
    const server = await TlsRedis.start({ authority, verifiesClients: true });
    const folder = await mkdtemp(join(tmpdir(), 'command-tls-'));
    try {
      const files = { ca: authority.own.cert, ...certificate };
      for (const [name, content] of Object.entries(files)) await writeFile(join(folder, name), content);
      const id = await start({ url: server.url, tls: { ca: files.ca, cert: files.cert, key: files.key } });
      const [ca, cert, key] = ['ca', 'cert', 'key'].map((name) => `--tls-${name} ${join(folder, name)}`);
      await expectAll(`--url ${server.url} ${ca} ${cert} ${key}`, id);
      const byAddress = `--url rediss://127.0.0.1:${server.port} ${ca} ${cert} ${key}`;
      expect((await runCommand(`stats ${byAddress}`)).code).toBe(1);
      expect((await jsonOf(`stats ${byAddress} --tls-servername localhost`)).code).toBe(0);
      const { code, stderr } = await runCommand(`stats --url ${server.url} ${cert} ${key}`);
      expect([code, stderr]).toEqual([1, expect.stringMatching(/cannot be reached: Error: ".*certificate.*"/)]);
    } finally {
      await Promise.all(running.splice(0).map((app) => app.stop()));
      await server.stop();
      await rm(folder, { recursive: true });
    }
  });
});

describe('the command refuses', () => {
  it.each([
    ['--url redis://a --cluster b:1', 'Give either --url or --cluster, not both.'],
    ['--sentinel a:1', '--master is missing: the name of the master.'],
    ['--master main', '--master belongs to --sentinel.'],
    ['--cluster a', '--cluster must be host:port, or several separated by commas, but is "a".'],
    ['--cluster a:1,:2', '--cluster must be host:port, or several separated by commas, but is "a:1,:2".'],
    [
      '--sentinel a:65536 --master main',
      '--sentinel must be host:port, or several separated by commas, but is "a:65536".',
    ],
    ['--url redis://a --tls', '--tls needs a rediss:// --url.'],
    ['--url rediss://a --tls-ca /nowhere.pem', 'The file of --tls-ca cannot be read: "/nowhere.pem", ENOENT.'],
    ['--url http://a', '--url must be a redis:// or rediss:// url.'],
    ['--namespace a*b', '--namespace must not contain { } * [ ] ? or \\.'],
    ['--namespace=', '--namespace must not be empty.'],
  ])('the address %s', async (address, problem) => {
    expect(await runCommand(`stats ${address}`)).toEqual({ code: 1, stdout: '', stderr: `${problem}\n` });
  });

  it('a wrong password, without quoting it', async () => {
    const server = await RedisServer.start({ args: ['--requirepass', 'the-right-one'] });
    try {
      const { code, stdout, stderr } = await runCommand('doctor --json', {
        REDIS_URL: `redis://:the-wrong-one@127.0.0.1:${server.port}`,
      });
      expect([code, stdout]).toEqual([1, '']);
      expect(stderr).toContain('WRONGPASS');
      expect(stderr).toContain('Correct user and password');
      expect(stderr).not.toContain('the-wrong-one');
    } finally {
      await server.stop();
    }
  });

  it('a server that is no Cluster, and a write to a replica', async () => {
    const master = await RedisServer.start();
    const replica = await RedisServer.start({ args: ['--replicaof', `127.0.0.1 ${master.port}`] });
    try {
      await start({ url: master.url });
      const asCluster = await runCommand(`stats --cluster 127.0.0.1:${master.port}`);
      expect(asCluster.stderr).toMatch(/\. This is no node of a Cluster: set REDIS_URL, not --cluster\n$/);
      const verified = () => runCommand('verify', { REDIS_URL: replica.url });
      await eventually(async () => expect((await verified()).stderr).toMatch(/^Redis failed: READONLY .*the primary/));
    } finally {
      await Promise.all(running.splice(0).map((app) => app.stop()));
      await Promise.all([master.stop(), replica.stop()]);
    }
  });

  it('to wait for a Redis that does not reply', async () => {
    const server = await RedisServer.start();
    server.freeze();
    try {
      const env = { REDIS_URL: server.url };
      const [stats, doctor] = await Promise.all([runCommand('stats', env), runCommand('doctor', env)]);
      for (const { code, stdout, stderr } of [stats, doctor]) {
        expect([code, stdout]).toEqual([1, '']);
        expect(stderr).toMatch(
          /cannot be reached: Error: "no reply within 5000 ms"\. Start it, or correct its address\n$/,
        );
      }
    } finally {
      server.thaw();
      await server.stop();
    }
  });
});
