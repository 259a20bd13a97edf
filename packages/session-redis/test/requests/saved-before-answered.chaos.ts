import { LeakGuard, TcpProxy } from '@nest-session/test-infrastructure';
import { RedisServer } from '@nest-session/testing';
import { ANSWER_COLUMNS, AnswerApp } from '../support/answer.app.js';
import { type Answer, sessionCookiesOf } from '../support/answer.client.js';
import { ATTRIBUTE } from '../support/answer.routes.js';
import { rowsOf } from '../support/answer.rows.js';

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

describe.each(Object.entries(ANSWER_COLUMNS))('%s', (_, column) => {
  const answers: Answer[] = [];
  let app: AnswerApp;
  beforeAll(async () => {
    app = await AnswerApp.start(column, { url: proxy.url, notifications: 'off', commandTimeout: '1m' });
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
    const answer = await pending;
    answers.push(answer);

    expect(order).toEqual(['saved', 'head']);
    expect(answer.status).toBe(status);
    check?.(answer);
    expect(app.takeFilterCalls()).toBe(filters);
    const cookie = cookieOf(answer);
    const read = (headers: Record<string, string>) => app.client.ask({ path: '/api/read', headers });
    expect(JSON.parse((await read({ cookie })).text)).toEqual(marks);

    const again = await app.client.ask({ ...row, headers: { ...ACCEPT, ...row.headers, cookie } });
    expect([again.status, sessionCookiesOf(again)]).toEqual([status, []]);
    expect(JSON.parse((await read({ cookie })).text)).toEqual([...marks, ...marks]);
  });

  it('runs with its companion at work', () => {
    expect(app.companion?.hasWorked(answers) ?? true).toBe(true);
  });
});

function cookieOf(answer: Answer): string {
  const [cookie, ...more] = sessionCookiesOf(answer);
  expect(more).toEqual([]);
  expect(cookie).toMatch(/^SESSION=[\w-]{43}; Path=\/; HttpOnly; SameSite=Lax$/);
  return cookie!.slice(0, cookie!.indexOf(';'));
}
