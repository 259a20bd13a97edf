import { LeakGuard, TcpProxy } from '@nest-session/test-infrastructure';
import { RedisServer } from '@nest-session/testing';
import { RESPONSE_COLUMNS, ResponseApp } from '../support/response.app.js';
import { sessionCookiesOf } from '../support/response.client.js';
import { ATTRIBUTE } from '../support/response.routes.js';
import { rowsOf } from '../support/response.rows.js';

// On bare Express and Fastify: the chaos suites repeat it beside each companion, and for further faults.

LeakGuard.install();

const UNAVAILABLE = {
  statusCode: 503,
  message: 'Session store unavailable',
  error: 'Service Unavailable',
  reason: 'store-unavailable',
};

let server: RedisServer;
let proxy: TcpProxy;
beforeAll(async () => {
  server = await RedisServer.start();
  proxy = await TcpProxy.start({ port: server.port });
});
afterAll(async () => {
  await proxy.stop();
  await server.stop();
});

const isSave = (burst: Buffer) => burst.includes(ATTRIBUTE);

/** The `cookie` header of a stored session, which has the mark of `value` only. */
async function storedSession({ client }: ResponseApp): Promise<{ cookie: string }> {
  const [cookie] = sessionCookiesOf(await client.ask({ path: '/api/value' }));
  return { cookie: cookie!.slice(0, cookie!.indexOf(';')) };
}

describe.each(['Express', 'Fastify'])('%s', (name) => {
  const column = RESPONSE_COLUMNS[name]!;
  const rows = rowsOf(column);
  let app: ResponseApp;
  afterEach(() => proxy.release());
  afterAll(() => app.stop());

  describe('while Redis is slow', () => {
    beforeAll(async () => {
      app = await ResponseApp.start(column, { url: proxy.url, notifications: 'off', commandTimeout: '1m' });
    });

    describe.each([
      ['a new session', () => Promise.resolve({})],
      ['a stored session', storedSession],
    ])('%s', (_, headersOf) => {
      it.each(rows)('is saved before the client receives a byte: %s', async (_row, row) => {
        const headers = { ...row.headers, ...(await headersOf(app)) };
        const order: string[] = [];
        proxy.hold('reply', isSave);
        const pending = app.client.ask({ ...row, headers }, () => order.push('responded'));
        await proxy.untilHeld('reply');
        // Any byte sent so far would arrive before the response to a later request.
        await app.client.ask({ path: '/api/plain' });
        order.push('saved');
        proxy.release('reply');
        expect((await pending).status).toBe(row.status);
        expect(order).toEqual(['saved', 'responded']);
      });
    });
  });

  describe('failing to save', () => {
    const few = ['a value', '@Res()', '@Redirect()', 'a generator', 'a guard that denies'];
    beforeAll(async () => {
      await app.stop();
      app = await ResponseApp.start(column, { url: proxy.url, notifications: 'off', commandTimeout: '700ms' });
    });

    describe.each([
      ['a new session', () => Promise.resolve({})],
      ['a stored session', storedSession],
    ])('%s', (_, headersOf) => {
      const asked = rows.filter(([title]) => few.includes(title));

      it.each(asked)('responds 503 without a cookie when the reply is lost, instead of %s', async (_row, row) => {
        const headers = { ...row.headers, ...(await headersOf(app)) };
        const lost = proxy.dropNextReply(isSave);
        const response = await app.client.ask({ ...row, headers });
        await lost;
        expect([response.status, sessionCookiesOf(response), JSON.parse(response.text)]).toEqual([
          503,
          [],
          UNAVAILABLE,
        ]);
      });

      it.each(asked.filter(([title]) => /value|Res/.test(title)))(
        'responds 503 without a cookie when the reply is late, instead of %s',
        async (_row, row) => {
          const headers = { ...row.headers, ...(await headersOf(app)) };
          proxy.hold('reply', isSave);
          const pending = app.client.ask({ ...row, headers });
          await proxy.untilHeld('reply');
          const response = await pending;
          expect([response.status, sessionCookiesOf(response), JSON.parse(response.text)]).toEqual([
            503,
            [],
            UNAVAILABLE,
          ]);
        },
      );
    });
  });
});
