import { jest } from '@jest/globals';
import { Sessions } from '@nest-session/core';
import { RedisSessionModule } from '@nest-session/redis';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually, RedisServer } from '@nest-session/testing';
import { AdminApp, closeApps, PATH, PLATFORMS } from '../support/admin.app.js';

LeakGuard.install();
afterEach(async () => {
  jest.restoreAllMocks();
  await closeApps();
});

describe.each(PLATFORMS)('every action on %s', (platform) => {
  it('is an event that says who did what to whom', async () => {
    const app = await AdminApp.start({ platform });
    const admin = await app.admin();
    const bob = await app.signIn('bob');
    await app.signIn('eve');
    await admin.request('DELETE', `${PATH}/sessions/${bob.id}`);
    await admin.request('DELETE', `${PATH}/sessions?username=eve`);
    const request = { method: 'DELETE', remoteAddress: '127.0.0.1', by: 'ada', reason: undefined };
    await eventually(() =>
      expect(app.events).toMatchObject([
        {
          kind: 'admin-action',
          action: 'end-session',
          sessionId: bob.id,
          principalName: 'bob',
          path: `${PATH}/sessions/${bob.id}`,
          ...request,
        },
        { kind: 'admin-action', action: 'end-sessions', sessionId: undefined, principalName: 'eve', ...request },
      ]),
    );
  });

  it('is an event of its own, however many there are', async () => {
    const app = await AdminApp.start({ platform });
    const admin = await app.admin();
    for (let i = 0; i < 10; i++) {
      await app.signIn('bob');
      await admin.request('DELETE', `${PATH}/sessions?username=bob`);
    }
    await eventually(() => expect(app.events).toHaveLength(10));
    expect(app.events.every(({ suppressed }) => suppressed === 0)).toBe(true);
  });

  it('has the name that the option `by` says', async () => {
    const app = await AdminApp.start({
      platform,
      admin: { guards: 'none', by: async ({ headers }) => headers['x-employee'] as string | undefined },
    });
    for (const headers of [{ 'x-employee': 'carol' }, {}]) {
      await app.signIn('bob');
      await app.agent().request('DELETE', `${PATH}/sessions?username=bob`, { headers });
    }
    await eventually(() => expect(app.events.map(({ by }) => by)).toEqual(['carol', undefined]));
  });

  it('is told of with the name of an administrator who has ended the own session', async () => {
    const app = await AdminApp.start({ platform });
    const ada = await app.signIn('ada');
    expect((await ada.agent.request('DELETE', `${PATH}/sessions?username=ada`)).json()).toEqual({ ended: 1 });
    await eventually(() => expect(app.events).toMatchObject([{ action: 'end-sessions', by: 'ada' }]));
    expect((await ada.agent.get(`${PATH}/overview`)).status).toBe(401);
  });

  it('that found nothing to do is none', async () => {
    const app = await AdminApp.start({ platform });
    const admin = await app.admin();
    expect((await admin.request('DELETE', `${PATH}/sessions?username=nobody`)).json()).toEqual({ ended: 0 });
    expect((await admin.request('DELETE', `${PATH}/sessions/${'x'.repeat(43)}`)).status).toBe(404);
    expect(app.events).toEqual([]);
  });

  it('that came too late is none: the session ended between the look at it and its end', async () => {
    let between: (() => Promise<unknown>) | undefined;
    const by = async () => {
      await between?.();
      return 'ada';
    };
    const app = await AdminApp.start({ platform, admin: { guards: 'none', by } });
    const bob = await app.signIn('bob');
    between = () => app.nest.get(Sessions, { strict: false }).end(bob.id);
    const address = `${PATH}/sessions/${bob.id}`;
    expect((await app.agent().get(address)).status).toBe(200);
    expect((await app.agent().request('DELETE', address)).status).toBe(404);
    expect(app.events).toEqual([]);
  });

  it('that was refused is none', async () => {
    const app = await AdminApp.start({ platform, admin: { access: () => ({ replay: true }) } });
    const admin = await app.admin();
    const bob = await app.signIn('bob');
    await admin.request('DELETE', `${PATH}/sessions/${bob.id}`);
    expect(app.events).toEqual([]);
  });

  it('that failed is one as well, because it may have had an effect', async () => {
    const redis = await RedisServer.start();
    try {
      const app = await AdminApp.start({
        platform,
        store: [RedisSessionModule.forRoot({ url: redis.url, commandTimeout: '200ms' })],
        admin: { guards: 'none', by: () => 'carol' },
      });
      redis.freeze();
      expect((await app.agent().request('DELETE', `${PATH}/sessions?username=bob`)).status).toBe(503);
      await eventually(() =>
        expect(app.events).toMatchObject([
          { action: 'end-sessions', principalName: 'bob', by: 'carol', reason: 'failed' },
        ]),
      );
      redis.thaw();
      await closeApps();
    } finally {
      await redis.stop();
    }
  });

  it('is a line in the log where nobody hears of it', async () => {
    const lines: string[] = [];
    const app = await AdminApp.start({ platform, listens: false });
    jest.spyOn(app.log, 'log').mockImplementation((line?: unknown) => void lines.push(String(line)));
    const admin = await app.admin();
    const bob = await app.signIn('b"ob\n');
    await admin.request('DELETE', `${PATH}/sessions/${bob.id}`);
    await app.signIn('b"ob\n');
    await admin.request('DELETE', `${PATH}/sessions?username=${encodeURIComponent('b"ob\n')}`);
    expect(lines).toEqual([
      `Admin action: {"action":"end-session","session":"${bob.id}","user":"b\\"ob\\n","by":"ada"}`,
      'Admin action: {"action":"end-sessions","user":"b\\"ob\\n","by":"ada"}',
    ]);
  });
});
