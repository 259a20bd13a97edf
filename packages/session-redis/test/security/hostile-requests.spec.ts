import { createHash } from 'node:crypto';
import { Logger } from '@nestjs/common';
import { CompositeSessionIdResolver, CookieSessionIdResolver, HeaderSessionIdResolver } from '@nest-session/core';
import { generateSessionKey } from '@nest-session/core/internal';
import { LeakGuard, LogRecorder, TcpProxy } from '@nest-session/test-infrastructure';
import { RedisServer } from '@nest-session/testing';
import fc from 'fast-check';
import { Redis } from 'ioredis';
import { SessionKeys } from '../../src/keys/session-keys.js';
import { App } from '../support/app.fixture.js';
import { lines, MALFORMED, NO_REQUESTS } from '../support/junk.js';
import { sendRaw } from '../support/raw.request.js';

LeakGuard.install();

describe.each(['express', 'fastify'] as const)('requests with arbitrary headers, on %s,', (adapter) => {
  const log = new LogRecorder();
  const keys = new SessionKeys(adapter);
  let server: RedisServer;
  let proxy: TcpProxy;
  let client: Redis;
  let app: App;
  beforeAll(async () => {
    server = await RedisServer.start();
    proxy = await TcpProxy.start({ port: server.port });
    client = new Redis(server.url);
    app = await App.start({
      adapter,
      session: {
        sessionIdResolver: new CompositeSessionIdResolver(
          new CookieSessionIdResolver(),
          HeaderSessionIdResolver.xAuthToken(),
        ),
      },
      redis: { url: proxy.url, namespace: adapter, notifications: 'off', commandTimeout: '1m' },
      handlers: false,
    });
    Logger.overrideLogger(log);
    proxy.countFlights((burst) => burst.includes(':sessions:'));
  });
  afterAll(async () => {
    Logger.overrideLogger(false);
    await app.stop();
    await proxy.stop();
    client.disconnect();
    await server.stop();
  });

  it('get the response of a request without a session, without a round trip to Redis', async () => {
    const flights = await proxy.flightsDuring(() =>
      fc.assert(
        fc.asyncProperty(lines, async (given) => {
          const response = await sendRaw(app.url, 'GET /read', given);
          expect([200, ...NO_REQUESTS]).toContain(response.status);
          expect(response.setCookies).toEqual([]);
          if (response.status === 200) expect(response.body).toContain('"isNew":true');
        }),
        { numRuns: 1000 },
      ),
    );
    expect(flights).toBe(0);
  });

  it('store their attributes under a newly generated token only', async () => {
    const issued: string[] = [];
    await fc.assert(
      fc.asyncProperty(lines, async (given) => {
        const response = await sendRaw(app.url, 'POST /login/ann', given);
        expect([201, ...NO_REQUESTS]).toContain(response.status);
        if (response.status !== 201) return;
        const [, token] =
          /^SESSION=([\w-]{43});/.exec(response.setCookies.join()) ?? /x-auth-token: ([\w-]{43})/i.exec(response.head)!;
        expect(given.join()).not.toContain(token);
        issued.push(token!);
      }),
      { numRuns: 200 },
    );
    expect(new Set(issued).size).toBe(issued.length);
    const ids = issued.map((token) => createHash('sha256').update(token).digest('base64url'));
    // The response to a request with garbage behind it is that to the garbage.
    expect(await client.keys(keys.shadow('*'))).toEqual(expect.arrayContaining(ids.map((id) => keys.shadow(id))));
    for (const token of issued) expect(log.lines.join('\n')).not.toContain(token);
  });

  it.each(MALFORMED)('cause no round trip: %j', async (value) => {
    const flights = await proxy.flightsDuring(async () => {
      for (const name of ['Cookie: SESSION=', 'X-Auth-Token: ']) {
        expect([200, ...NO_REQUESTS]).toContain((await sendRaw(app.url, 'GET /read', [`${name}${value}`])).status);
      }
    });
    expect(flights).toBe(0);
  });

  it('cause one round trip with 300 session cookies, and none with 300 other cookies', async () => {
    const tokens = Array.from({ length: 300 }, () => generateSessionKey().token.reveal());
    const read = (name: (i: number) => string) =>
      sendRaw(app.url, 'GET /read', [`Cookie: ${tokens.map((token, i) => `${name(i)}=${token}`).join('; ')}`]);
    expect(await proxy.flightsDuring(async () => expect((await read(() => 'SESSION')).status).toBe(200))).toBe(1);
    expect(await proxy.flightsDuring(async () => expect((await read((i) => `S${i}`)).status).toBe(200))).toBe(0);
  });

  it('leave only warnings without any of their values in the log', async () => {
    expect(log.matching(/^error/)).toEqual([]);
    const heard = log.lines.length;
    expect(heard).toBeLessThanOrEqual(3);
    for (const value of MALFORMED.filter(({ length }) => length > 8)) expect(log.lines.join()).not.toContain(value);
    // Proof that the recorder sees errors.
    await client.flushall();
    await client.set(keys.events, 'planted');
    expect((await sendRaw(app.url, 'POST /login/ann', [])).status).toBe(503);
    expect(log.lines.slice(heard)).toEqual([expect.stringMatching(/^error .*WRONGTYPE/)]);
  });
});
