import { randomBytes } from 'node:crypto';
import { Logger } from '@nestjs/common';
import type { SessionModuleOptions } from '@nest-session/core';
import { LeakGuard, LogRecorder, TcpProxy } from '@nest-session/test-infrastructure';
import { RedisServer } from '@nest-session/testing';
import fc from 'fast-check';
import { SIGNING_KEYS } from '../../../session-core/test/support/signing.keys.js';
import { App } from '../support/app.fixture.js';
import { junk, lines, MALFORMED, NO_REQUESTS } from '../support/junk.js';
import { sendRaw } from '../support/raw.request.js';

LeakGuard.install();

const text = junk.filter((value) => !/\p{Surrogate}/u.test(value));
const alias = fc.oneof(fc.constantFrom('0', '1', '19', '20', '-1', '01', '1.0', '__proto__'), text);
const target = fc.tuple(fc.constantFrom('', '_s', 'a=1&_s', '_s=1&_s', '_S', 'x_s'), alias);
const host = fc.oneof(
  fc.constantFrom('shop.example.org', 'shop.example.org:80', 'example.org.evil', '[::1]', '', ':', 'a;b', '.', 'a..b'),
  text,
);

const ATTRIBUTES = String.raw`(; Max-Age=\d+)?(; Domain=example\.org)?; Path=\/; HttpOnly; SameSite=Lax`;

describe.each<[string, 'express' | 'fastify', SessionModuleOptions, number]>([
  ['are signed', 'express', { cookie: { signingKeys: SIGNING_KEYS } }, 0],
  ['are signed', 'fastify', { cookie: { signingKeys: SIGNING_KEYS } }, 0],
  ['are one for each alias', 'express', { multipleSessions: true }, 1],
  ['are one for each alias', 'fastify', { multipleSessions: true }, 1],
  ['are of a domain', 'express', { cookie: { domain: ['example.org'], maxAge: '1d' } }, 1],
  ['are of a domain', 'fastify', { cookie: { domain: ['example.org'], maxAge: '1d' } }, 1],
])('requests with arbitrary headers, where cookies %s on %s,', (_, adapter, session, flightsOfToken) => {
  const log = new LogRecorder();
  let server: RedisServer;
  let proxy: TcpProxy;
  let app: App;
  beforeAll(async () => {
    server = await RedisServer.start();
    proxy = await TcpProxy.start({ port: server.port });
    const redis = { url: proxy.url, notifications: 'off', commandTimeout: '1m' } as const;
    app = await App.start({ adapter, session, redis, handlers: false });
    Logger.overrideLogger(log);
    proxy.countFlights((burst) => burst.includes(':sessions:'));
  });
  afterAll(async () => {
    Logger.overrideLogger(false);
    await app.stop();
    await proxy.stop();
    await server.stop();
  });

  it('get the response of a request without a session, without a round trip to Redis', async () => {
    const flights = await proxy.flightsDuring(() =>
      fc.assert(
        fc.asyncProperty(target, lines, host, async ([name, value], given, at) => {
          const response = await sendRaw(app.url, `GET /read?${name}=${encodeURIComponent(value)}`, given, at);
          expect([200, ...NO_REQUESTS]).toContain(response.status);
          expect(response.setCookies).toEqual([]);
          if (response.status === 200) expect(response.body).toContain('"isNew":true');
        }),
        { numRuns: 300 },
      ),
    );
    expect(flights).toBe(0);
  });

  it('get cookies as configured, with newly generated tokens', async () => {
    const issued: string[] = [];
    await fc.assert(
      fc.asyncProperty(target, lines, host, async ([name, value], given, at) => {
        const response = await sendRaw(app.url, `POST /login/ann?${name}=${encodeURIComponent(value)}`, given, at);
        expect([201, ...NO_REQUESTS]).toContain(response.status);
        if (response.status !== 201) return;
        const [cookie, ...others] = response.setCookies;
        expect(others).toEqual([]);
        expect(cookie).toMatch(new RegExp(String.raw`^SESSION(\.1?\d)?=[\w.=-]{43,}${ATTRIBUTES}$`));
        const sent = /=([^;]+)/.exec(cookie!)![1]!;
        expect(given.join()).not.toContain(sent);
        issued.push(sent);
      }),
      { numRuns: 150 },
    );
    expect(new Set(issued).size).toBe(issued.length);
    for (const value of issued) expect(log.lines.join('\n')).not.toContain(value);
  });

  it('cause a load only when they have a well-formed token', async () => {
    const token = randomBytes(32).toString('base64url');
    const read = () => sendRaw(app.url, 'GET /read', [`Cookie: SESSION=${token}`]);
    expect(await proxy.flightsDuring(async () => expect((await read()).status).toBe(200))).toBe(flightsOfToken);
    // Each warning is logged once, for the first value of its kind.
    for (const value of [token, ...MALFORMED.filter(({ length }) => length > 8)]) {
      expect(log.lines.join('\n')).not.toContain(value);
    }
    expect(log.matching(/^error/)).toEqual([]);
  });
});
