import { Gate, LeakGuard } from '@nest-session/test-infrastructure';
import { eventually, RedisServer } from '@nest-session/testing';
import { Redis } from 'ioredis';
import { givenAddress } from '../../../session-cli/src/command/address-flags.js';
import {
  type RedisSessionModuleOptions,
  resolveRedisSessionOptions,
} from '../../../session-redis/src/configuration/redis-session.options.js';
import { ConnectionUpkeep } from '../../src/namespace/store-connections.js';
import { loginSourceOf } from '../../src/connection/login.js';
import { closeConnections, createConnections } from '../../src/connection/redis-connections.js';
import { App } from '../../../session-redis/test/support/app.fixture.js';
import { documentedLines, type RightsName } from '../../../session-redis/test/support/documented.rights.js';
import { LineRecorder } from '../../../session-redis/test/support/line.recorder.js';

LeakGuard.install();

/** For requests, background work, key events and the reader of events. */
const CONNECTIONS = 4;

let server: RedisServer;
let admin: Redis;
/** What Redis takes at the moment. */
let current: string;
beforeAll(async () => {
  server = await RedisServer.start();
  admin = new Redis(server.url);
});
beforeEach(() => change('first'));
afterAll(async () => {
  admin.disconnect();
  await server.stop();
});

async function change(password: string): Promise<void> {
  current = password;
  await admin.call('ACL', 'SETUSER', 'app', 'reset', 'on', `>${password}`, '~*', '&*', '+@all');
}

const url = () => `redis://app@127.0.0.1:${server.port}`;

/** Ends the connections, as a managed service does when a token has expired. */
const cut = () => admin.call('CLIENT', 'KILL', 'USER', 'app');

async function usersOfConnections(): Promise<string[]> {
  const lines = String(await admin.client('LIST')).split('\n');
  return lines.flatMap((line) => /name=nest:session:.* user=(\S+)/.exec(line)?.[1] ?? []);
}

/** A class of the application that asks for the password itself, which the README of ioredis has no other way for. */
class OwnRedis extends Redis {
  override connect(callback?: () => void): Promise<void> {
    this.options.password = current;
    return super.connect(callback);
  }

  override duplicate(override = {}): Redis {
    return new OwnRedis({ ...(this.options as object), ...override });
  }
}

const forms: Record<string, () => { options: RedisSessionModuleOptions; changed(): void; end(): void }> = {
  'a function beside a url': () => ({
    options: { url: url(), password: async () => current },
    changed: () => undefined,
    end: () => undefined,
  }),
  'a client whose options are changed': () => {
    const client = new Redis({ port: server.port, username: 'app', password: current, lazyConnect: true });
    return { options: { client }, changed: () => (client.options.password = current), end: () => client.disconnect() };
  },
  'a client of a class of its own': () => {
    const client = new OwnRedis({ port: server.port, username: 'app', lazyConnect: true });
    return { options: { client }, changed: () => undefined, end: () => client.disconnect() };
  },
};

it.each(Object.entries(forms))(
  'sessions work again by themselves after the password has changed and all connections were ended, twice: %s',
  async (_, form) => {
    const { options, changed, end } = form();
    const app = await App.start({ redis: { commandTimeout: '1s', ...options } });
    try {
      const agent = app.agent();
      for (const password of ['second', 'third']) {
        expect((await agent.post('/set/a', { value: password })).status).toBe(201);
        await eventually(async () => expect(await usersOfConnections()).toHaveLength(CONNECTIONS));
        await change(password);
        changed();
        await cut();
        await eventually(async () => expect((await agent.get('/read')).status).toBe(200));
        await eventually(async () => expect(await usersOfConnections()).toHaveLength(CONNECTIONS));
      }
      expect((await agent.get('/read')).json()).toMatchObject({ attributes: { a: 'third' } });
    } finally {
      await app.stop();
      end();
    }
  },
  60_000,
);

it('connections that are open log in again with a new password, once, and go on where Redis refuses it', async () => {
  const rules = { namespace: 'nest:session', commandTimeout: 1000, replicas: 0, requireAtStart: false };
  let password = 'first';
  const connection = { url: url(), tls: undefined, password: () => password };
  const connections = createConnections({ connection, ...rules });
  const upkeep = new ConnectionUpkeep(connections, loginSourceOf(connection));
  const logins = async () => Number(/cmdstat_auth:calls=(\d+)/.exec(await admin.info('commandstats'))?.[1] ?? 0);
  try {
    const request = connections.request.of(undefined)!;
    await Promise.all([request.connect(), connections.background.connect()]);
    const before = await logins();
    await upkeep.renewLogins();
    expect(await logins()).toBe(before);
    await admin.call('ACL', 'SETUSER', 'app', '>second');
    password = 'second';
    for (let time = 1; time <= 2; time++) await upkeep.renewLogins();
    await eventually(async () => expect(await logins()).toBe(before + 2));
    password = 'unknown';
    await upkeep.renewLogins();
    expect(await request.ping()).toBe('PONG');
    expect(await usersOfConnections()).toEqual(['app', 'app']);
  } finally {
    await closeConnections(connections);
  }
});

it('the steps of the documentation change a password without an outage', async () => {
  const user = url().replace('//app@', '//app:a-long-secret@');
  await change('a-long-secret');
  const enter = async (name: RightsName) => {
    for (const rules of documentedLines([name])) await admin.call('ACL', 'SETUSER', 'app', ...rules);
  };
  const logIn = async (address: string) => {
    const client = new Redis(address, { retryStrategy: null, lazyConnect: true });
    client.on('error', () => undefined);
    const reply = await client.connect().then(
      () => 'logged in',
      () => 'refused',
    );
    client.disconnect();
    return reply;
  };
  const changed = user.replace('a-long-secret', 'the-new-secret');
  const app = await App.start({ redis: { url: user } });
  try {
    expect([await logIn(user), await logIn(changed)]).toEqual(['logged in', 'refused']);
    await enter('rotation');
    expect([await logIn(user), await logIn(changed)]).toEqual(['logged in', 'logged in']);
    await enter('rotation end');
    expect([await logIn(user), await logIn(changed)]).toEqual(['refused', 'logged in']);
    expect((await app.agent().post('/set/a', { value: 1 })).status).toBe(201);
  } finally {
    await app.stop();
  }
});

it('while the function fails, the log says why, and sessions work as soon as it gives the password', async () => {
  let fails = false;
  const password = () => {
    if (fails) throw new Error('no token today');
    return current;
  };
  const app = await App.start({ redis: { url: url(), password, commandTimeout: '200ms' } });
  const log = new LineRecorder().install();
  try {
    fails = true;
    await cut();
    await eventually(async () => expect((await app.agent().post('/set/a', { value: 1 })).status).toBe(503));
    const line = /^Redis (cannot|still cannot) be reached, .*The function `password` failed: Error: no token today/;
    await eventually(() => expect(log.matching(line)).toHaveLength(1));
    fails = false;
    await eventually(async () => expect((await app.agent().post('/set/a', { value: 1 })).status).toBe(201));
    await eventually(() => expect(log.matching(/^Redis can be reached again/)).toHaveLength(1));
  } finally {
    await app.stop();
  }
});

it('a command takes the password from REDIS_PASSWORD where the url has only the user', () => {
  const passwordFor = (address: string) => {
    const { password } = givenAddress({ url: address }, { REDIS_PASSWORD: 'a/token?' });
    return typeof password === 'function' ? password() : password;
  };
  expect(passwordFor('rediss://app@localhost')).toBe('a/token?');
  expect(passwordFor('rediss://app:own@localhost')).toBeUndefined();
  expect(passwordFor('redis://localhost')).toBeUndefined();
});

it('options that give two passwords, or a client another one, are refused', () => {
  const password = () => 'secret';
  const client = new Redis({ lazyConnect: true });
  const refusal = (options: RedisSessionModuleOptions) => () => resolveRedisSessionOptions(options);
  expect(refusal({ url: 'redis://app:own@localhost', password })).toThrow('leave only the user in the `url`');
  expect(refusal({ client, password })).toThrow('set `options.password` of your `client`');
});

it('connections that are closed while the function runs are not made', async () => {
  const gate = new Gate();
  const password = async () => {
    await gate.pass();
    return current;
  };
  const rules = { namespace: 'nest:session', commandTimeout: 1000, replicas: 0, requireAtStart: false };
  const connections = createConnections({ connection: { url: url(), tls: undefined, password }, ...rules });
  const connecting = connections.background.connect().catch((error: unknown) => error);
  await gate.reached();
  const closed = closeConnections(connections);
  gate.open();
  await closed;
  expect(await connecting).toBeInstanceOf(Error);
  expect(await usersOfConnections()).toEqual([]);
});
