import { LeakGuard } from '@nest-session/test-infrastructure';
import { AdminApp, closeApps, PATH, PLATFORMS } from '../support/admin.app.js';

LeakGuard.install();
afterEach(closeApps);

const HTML = '"><img src=x onerror=alert(1)>';

describe.each(PLATFORMS)('hostile input on %s', (platform) => {
  it.each([
    ['GET', '/sessions'],
    ['GET', '/sessions?username='],
    ['GET', '/sessions?username=a&username=b'],
    ['GET', '/sessions?username=bob&limit=0'],
    ['GET', '/sessions?username=bob&limit=201'],
    ['GET', '/sessions?username=bob&limit=1e9'],
    ['GET', '/sessions?username=bob&limit=-1'],
    ['GET', '/sessions?username=bob&offset=99999999'],
    ['GET', '/sessions?username=bob&limit=1&limit=2'],
    ['DELETE', '/sessions'],
    ['DELETE', '/sessions?username[]=bob'],
    ['GET', '/groups?of=users'],
    ['DELETE', '/groups?of=sessions'],
    ['DELETE', '/groups?name=default'],
    ['GET', '/dead-letters?of=x'],
    ['GET', '/dead-letters?after=1-0-0'],
    ['GET', '/dead-letters?of=deadlines&after=sessions:1-0-0'],
    ['POST', '/dead-letters/1-0-0/replay'],
    ['DELETE', `/dead-letters/${encodeURIComponent(HTML)}`],
    ['GET', '/deadlines?name=a&name=b'],
    ['DELETE', '/deadlines?name=a'],
    ['DELETE', '/deadlines'],
  ])('is a bad request: %s %s', async (method, path) => {
    const app = await AdminApp.start({ platform });
    const { status, headers, text } = await (await app.admin()).request(method, PATH + path);
    expect([status, text]).toEqual([400, expect.any(String)]);
    expect(headers['content-type']).toContain('application/json');
    expect(app.events).toEqual([]);
  });

  it.each([
    '/sessions/x',
    `/sessions/${'a'.repeat(129)}`,
    `/sessions/${'a'.repeat(5000)}`,
    `/sessions/${encodeURIComponent(HTML)}`,
    '/sessions/..%2f..%2fcart',
    '/sessions/%2e%2e%2foverview',
    '/sessions/__proto__',
    '/sessions/constructor',
    '/sessions/%00',
    '/sessions/*',
    '/sessions/%E2%80%AE',
    '/files/..%2fpage.js',
    '/files/__proto__',
    '/files/constructor',
    '/files/page.html',
    '/files/%2e%2e%2f%2e%2e%2fpackage.json',
    '/nothing',
  ])('is not found, and says so in JSON: %s', async (path) => {
    const app = await AdminApp.start({ platform });
    const admin = await app.admin();
    for (const method of path.startsWith('/sessions') ? ['GET', 'DELETE'] : ['GET']) {
      const { status, headers } = await admin.request(method, PATH + path);
      // Fastify has no routes for parameters of more than 100 characters, and says so.
      expect([404, 414]).toContain(status);
      expect(headers['content-type']).toContain('application/json');
    }
  });

  it.each([
    ['POST', ''],
    ['DELETE', ''],
    ['POST', '/overview'],
    ['PUT', '/sessions/abcdefghijklmnopqrstuvwx'],
    ['PATCH', '/sessions'],
    ['GET', '/dead-letters/replay'],
    ['DELETE', '/files/page.js'],
  ])('of another method is not found: %s %s', async (method, path) => {
    const app = await AdminApp.start({ platform });
    expect((await (await app.admin()).request(method, PATH + path)).status).toBe(404);
  });

  it('a user whose name is HTML is shown as JSON, byte by byte', async () => {
    const app = await AdminApp.start({ platform });
    const admin = await app.admin();
    const { id } = await app.signIn(HTML);
    const { headers, text } = await admin.get(`${PATH}/sessions?username=${encodeURIComponent(HTML)}`);
    expect(headers['content-type']).toContain('application/json');
    expect(JSON.parse(text)).toMatchObject({ sessions: [{ id, principalName: HTML }] });
  });

  it('a user of whom nobody has heard has no sessions, whatever the name', async () => {
    const app = await AdminApp.start({ platform });
    const admin = await app.admin();
    for (const name of ['nobody', '__proto__', '../ada', '*', 'ad?', 'a'.repeat(4000), '\u0000', '*\r\nDEL x']) {
      const response = await admin.get(`${PATH}/sessions?username=${encodeURIComponent(name)}`);
      expect([name, response.json()]).toEqual([name, { sessions: [], total: 0, next: null }]);
    }
  });

  it('an admin who only looks starts no session', async () => {
    const app = await AdminApp.start({ platform, admin: { guards: 'none' } });
    for (const path of ['', '/overview', '/sessions?username=bob', '/groups', '/dead-letters', '/deadlines']) {
      expect((await app.agent().get(PATH + path)).setCookies).toEqual([]);
    }
  });
});
