import { once } from 'node:events';
import type { ConnectionOptions } from 'node:tls';
import { Injectable } from '@nestjs/common';
import { IndexedSessionRepository, OnSessionEvent, SessionEvent, SessionExpiredEvent } from '@nest-session/core';
import type { RedisSessionModuleOptions } from '@nest-session/redis';
import { KeyspaceNotificationListener } from '@nest-session/redis-events';
import { LeakGuard, TcpProxy } from '@nest-session/test-infrastructure';
import { eventually, RedisServer } from '@nest-session/testing';
import { Redis } from 'ioredis';
import type { StoreAddress } from '../../../session-cli/src/command/command.js';
import { withRedis } from '../../../session-cli/src/command/store-access.js';
import { closeConnection } from '../../src/connection/close-connection.js';
import { createConnections } from '../../src/connection/redis-connections.js';
import { resolveRedisSessionOptions } from '../../../session-redis/src/configuration/redis-session.options.js';
import { EventInstance } from '../../../session-redis/test/support/event-instance.fixture.js';
import { type Certificate, CertificateAuthority, TlsRedis } from '../../../session-redis/test/support/tls.redis.js';

LeakGuard.install();

@Injectable()
class Handlers {
  readonly heard: string[] = [];

  @OnSessionEvent(SessionExpiredEvent)
  handle({ sessionId }: SessionExpiredEvent) {
    this.heard.push(sessionId);
  }

  @OnSessionEvent(SessionEvent, { broadcast: true })
  hear() {}
}

const ALL_CONNECTIONS = ['background', 'broadcast', 'notifications', 'reader', 'request', 'subscriber'];

let authority: CertificateAuthority;
let foreign: CertificateAuthority;
let certificate: Certificate;
/** Asks its clients for a certificate. */
let strict: TlsRedis;
let open: TlsRedis;
let ca: string;
let admin: Redis;
const running: EventInstance[] = [];
beforeAll(async () => {
  [authority, foreign] = await Promise.all([CertificateAuthority.create('ours'), CertificateAuthority.create('other')]);
  certificate = await authority.ofClient('app');
  ca = authority.own.cert;
  strict = await TlsRedis.start({ authority, verifiesClients: true });
  open = await TlsRedis.start({ authority, verifiesClients: false });
  admin = new Redis(open.url, { tls: { ca } });
});
beforeEach(() => {
  EventInstance.log.lines.length = 0;
});
afterEach(() => Promise.all(running.splice(0).map((instance) => instance.stop())));
afterAll(async () => {
  admin.disconnect();
  await Promise.all([strict.stop(), open.stop()]);
});

async function start(redis: RedisSessionModuleOptions): Promise<EventInstance> {
  const instance = await EventInstance.start({ redis, providers: [Handlers] });
  running.push(instance);
  return instance;
}

/** The connections of instances to a Redis, by the names that the library gives them. */
async function connectionsTo(client: Redis): Promise<string[]> {
  const names = [...String(await client.client('LIST')).matchAll(/ name=nest:session:(\w+) /g)];
  return names.map(([, name]) => name!).toSorted();
}

/** What an instance logs that cannot reach Redis, once a request and background work have tried. */
async function failureOf(redis: RedisSessionModuleOptions): Promise<string[]> {
  const instance = await start({ ...redis, commandTimeout: '100ms' });
  const repository = instance.module.get(IndexedSessionRepository, { strict: false });
  await expect(repository.findById('a'.repeat(43))).rejects.toMatchObject({ name: 'SessionStoreError' });
  return EventInstance.log.matching(/Redis cannot be reached/);
}

describe('over TLS', () => {
  it.each<[string, (tls: ConnectionOptions) => RedisSessionModuleOptions]>([
    ['the options `url` and `tls`', (tls) => ({ url: strict.url, tls })],
    ['the option `client`', (tls) => ({ client: new Redis(strict.url, { tls, lazyConnect: true }) })],
  ])('and with a client certificate, %s make all connections', async (_, options) => {
    // This server has no other port.
    const tls = { ca, ...certificate };
    const instance = await start(options(tls));
    const witness = new Redis(strict.url, { tls });
    const listener = instance.module.get(KeyspaceNotificationListener, { strict: false });
    listener.listen({ keys: 'nest:session:sessions:expires:*', events: 'expired', handler: () => undefined });
    await eventually(async () => expect(await connectionsTo(witness)).toEqual(ALL_CONNECTIONS));
    const session = instance.module.get(IndexedSessionRepository, { strict: false }).createSession();
    session.setAttribute('cart', ['apple']);
    session.maxInactiveInterval = 1;
    await session.save();
    await eventually(() => expect(instance.module.get(Handlers).heard).toEqual([session.id]));
    expect(EventInstance.log.lines).toEqual([]);
    witness.disconnect();
  });

  it('a certificate of an unknown authority is one log line, and no connection', async () => {
    const lines = await failureOf({ url: open.url, tls: { ca: foreign.own.cert } });
    expect(lines).toEqual([
      expect.stringMatching(/^error .*retrying: "Error: self-signed certificate in certificate chain"/),
    ]);
    expect(await connectionsTo(admin)).toEqual([]);
  });

  it('a certificate of an authority that Node.js does not know needs the option `ca`', async () => {
    const lines = await failureOf({ url: open.url });
    expect(lines).toEqual([
      expect.stringMatching(/^error .*retrying: "Error: self-signed certificate in certificate chain"/),
    ]);
  });

  it('with requireAtStart, a certificate of an unknown authority prevents the start', async () => {
    const started = start({ url: open.url, tls: { ca: foreign.own.cert }, requireAtStart: true });
    await expect(started).rejects.toThrow(
      /^Redis cannot be reached, and option `requireAtStart` is set: .*self-signed certificate in certificate chain"$/,
    );
    expect(EventInstance.log.matching(/cannot be reached, retrying: "Error: self-signed certificate in/)).toHaveLength(
      1,
    );
  });

  it('rejectUnauthorized: false accepts every certificate', async () => {
    await start({ url: open.url, tls: { rejectUnauthorized: false } });
    await eventually(async () => expect(await connectionsTo(admin)).toContain('request'));
  });

  it('a Redis that asks for a client certificate refuses an instance without one, with one log line', async () => {
    const lines = await failureOf({ url: strict.url, tls: { ca } });
    expect(lines).toEqual([expect.stringMatching(/^error .*retrying: (.*certificate required|.*ECONNRESET)/)]);
  });

  it('a connection that is closed during a failing handshake ends no process', async () => {
    const options = resolveRedisSessionOptions({ url: open.url, tls: { ca: foreign.own.cert } });
    const clients = Array.from({ length: 5 }, () => {
      const connections = new Set(Object.values(createConnections(options)));
      return [...connections].flatMap((its) => ('all' in its ? [...its.all] : its)) as Redis[];
    }).flat();
    const closed = clients.map(async (client) => {
      client.connect().catch(() => undefined);
      await eventually(() => client.stream !== undefined, { interval: 1 });
      await once(client.stream, 'connect');
      await closeConnection(client);
    });
    // An error without a listener fails this test.
    await Promise.all(closed);
    expect(EventInstance.log.lines).toEqual([]);
  });

  it('the certificate must be valid for the host of the url, or for `servername`', async () => {
    const url = open.url.replace('localhost', '127.0.0.1');
    const lines = await failureOf({ url, tls: { ca } });
    expect(lines).toEqual([expect.stringMatching(/^error .*retrying: .*IP: 127\.0\.0\.1 is not in the cert's list/)]);
    await start({ url, tls: { ca, servername: 'localhost' } });
    await eventually(async () => expect(await connectionsTo(admin)).toContain('request'));
  });
});

describe('never without TLS', () => {
  let plain: RedisServer;
  let proxy: TcpProxy;
  let sent: string;
  beforeAll(async () => {
    plain = await RedisServer.start();
    proxy = await TcpProxy.start({ port: plain.port });
    proxy.onData('request', (data) => (sent += data.toString('latin1')));
  });
  beforeEach(() => {
    sent = '';
  });
  afterAll(async () => {
    await proxy.stop();
    await plain.stop();
  });

  // ioredis itself takes the second for an address without TLS.
  it.each(['rediss', 'REDISS'])('a %s:// url sends no password to a Redis that speaks no TLS', async (scheme) => {
    await failureOf({ url: `${scheme}://app:secret-word@127.0.0.1:${proxy.port}` });
    expect(sent).not.toBe('');
    expect(sent).not.toContain('secret-word');
  });

  it('a command says that such a Redis may be the reason why it hears nothing', async () => {
    const call = (address: StoreAddress) => ({ address, signal: new AbortController().signal });
    const work = () => Promise.reject(new Error('Never called'));
    await expect(withRedis(call({ url: `rediss://127.0.0.1:${plain.port}` }), work)).rejects.toThrow(
      /, TLS\) cannot be reached: .*no reply.*, or correct its address: a port without TLS does not reply to TLS$/,
    );
    const nowhere = withRedis(call({ url: 'rediss://127.0.0.1:1' }), work);
    await expect(nowhere).rejects.toThrow(/ECONNREFUSED.*Start it, or correct its address$/);
  }, 20_000);

  it('a redis:// url is no way into a Redis that speaks only TLS', async () => {
    const lines = await failureOf({ url: open.url.replace('rediss:', 'redis:') });
    expect(lines).toEqual([expect.stringMatching(/^error .*Redis cannot be reached, retrying: .*read ECONNRESET/)]);
  });
});

it.each<[string, RedisSessionModuleOptions]>([
  ['needs a rediss:// `url`', { url: 'redis://localhost:6379', tls: {} }],
  ['needs a rediss:// `url`', { tls: {} }],
  ['belongs to `url`', { client: new Redis({ lazyConnect: true }), tls: {} }],
  ['must be an object', { url: 'rediss://localhost:6379', tls: true as never }],
])('the option `tls` %s', async (problem, options) => {
  await expect(start(options)).rejects.toThrow(`Option \`tls\` ${problem}`);
});
