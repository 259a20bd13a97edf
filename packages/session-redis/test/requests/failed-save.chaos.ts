import type { Server } from 'node:http';
import { promisify } from 'node:util';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually, RedisServer } from '@nest-session/testing';
import { Redis } from 'ioredis';
import { RESPONSE_COLUMNS, ResponseApp } from '../support/response.app.js';
import { sessionCookiesOf } from '../support/response.client.js';
import { rowsOf } from '../support/response.rows.js';

LeakGuard.install();

const ACCEPT = { 'accept-encoding': 'gzip' };
const UNAVAILABLE = {
  statusCode: 503,
  message: 'Session store unavailable',
  error: 'Service Unavailable',
  reason: 'store-unavailable',
};

let server: RedisServer;
let redis: Redis;
beforeAll(async () => {
  server = await RedisServer.start();
  redis = new Redis(server.url);
});
afterAll(async () => {
  redis.disconnect();
  await server.stop();
});

describe.each(Object.entries(RESPONSE_COLUMNS))('%s', (_, column) => {
  let app: ResponseApp;
  let cookie: string;
  beforeAll(async () => {
    app = await ResponseApp.start(column, { url: server.url, notifications: 'off', commandTimeout: '1m' });
    const [setCookie] = sessionCookiesOf(await app.client.ask({ path: '/api/value' }));
    cookie = setCookie!.slice(0, setCookie!.indexOf(';'));
    // From now on Redis allows reads and rejects writes.
    await redis.config('SET', 'maxmemory', '1');
  });
  afterAll(async () => {
    await redis.config('SET', 'maxmemory', '0');
    await app.stop();
  });

  describe.each([
    ['a new session', () => ({})],
    ['a stored session', () => ({ cookie })],
  ])('with %s', (_kind, headersOf) => {
    it.each(rowsOf(column))('responds 503 when the save fails, instead of %s', async (_row, row) => {
      app.takeFilterCalls();
      const headers = { ...ACCEPT, ...row.headers, ...headersOf() };
      const response = await app.client.ask({ ...row, headers });

      expect([response.status, sessionCookiesOf(response)]).toEqual([503, []]);
      if (row.method !== 'HEAD') expect(JSON.parse(response.text)).toEqual(UNAVAILABLE);
      expect(app.takeFilterCalls()).toBe(row.filtersOnFailure);
    });
  });

  it('stores nothing and leaves nothing behind after failed saves', async () => {
    const { text } = await app.client.ask({ path: '/api/read', headers: { cookie } });
    expect(JSON.parse(text)).toEqual(['value']);
    app.client.close();
    await eventually(async () => expect(await connectionsOf(app)).toBe(0));
  });
});

function connectionsOf(app: ResponseApp): Promise<number> {
  const server = app.nest.getHttpServer() as Server;
  return promisify(server.getConnections.bind(server))();
}
