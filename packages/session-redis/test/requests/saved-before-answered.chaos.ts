import { LeakGuard, TcpProxy } from '@nest-session/test-infrastructure';
import { RedisServer } from '@nest-session/testing';
import { RESPONSE_COLUMNS, ResponseApp } from '../support/response.app.js';
import { type ReceivedResponse, sessionCookiesOf } from '../support/response.client.js';
import { ATTRIBUTE } from '../support/response.routes.js';
import { rowsOf } from '../support/response.rows.js';

LeakGuard.install();

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

const ACCEPT = { 'accept-encoding': 'gzip' };

describe.each(Object.entries(RESPONSE_COLUMNS))('%s', (_, column) => {
  const responses: ReceivedResponse[] = [];
  let app: ResponseApp;
  beforeAll(async () => {
    app = await ResponseApp.start(column, { url: proxy.url, notifications: 'off', commandTimeout: '1m' });
  });
  afterAll(() => app.stop());

  it.each(rowsOf(column))('saves the session before the response: %s', async (_row, row) => {
    const { status, marks, filters = 0, check } = row;
    const order: string[] = [];
    app.takeFilterCalls();
    proxy.hold('reply', (burst) => burst.includes(ATTRIBUTE));
    const pending = app.client.ask({ ...row, headers: { ...ACCEPT, ...row.headers } }, () => order.push('head'));
    await proxy.untilHeld('reply');
    // Any byte sent so far would arrive before the response to a later request.
    await app.client.ask({ path: '/api/plain' });
    order.push('saved');
    proxy.release('reply');
    const response = await pending;
    responses.push(response);

    expect(order).toEqual(['saved', 'head']);
    expect(response.status).toBe(status);
    check?.(response);
    expect(app.takeFilterCalls()).toBe(filters);
    const cookie = cookieOf(response);
    const read = (headers: Record<string, string>) => app.client.ask({ path: '/api/read', headers });
    expect(JSON.parse((await read({ cookie })).text)).toEqual(marks);

    const again = await app.client.ask({ ...row, headers: { ...ACCEPT, ...row.headers, cookie } });
    expect([again.status, sessionCookiesOf(again)]).toEqual([status, []]);
    expect(JSON.parse((await read({ cookie })).text)).toEqual([...marks, ...marks]);
  });

  it('runs with its companion at work', () => {
    expect(app.companion?.hasWorked(responses) ?? true).toBe(true);
  });
});

function cookieOf(response: ReceivedResponse): string {
  const [cookie, ...more] = sessionCookiesOf(response);
  expect(more).toEqual([]);
  expect(cookie).toMatch(/^SESSION=[\w-]{43}; Path=\/; HttpOnly; SameSite=Lax$/);
  return cookie!.slice(0, cookie!.indexOf(';'));
}
