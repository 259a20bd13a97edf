import { LeakGuard } from '@nest-session/test-infrastructure';
import { type AdminAccess, type AdminRight } from '../../src/index.js';
import { AdminApp, closeApps, PATH, PLATFORMS } from '../support/admin.app.js';

LeakGuard.install();
afterEach(closeApps);

const ACTIONS: readonly (readonly [AdminRight, string, string])[] = [
  ['end', 'DELETE', '/sessions/abcdefghijklmnopqrstuvwx'],
  ['end', 'DELETE', '/sessions?username=bob'],
  ['replay', 'POST', '/dead-letters/replay'],
  ['replay', 'POST', '/dead-letters/sessions:1-0-0/replay'],
  ['discard', 'DELETE', '/dead-letters'],
  ['discard', 'DELETE', '/dead-letters/sessions:1-0-0'],
  ['removeGroup', 'DELETE', '/groups?of=sessions&name=default'],
  ['cancelDeadline', 'DELETE', '/deadlines?name=a&key=b'],
];

const PRIVATE = {
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
  'cross-origin-resource-policy': 'same-origin',
};

const READS = ['', '/overview', '/users?text=bob', '/sessions?username=bob', '/groups', '/dead-letters', '/deadlines'];

describe.each(PLATFORMS)('the option `access` on %s', (platform) => {
  const start = (access: AdminAccess | Promise<AdminAccess>) =>
    AdminApp.start({ platform, admin: { access: () => access } });

  it.each(ACTIONS)('an action needs the right %s: %s %s', async (right, method, path) => {
    for (const refusing of ['read', {}, { [right]: false }, { [right]: 'yes' as never }] as const) {
      const admin = await (await start(refusing)).admin();
      const message = expect.stringMatching(/^You may not (end|replay|discard|remove|cancel) /) as string;
      const refused = { statusCode: 403, reason: 'admin-right-missing', message };
      expect((await admin.request(method, PATH + path)).json()).toMatchObject(refused);
    }
    for (const granting of ['all', { [right]: true }] as const) {
      const { status } = await (await (await start(granting)).admin()).request(method, PATH + path);
      expect(status).not.toBe(403);
    }
  });

  it.each(READS)('who may read may read: %s', async (path) => {
    const admin = await (await start(Promise.resolve('read'))).admin();
    expect((await admin.get(PATH + path)).status).toBe(200);
  });

  it.each([
    ...READS.map((path) => ['GET', path] as const),
    ...ACTIONS.map(([, method, path]) => [method, path] as const),
  ])("'none' is not even to look: %s %s", async (method, path) => {
    const admin = await (await start('none')).admin();
    const refused = { statusCode: 403, reason: 'admin-not-allowed' };
    expect((await admin.request(method, PATH + path)).json()).toMatchObject(refused);
  });

  it.each([undefined, true, 'write'])('what cannot be meant lets nobody in: %s', async (access) => {
    const app = await start(access as never);
    expect((await (await app.admin()).get(`${PATH}/overview`)).status).toBe(500);
    expect(app.log.matching(/Option `access` of SessionAdminModule must return/)).not.toEqual([]);
  });

  it('it gets the request of the platform, with what the guards have put there', async () => {
    const app = await AdminApp.start({
      platform,
      admin: {
        guards: [
          {
            canActivate: (context) => {
              Object.assign(context.switchToHttp().getRequest<object>(), { user: { role: 'support' } });
              return true;
            },
          },
        ],
        access: ({ user, headers }) =>
          (user as { role: string }).role === 'support' && headers['x-second'] === 'yes' ? { end: true } : 'none',
      },
    });
    const overview = await app.agent().get(`${PATH}/overview`, { headers: { 'x-second': 'yes' } });
    expect(overview.json()).toMatchObject({
      rights: { end: true, replay: false, discard: false, removeGroup: false, cancelDeadline: false },
    });
    expect((await app.agent().get(`${PATH}/overview`)).status).toBe(403);
  });
});

describe('pages of other origins', () => {
  const attack = { 'sec-fetch-site': 'cross-site', origin: 'https://evil.example' };

  it.each(PLATFORMS.flatMap((platform) => ACTIONS.map(([, method, path]) => [platform, method, path] as const)))(
    'get nothing done on %s: %s %s',
    async (platform, method, path) => {
      const app = await AdminApp.start({ platform, session: { csrf: { trustedOrigins: ['https://evil.example'] } } });
      const admin = await app.admin();
      for (const headers of [
        attack,
        { 'sec-fetch-site': 'same-site' },
        { 'sec-fetch-site': '' },
        { origin: 'https://evil.example' },
        { origin: 'null' },
      ]) {
        const response = await admin.request(method, PATH + path, { headers });
        expect([headers, response.status]).toEqual([headers, 403]);
        expect(response.json()).toMatchObject({ reason: 'cross-origin' });
      }
      for (const headers of [
        {},
        { 'sec-fetch-site': 'same-origin', origin: app.origin },
        { 'sec-fetch-site': 'none' },
      ]) {
        const response = await admin.request(method, PATH + path, { headers });
        expect([headers, response.status]).not.toEqual([headers, 403]);
      }
    },
  );

  it('are told of', async () => {
    const app = await AdminApp.start();
    const admin = await app.signIn('ada');
    await admin.agent.request('DELETE', `${PATH}/sessions?username=bob`, { headers: attack });
    expect(app.events).toMatchObject([
      { kind: 'refused-origin', reason: 'cross-origin', principalName: 'ada', sessionId: admin.id, method: 'DELETE' },
    ]);
  });

  it('cannot make a browser keep or frame a response', async () => {
    const app = await AdminApp.start();
    const admin = await app.admin();
    for (const path of ['', '/files/page.js', '/overview', '/sessions/abcdefghijklmnopqrstuvwx', '/sessions']) {
      const { headers } = await admin.get(PATH + path);
      expect(headers).toMatchObject(PRIVATE);
    }
    const { headers } = await app.agent().get(`${PATH}/overview`);
    expect(headers).toMatchObject(PRIVATE);
    expect((await admin.get(PATH)).headers).toMatchObject({
      'x-frame-options': 'DENY',
      'content-security-policy': expect.stringMatching(/^default-src 'none'; [^*]*frame-ancestors 'none'$/),
    });
  });
});
