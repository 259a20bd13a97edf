import { DeadlineModule, Deadlines, MapDeadlineModule } from '@nest-session/deadlines';
import { RedisSessionModule, SessionEventGroups } from '@nest-session/redis';
import { RedisDeadlineModule } from '@nest-session/deadlines/redis';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually, type HttpAgent, RedisServer } from '@nest-session/testing';
import { AdminApp, type AdminAppOptions, closeApps, PATH, PLATFORMS } from '../support/admin.app.js';
import { Redis } from 'ioredis';
import { FailingHandlers, paymentDue } from '../support/failing.js';

LeakGuard.install();

let redis: RedisServer;
beforeAll(async () => (redis = await RedisServer.start()));
afterAll(() => redis?.stop());
afterEach(closeApps);

interface Letter {
  id: string;
  of: string;
  event: Record<string, unknown>;
}

interface Letters {
  deadLetters: Letter[];
  next: { of: string; after: string }[];
}

let namespaces = 0;

/** A shop whose handlers fail at once. */
function start(options: AdminAppOptions = {}): Promise<AdminApp> {
  const namespace = `groups-${namespaces++}`;
  const address = { url: redis.url, namespace, events: { attempts: 1 } };
  return AdminApp.start({
    store: [RedisSessionModule.forRoot(address)],
    imports: [
      DeadlineModule.forRoot(),
      RedisDeadlineModule.forRoot({ ...address, namespace: `${namespace}-deadlines` }),
    ],
    providers: [FailingHandlers],
    ...options,
  });
}

const lettersOf = async (admin: HttpAgent, query = '') =>
  (await admin.get(`${PATH}/dead-letters${query}`)).json<Letters>();

async function awaitLetters(admin: HttpAgent, count: number, query = ''): Promise<Letter[]> {
  return eventually(async () => {
    const { deadLetters } = await lettersOf(admin, query);
    expect(deadLetters).toHaveLength(count);
    return deadLetters;
  });
}

describe.each(PLATFORMS)('groups and dead letters on %s', (platform) => {
  it('shows the groups of sessions and of deadlines, and how far they are', async () => {
    const app = await start({ platform });
    const admin = await app.admin();
    const { groups } = (await admin.get(`${PATH}/groups`)).json<{ groups: unknown[] }>();
    const group = {
      name: 'default',
      lag: expect.any(Number),
      pending: expect.any(Number),
      retrying: 0,
      dropped: 0,
      lostDeadLetters: 0,
      consumers: [{ name: expect.any(String), pending: expect.any(Number), idle: expect.any(Number) }],
    };
    expect(groups).toMatchObject([
      { of: 'sessions', ...group },
      { of: 'deadlines', ...group },
    ]);
    const ofOne = (await admin.get(`${PATH}/groups?of=deadlines`)).json();
    expect(ofOne).toMatchObject({ groups: [{ of: 'deadlines' }] });
  });

  it('removes a group without instances, no other one', async () => {
    const app = await start({ platform });
    const admin = await app.admin();
    const name = 'old & <b>unused</b>/1';
    await app.nest.get(SessionEventGroups).create(name);
    const remove = (query: string) => admin.request('DELETE', `${PATH}/groups?of=sessions&name=${query}`);
    const live = await remove('default');
    expect(live.json()).toMatchObject({ statusCode: 409, reason: 'group-alive' });
    expect((await remove('another')).status).toBe(404);
    expect((await remove(encodeURIComponent(name))).status).toBe(204);
    expect((await app.nest.get(SessionEventGroups).list()).map((each) => each.name)).toEqual(['default']);
    expect(app.events).toMatchObject([
      { action: 'remove-group', by: 'ada', target: 'group "old & <b>unused</b>/1" of sessions' },
    ]);
  });

  it('shows dead letters without values, and replays one', async () => {
    const app = await start({ platform });
    const admin = await app.admin();
    const deadlines = app.nest.get(Deadlines, { strict: false });
    await deadlines.schedule(paymentDue, 'order <42>', { in: 0, data: { total: 'secret-total' } });
    const letters = await awaitLetters(admin, 2);
    const [ofSession, ofDeadline] = [
      letters.find(({ of }) => of === 'sessions'),
      letters.find(({ of }) => of === 'deadlines'),
    ];
    expect(ofSession).toMatchObject({
      id: expect.stringMatching(/^sessions:/),
      reason: expect.stringContaining('<b>The mail server is down</b>'),
      group: 'default',
      handler: 'FailingHandlers.onSignIn',
      attempts: 1,
      canBeReplayed: true,
      event: { type: 'signed-in', principalName: 'ada' },
    });
    expect(ofDeadline!.event).toEqual({
      type: 'deadline',
      id: expect.any(String),
      name: 'order.payment-due',
      key: 'order <42>',
      dueTime: expect.any(String),
    });
    expect(JSON.stringify(letters)).not.toContain('secret-total');
    const handlers = app.nest.get(FailingHandlers);
    handlers.isFailing = false;
    expect((await admin.post(`${PATH}/dead-letters/${ofDeadline!.id}/replay`)).status).toBe(204);
    await eventually(() => expect(handlers.handled).toEqual(['payment of order <42>']));
    expect((await admin.post(`${PATH}/dead-letters/${ofDeadline!.id}/replay`)).status).toBe(404);
    await awaitLetters(admin, 1);
  });

  it("shows no id of a dead letter that is a token: sessionIds: 'plain'", async () => {
    const app = await start({ platform, session: { sessionIds: 'plain' } });
    const admin = await app.admin();
    const bob = await app.signIn('bob');
    const letters = await awaitLetters(admin, 2);
    const ofBob = letters.find(({ event }) => event['principalName'] === 'bob');
    expect(ofBob!.event['sessionId']).toMatch(/^sha256:[\w-]{16}$/);
    expect(JSON.stringify(letters)).not.toContain(bob.id);
  });

  it('shows the data of a deadline as the option `data` shows them', async () => {
    const app = await start({
      platform,
      admin: { data: (name, data) => [name, (data as { total: string }).total.length] },
    });
    const admin = await app.admin();
    const deadlines = app.nest.get(Deadlines, { strict: false });
    await deadlines.schedule(paymentDue, 'now', { in: 0, data: { total: '123' } });
    await deadlines.schedule(paymentDue, 'later', { in: '1h', data: { total: '12345' } });
    const [letter] = await awaitLetters(admin, 1, '?of=deadlines');
    expect(letter!.event['value']).toEqual(['order.payment-due', 3]);
    const waiting = await admin.get(`${PATH}/deadlines?name=order.payment-due`);
    expect(waiting.json()).toMatchObject({ deadlines: [{ key: 'later', value: ['order.payment-due', 5] }] });
  });

  it('lists dead letters in pages, and replays or discards all', async () => {
    const app = await start({ platform });
    const admin = await app.admin();
    for (let i = 0; i < 4; i++) await app.signIn(`user-${i}`);
    await awaitLetters(admin, 5);
    const first = await lettersOf(admin, '?limit=2');
    const [next] = first.next;
    expect(next).toEqual({ of: 'sessions', after: first.deadLetters[1]!.id });
    const second = await lettersOf(admin, `?limit=2&of=${next!.of}&after=${next!.after}`);
    const third = await lettersOf(admin, `?limit=2&of=sessions&after=${second.deadLetters[1]!.id}`);
    const seen = [first, second, third].flatMap(({ deadLetters }) => deadLetters.map(({ id }) => id));
    expect([seen.length, new Set(seen).size, third.next]).toEqual([5, 5, []]);

    expect((await admin.request('DELETE', `${PATH}/dead-letters/${seen[0]}`)).status).toBe(204);
    expect((await admin.request('DELETE', `${PATH}/dead-letters/${seen[0]}`)).status).toBe(404);
    expect((await admin.request('DELETE', `${PATH}/dead-letters?group=other`)).json()).toEqual({ discarded: 0 });
    const handlers = app.nest.get(FailingHandlers);
    handlers.isFailing = false;
    expect((await admin.post(`${PATH}/dead-letters/replay?of=sessions&group=default`)).json()).toEqual({ replayed: 4 });
    await eventually(() => expect(handlers.handled).toHaveLength(4));
    handlers.isFailing = true;
    await app.signIn('bob');
    await awaitLetters(admin, 1);
    expect((await admin.request('DELETE', `${PATH}/dead-letters`)).json()).toEqual({ discarded: 1 });
    await awaitLetters(admin, 0);
  });

  it('says that a dead letter whose group is gone can only be discarded', async () => {
    const namespace = `groups-${namespaces++}`;
    const inGroup = (group: string) =>
      start({
        platform,
        store: [RedisSessionModule.forRoot({ url: redis.url, namespace, events: { attempts: 1, group } })],
        imports: [],
      });
    const former = await inGroup('former');
    await awaitLetters(await former.admin(), 1);
    await closeApps();
    const app = await inGroup('default');
    const admin = await app.admin();
    expect((await admin.request('DELETE', `${PATH}/groups?of=sessions&name=former`)).status).toBe(204);
    const { id } = (await lettersOf(admin, '?group=former')).deadLetters[0]!;
    const orphaned = await admin.post(`${PATH}/dead-letters/${id}/replay`);
    expect(orphaned.json()).toMatchObject({ statusCode: 409, reason: 'dead-letter-orphaned' });
    expect((await admin.request('DELETE', `${PATH}/dead-letters/${id}`)).status).toBe(204);
    const client = new Redis(redis.url);
    await client.xadd(`${namespace}:events:dead`, '*', 'member', 'stray', 'reason', 'not a member', 'at', '1');
    await client.quit();
    const { deadLetters } = await lettersOf(admin);
    const stray = deadLetters.at(-1);
    const foreign = await admin.post(`${PATH}/dead-letters/${stray!.id}/replay`);
    expect(foreign.json()).toMatchObject({ statusCode: 409, reason: 'dead-letter-foreign' });
  });

  it('deadlines: shows the names that wait, and those of one in pages, and cancels', async () => {
    const app = await start({ platform });
    const admin = await app.admin();
    const deadlines = app.nest.get(Deadlines, { strict: false });
    for (const i of [3, 1, 2]) {
      await deadlines.schedule(paymentDue, `order "${i}"`, { in: `${i}h`, data: { total: 'secret-total' } });
    }
    expect((await admin.get(`${PATH}/deadlines`)).json()).toEqual({
      deadlines: [{ name: 'order.payment-due', count: 3, overdue: 0 }],
    });
    const list = async (query = '') =>
      (await admin.get(`${PATH}/deadlines?name=order.payment-due&limit=2${query}`)).json<{
        deadlines: { key: string }[];
        next: { key: string; dueAt: number } | null;
      }>();
    const first = await list();
    expect(first.deadlines.map(({ key }) => key)).toEqual(['order "1"', 'order "2"']);
    expect(first.deadlines[0]).toEqual({
      id: expect.any(String),
      key: 'order "1"',
      dueTime: expect.any(String),
      scheduledTime: expect.any(String),
      size: '{"total":"secret-total"}'.length,
    });
    const { key, dueAt } = first.next!;
    const second = await list(`&afterKey=${encodeURIComponent(key)}&afterDueAt=${dueAt}`);
    expect([second.deadlines.map((each) => each.key), second.next]).toEqual([['order "3"'], null]);
    // The first page again would never end a program that goes through all pages.
    for (const [half, missing] of [
      ['afterKey=a', 'afterDueAt'],
      ['afterDueAt=1', 'afterKey'],
    ]) {
      const response = await admin.get(`${PATH}/deadlines?name=order.payment-due&${half}`);
      expect([response.status, response.text]).toEqual([400, expect.stringContaining(`${missing} is missing`)]);
    }

    const cancel = (of: string) =>
      admin.request('DELETE', `${PATH}/deadlines?name=order.payment-due&key=${encodeURIComponent(of)}`);
    await deadlines.schedule(paymentDue, 'order "4"', { in: '1ms', data: { total: 'secret-total' } });
    await awaitLetters(admin, 1, '?of=deadlines');
    expect((await cancel('order "2"')).status).toBe(204);
    expect((await cancel('order "2"')).status).toBe(404);
    expect((await cancel('order "4"')).json()).toMatchObject({ statusCode: 409, reason: 'deadline-fired' });
    expect(app.events).toMatchObject([
      {
        action: 'cancel-deadline',
        by: 'ada',
        target: expect.stringMatching(/^deadline "order.payment-due" \([\w-]+\)$/),
      },
    ]);
    expect(await deadlines.count(paymentDue)).toBe(2);
  });

  it.each(['order', 'x'.repeat(101), '../a', '<b>'])('deadlines: the name %s has none, or is none', async (name) => {
    const app = await start({ platform });
    const admin = await app.admin();
    const response = await admin.get(`${PATH}/deadlines?name=${encodeURIComponent(name)}`);
    if (name === 'order') expect(response.json()).toEqual({ deadlines: [], next: null });
    else expect(response.status).toBe(400);
  });

  it('deadlines in memory work without sessions, and an event tells of each action', async () => {
    const app = await AdminApp.start({
      platform,
      session: false,
      admin: { guards: 'none', by: () => 'somebody' },
      imports: [DeadlineModule.forRoot(), MapDeadlineModule],
      providers: [FailingHandlers],
    });
    const deadlines = app.nest.get(Deadlines, { strict: false });
    await deadlines.schedule(paymentDue, 'a', { in: '1h', data: { total: '1' } });
    const agent = app.agent();
    expect((await agent.get(`${PATH}/deadlines`)).json()).toEqual({
      deadlines: [{ name: 'order.payment-due', count: 1, overdue: null }],
    });
    expect((await agent.get(`${PATH}/groups`)).json()).toMatchObject({
      groups: [{ of: 'deadlines', name: 'default' }],
    });
    expect((await agent.request('DELETE', `${PATH}/deadlines?name=order.payment-due&key=a`)).status).toBe(204);
    expect(app.events).toMatchObject([{ action: 'cancel-deadline', by: 'somebody' }]);
  });

  it('the overview tells of everything at a glance', async () => {
    const app = await start({ platform });
    const admin = await app.admin();
    await awaitLetters(admin, 1);
    const deadlines = app.nest.get(Deadlines, { strict: false });
    await deadlines.schedule(paymentDue, 'a', { in: '1h', data: { total: '1' } });
    const group = {
      name: 'default',
      lag: 0,
      oldestUnreadAge: 0,
      pending: 0,
      retrying: 0,
      dropped: 0,
      lostDeadLetters: 0,
    };
    const store = { namespace: expect.any(String), group: 'default', cleanupAge: expect.any(Number) };
    await eventually(async () =>
      expect((await admin.get(`${PATH}/overview`)).json()).toEqual({
        rights: { end: true, replay: true, discard: true, removeGroup: true, cancelDeadline: true },
        username: 'ada',
        sessions: {
          areIndexed: true,
          areNamed: false,
          indexes: [],
          store: { ...store, count: 1, overdue: 0, notifications: 'listening', groups: [{ ...group, deadLetters: 1 }] },
          health: { state: 'up', reasons: [] },
        },
        deadlines: {
          waiting: [{ name: 'order.payment-due', count: 1, overdue: 0 }],
          store: { ...store, groups: [{ ...group, deadLetters: 0 }] },
        },
        groupsOf: ['sessions', 'deadlines'],
        versions: { nestSession: expect.stringMatching(/^\d/), node: process.version },
      }),
    );
  });
});

it('what a store in memory lacks is not there', async () => {
  const app = await AdminApp.start();
  const admin = await app.admin();
  expect((await admin.get(`${PATH}/overview`)).json()).toMatchObject({
    sessions: { areIndexed: true, areNamed: false, indexes: [], store: null, health: null },
    deadlines: null,
    groupsOf: [],
  });
  expect((await admin.get(`${PATH}/groups`)).json()).toEqual({ groups: [] });
  expect((await admin.get(`${PATH}/dead-letters`)).json()).toEqual({ deadLetters: [], next: [] });
  expect((await admin.get(`${PATH}/deadlines`)).json()).toEqual({ deadlines: [] });
  expect((await admin.post(`${PATH}/dead-letters/sessions:1-0-0/replay`)).status).toBe(404);
  expect((await admin.request('DELETE', `${PATH}/deadlines?name=a&key=b`)).status).toBe(404);
});

it('while Redis is away, the overview says so, and everything else is a 503', async () => {
  const own = await RedisServer.start();
  try {
    const address = { url: own.url, commandTimeout: '200ms' };
    const app = await AdminApp.start({
      store: [RedisSessionModule.forRoot(address)],
      imports: [DeadlineModule.forRoot(), RedisDeadlineModule.forRoot(address)],
      admin: { guards: 'none' },
    });
    own.freeze();
    expect((await app.agent().get(`${PATH}/overview`)).json()).toMatchObject({
      sessions: { store: null, health: { state: 'down', reasons: [expect.any(String)] } },
      deadlines: { waiting: null, store: null },
    });
    const others = ['/sessions?username=bob', `/sessions/${'a'.repeat(43)}`, '/groups', '/dead-letters', '/deadlines'];
    for (const path of others) {
      expect([path, (await app.agent().get(PATH + path)).status]).toEqual([path, 503]);
    }
    own.thaw();
    await closeApps();
  } finally {
    await own.stop();
  }
});
