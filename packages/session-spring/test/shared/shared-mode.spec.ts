import { Body, Controller, Get, Post } from '@nestjs/common';
import {
  Authenticated,
  IndexedSessionRepository,
  InvalidSessionOptionsError,
  Session,
  SessionAttributeError,
  SessionCreatedEvent,
  SessionDeletedEvent,
  SessionExpiredEvent,
  SessionIdChangedEvent,
  type SessionModuleOptions,
  SessionRepository,
  Sessions,
  SessionStateError,
} from '@nest-session/core';
import {
  type SharedSpringSessionOptions,
  signedInAs,
  signInAs,
  SpringJsonSerializer,
  springSessions,
} from '@nest-session/spring';
import { LeakGuard, SteppableRedisServer } from '@nest-session/test-infrastructure';
import { eventually } from '@nest-session/testing';
import { Cluster, Redis } from 'ioredis';
import { SPRING_PRINCIPAL_NAME } from '../../src/values/spring-principal.js';
import { SharedSessionSweeper } from '../../src/shared/shared-session.sweeper.js';
import { SweepCounter } from '../../../redis-events/src/cleanup/due.sweeper.js';
import { SessionPartitions } from '../../../session-redis/src/keys/session-partitions.js';
import type { App, AppOptions } from '../../../session-redis/test/support/app.fixture.js';
import { LineRecorder } from '../../../session-redis/test/support/line.recorder.js';
import { startWithSpring } from '../support/spring.app.js';
import { calledCommand } from '../../../session-cli/test/support/called.command.js';
import { SpringWriter } from '../support/spring-writer.js';
import { withAllRights } from '../../../session-redis/test/support/with-all-rights.js';

LeakGuard.install();

@Controller()
class SignInController {
  @Post('sign-in')
  signIn(@Session() session: Session) {
    signInAs(session, { name: 'ann', authorities: ['ROLE_USER'] });
    return { ok: true };
  }

  @Post('preferences')
  set(@Session() session: Session, @Body() { name, value }: { readonly name: string; readonly value: unknown }) {
    session.setAttribute(name, value);
    return { ok: true };
  }

  @Get('user')
  @Authenticated()
  user(@Session() session: Session) {
    return signedInAs(session);
  }
}

let server: SteppableRedisServer;
let client: Redis;
let spring: SpringWriter;
beforeAll(async () => {
  server = await SteppableRedisServer.start();
  client = new Redis(server.url);
  spring = new SpringWriter(client);
});
beforeEach(() => client.flushall());
afterAll(async () => {
  client.disconnect();
  await server.stop();
});

/** Resolves when it hears what Spring does. */
async function start(
  options?: Partial<SharedSpringSessionOptions>,
  own?: Pick<AppOptions, 'handlers' | 'configure'>,
): Promise<App> {
  const before = await hearing();
  const app = await startWithSpring(
    { url: server.url, mode: 'shared', commandTimeout: '30s', ...options },
    { controllers: [SignInController], ...own },
  );
  await eventually(async () => expect(await hearing()).toBe(before + 1));
  return app;
}

/** How many instances hear its created messages and its key events. */
async function hearing(): Promise<number> {
  return [...String(await client.client('LIST')).matchAll(/ sub=4 psub=1 /g)].length;
}

const cookieOf = (id: string) => ({ headers: { cookie: `SESSION=${Buffer.from(id).toString('base64')}` } });
const idIn = (cookie: string) => Buffer.from(/SESSION=([^;]*)/.exec(cookie)![1]!, 'base64').toString();

it('shares a namespace with a hash tag and brackets, and looks at no other', async () => {
  const namespace = 'shop[dev]:{tenant}';
  const own = new SpringWriter(client, namespace);
  const early = await own.create({ color: 'green' });
  const stranger = await new SpringWriter(client, 'shopd:{tenant}').create({ color: 'grey' });
  const app = await start({ namespace, url: withAllRights(server.url) });
  try {
    // The sweep takes in what was there before.
    await app.nest.get(SharedSessionSweeper, { strict: false }).lookAtAll(new AbortController().signal);
    const known = await client.zrange(`${namespace}:nest:ends`, '0', '-1');
    expect([known.includes(early), known.includes(stranger)]).toEqual([true, false]);
    const id = await own.create({ color: 'red' });
    const typesOf = () =>
      app.events
        .all()
        .filter(({ sessionId }) => sessionId === id)
        .map(({ type }) => type);
    await eventually(() => expect(typesOf()).toEqual(['created']));
    await own.invalidate(id);
    await eventually(() => expect(typesOf()).toEqual(['created', 'deleted']));
    expect((await app.agent().post('/set/cart', { value: 'full' })).status).toBe(201);
    const stats = await calledCommand([
      'stats',
      '--namespace',
      `${namespace}:nest`,
      '--url',
      withAllRights(server.url),
    ]);
    expect(JSON.parse(stats)).toMatchObject({ partitions: 1 });
  } finally {
    await app.stop();
  }
});

it('refuses a namespace beside which its keys would pass for those of another one', async () => {
  const started = startWithSpring({ url: server.url, mode: 'shared', namespace: 'shop:index' });
  await expect(started).rejects.toThrow('Option `namespace` must not contain :index, :revoked or :due: its keys');
});

describe('two instances', () => {
  let apps: [App, App];
  beforeEach(async () => {
    apps = [await start(), await start()];
    for (const { events } of apps) events.clear();
  });
  afterEach(() => Promise.all(apps.map((app) => app.stop())));
  const all = () => apps.flatMap(({ events }) => events.all());
  const typesOf = (id: string) =>
    all()
      .filter((event) => event.sessionId === id)
      .map(({ type }) => type);

  it('hear of each session that Spring creates, changes and deletes once, with its data', async () => {
    const id = await spring.create({ color: 'red', n: 1 });
    await eventually(() => expect(typesOf(id)).toEqual(['created']));
    await spring.set(id, 'color', 'blue');
    await spring.invalidate(id);
    await eventually(() => expect(typesOf(id)).toEqual(['created', 'deleted']));
    const deleted = all().find((event) => event instanceof SessionDeletedEvent)!;
    expect([deleted.session.getAttribute('color'), deleted.dataLost]).toEqual(['blue', false]);
    // Nobody else reports it, however often it is looked at.
    await sweep();
    expect(typesOf(id)).toEqual(['created', 'deleted']);
  });

  it('report no live session as over when the application itself looks for ends', async () => {
    const id = await spring.create({ color: 'red' });
    await eventually(() => expect(typesOf(id)).toEqual(['created']));
    const { claimed } = await apps[0].sweeper.runOnce({ ahead: 3_600_000 });
    expect(claimed).toBe(0);
    expect(await client.zscore('spring:session:nest:ends', id)).not.toBeNull();
  });

  it('follow a session whose id Spring changes', async () => {
    const id = await spring.create({ color: 'red' });
    await eventually(() => expect(typesOf(id)).toEqual(['created']));
    const newId = await spring.changeId(id);
    await eventually(() => expect(typesOf(newId)).toEqual(['id-changed']));
    const changed = all().find((event) => event instanceof SessionIdChangedEvent)!;
    expect([changed.previousSessionId, changed.session.getAttribute('color')]).toEqual([id, 'red']);
    expect(typesOf(id)).toEqual(['created']);
  });

  it('are not disturbed by what is no message and no key of Spring', async () => {
    for (const body of ['{no json', '', '[', '\u0000', '{"@class":1}'])
      await client.publish('spring:session:event:0:created:nobody', body);
    await client.publish('spring:session:event:0:created:', '{}');
    await client.set('spring:session:sessions:expires:', '', 'PX', 1);
    await client.rename(await given('spring:session:sessions:text'), 'spring:session:sessions:other');
    await client.rename('spring:session:sessions:other', 'spring:session:sessions:text');
    const id = await spring.create();
    await eventually(() => expect(typesOf(id)).toEqual(['created']));
    expect(typesOf('nobody')).toEqual([]);
  });

  it('hear of an expiry once, with the data, and so does Spring', async () => {
    const heard: string[] = [];
    const listener = client.duplicate();
    try {
      await listener.subscribe('__keyevent@0__:expired');
      listener.on('message', (_, key: string) => heard.push(key));
      const id = await spring.create({ color: 'red' }, 1);
      // An instance that is slow may hear of the expiry first: Redis publishes both, and waits for nobody.
      await eventually(() => expect(typesOf(id).toSorted()).toEqual(['created', 'expired']));
      const expired = all().find((event) => event instanceof SessionExpiredEvent)!;
      expect(expired.session.getAttribute('color')).toBe('red');
      await eventually(() => expect(heard).toContain(spring.shadow(id)));
      await sweep();
      expect(typesOf(id)).toHaveLength(2);
    } finally {
      listener.disconnect();
    }
  });

  it('report no end of a session that Spring has renewed', async () => {
    const id = await spring.create({}, 2);
    await eventually(() => expect(typesOf(id)).toEqual(['created']));
    await client.hset(spring.session(id), 'maxInactiveInterval', 1800);
    await spring.set(id, 'a', 1);
    await server.stepClock(60_000);
    await sweep();
    expect(typesOf(id)).toEqual(['created']);
    expect(await client.zscore('spring:session:nest:ends', id)).not.toBeNull();
  });

  it('do not report again what a late request of Spring has brought back', async () => {
    const id = await spring.create({ color: 'red' }, 60);
    await eventually(() => expect(typesOf(id)).toEqual(['created']));
    await spring.invalidate(id);
    await eventually(() => expect(typesOf(id)).toEqual(['created', 'deleted']));
    // Its save writes the shadow key and the bucket again, for a session that nobody can load.
    await client.set(spring.shadow(id), '', 'PX', 1);
    await client.hset(spring.session(id), 'lastAccessedTime', await spring.now());
    await sweep();
    expect(typesOf(id)).toEqual(['created', 'deleted']);
  });

  async function given(key: string): Promise<string> {
    await client.set(key, 'no session');
    return key;
  }

  async function sweep(): Promise<void> {
    for (const { nest } of apps) {
      const [partition] = nest.get(SessionPartitions, { strict: false }).all;
      const tally = new SweepCounter(false);
      await nest.get(SharedSessionSweeper, { strict: false }).sweep([partition!], tally, {});
      expect(tally.failures).toEqual([]);
    }
  }
});

it('finds what ended while no instance was there, within the grace period of Spring', async () => {
  const first = await start();
  const [expiring, deleted] = [await spring.create({ color: 'red' }, 60), await spring.create({ color: 'red' }, 1800)];
  await eventually(() => expect(first.events.all()).toHaveLength(2));
  await first.stop();
  await spring.invalidate(deleted);
  await server.stepClock(61_000);
  const later = await start();
  try {
    await eventually(() => expect(later.events.all()).toHaveLength(2));
    const told = later.events
      .all()
      .map(({ type, sessionId, session }) => `${type} ${sessionId} ${session.getAttribute<string>('color')}`);
    expect(told.toSorted()).toEqual([`deleted ${deleted} red`, `expired ${expiring} red`]);
  } finally {
    await later.stop();
  }
});

it('tells of a session that Spring creates while Redis lets nobody look at it, when it does again', async () => {
  const log = new LineRecorder();
  const app = await start({}, { configure: () => void log.install() });
  const ends = 'spring:session:nest:ends';
  try {
    for (const color of ['red', 'blue']) {
      await client.del(ends);
      await client.set(ends, 'planted');
      const id = await spring.create({ color });
      const refused = () => log.matching(/^Sessions that Spring has changed could not be looked at/).length;
      await eventually(() => expect(refused()).toBe(color === 'red' ? 1 : 2));
      await client.del(ends);
      const created = await app.events.next(SessionCreatedEvent, id);
      expect(created.session.getAttribute('color')).toBe(color);
    }
  } finally {
    await app.stop();
  }
});

it('finds the sessions that Spring had before', async () => {
  const [old, young] = [
    await spring.create({}, 1800, { tells: false }),
    await spring.create({ color: 'red' }, 1800, { tells: false }),
  ];
  await client.hincrby(spring.session(old), 'creationTime', -600_000);
  const app = await start();
  try {
    const created = await app.events.next(SessionCreatedEvent);
    expect([created.sessionId, created.session.getAttribute('color')]).toEqual([young, 'red']);
    await eventually(async () => expect(await client.zrange('spring:session:nest:ends', '0', '-1')).toContain(old));
    expect(app.events.all()).toHaveLength(1);
    await eventually(async () => expect(await client.exists('spring:session:nest:scanning')).toBe(0));
  } finally {
    await app.stop();
  }
});

it('finds the sessions that Spring had before, also when an instance has died that was looking for them', async () => {
  const id = await spring.create({}, 1800, { tells: false });
  await client.set('spring:session:nest:scanning', '', 'PX', 1500);
  const app = await start();
  try {
    await eventually(async () => expect(await client.zrange('spring:session:nest:ends', '0', '-1')).toEqual([id]));
  } finally {
    await app.stop();
  }
});

it('leaves the sessions that Spring had before to the instance that looks for them', async () => {
  await client.set('spring:session:nest:scanning', '', 'PX', 10_000);
  const app = await start();
  try {
    await spring.create({}, 1800, { tells: false });
    await client.multi().del('spring:session:nest:scanning').config('RESETSTAT').exec();
    // It takes the turn, and gives it back.
    await eventually(async () => expect(await client.info('commandstats')).toContain('cmdstat_del:'));
    expect(await client.exists('spring:session:nest:ends', 'spring:session:nest:scanning')).toBe(0);
    // One that still looks holds up no shutdown.
    await client.set('spring:session:nest:scanning', '', 'PX', 10_000);
  } finally {
    await app.stop();
  }
});

it('finds sessions of Spring by the repository', async () => {
  const id = await spring.create({ color: 'red' });
  const app = await start();
  try {
    const session = await app.nest.get(SessionRepository, { strict: false }).findById(id);
    expect(session?.getAttribute('color')).toBe('red');
  } finally {
    await app.stop();
  }
});

it('finds a session of which nobody has told when it is about to end, in whichever order Spring keeps the ends', async () => {
  const app = await start({ cleanup: { cron: '* * * * * *' } });
  try {
    // Whatever it looks at when it starts comes before.
    await eventually(async () => expect(await client.exists('spring:session:nest:cleanup')).toBe(1));
    await eventually(async () => expect(await client.exists('spring:session:nest:scanning')).toBe(0));
    const soon = await spring.create({}, 60, { tells: false });
    const later = await spring.create({}, 1800, { tells: false });
    await eventually(async () => expect(await client.zscore('spring:session:nest:ends', soon)).not.toBeNull());
    expect(await client.zscore('spring:session:nest:ends', later)).toBeNull();
  } finally {
    await app.stop();
  }
});

it('writes nothing into the keys of Spring but what Spring writes there', async () => {
  const app = await start({ serializer: new SpringJsonSerializer('security') });
  try {
    const agent = app.agent();
    const [cookie] = (await agent.post('/sign-in')).setCookies;
    const id = idIn(cookie!);
    await app.events.next(SessionCreatedEvent, id);
    const keys = (await client.keys('spring:session:*')).filter((key) => !key.startsWith('spring:session:nest:'));
    const [bucket, ...more] = keys.filter((key) => key.includes(':expirations:'));
    expect(more).toEqual([]);
    const others = keys.filter((key) => key !== bucket);
    expect(others.toSorted()).toEqual([spring.index('ann'), spring.session(id), spring.shadow(id)].toSorted());
    expect(await client.smembers(bucket!)).toEqual([`"expires:${id}"`]);
    expect(await client.smembers(spring.index('ann'))).toEqual([`"${id}"`]);
    const fields = Object.keys(await client.hgetall(spring.session(id)));
    expect(fields.filter((field) => !field.startsWith('sessionAttr:')).toSorted()).toEqual([
      'creationTime',
      'lastAccessedTime',
      'maxInactiveInterval',
    ]);
    expect((await agent.get('/user')).json()).toEqual({ name: 'ann', authorities: ['ROLE_USER'] });
    const sessions = app.nest.get(IndexedSessionRepository, { strict: false });
    expect((await sessions.findByPrincipalName('ann')).map((each) => each.id)).toEqual([id]);
    expect(await sessions.deleteByIndex('org', 'ann')).toBe(0);
    expect(await sessions.deleteById(id)).toBe(true);
    expect(await client.hget(spring.session(id), 'maxInactiveInterval')).toBe('0');
    expect(await client.exists(spring.shadow(id), spring.index('ann'), bucket!)).toBe(0);
    expect((await agent.get('/user')).status).toBe(401);
  } finally {
    await app.stop();
  }
});

it.each(['plain', 'typed', 'security'] as const)(
  'signs nobody in by an attribute that a client names, nor gives them roles: %s',
  async (form) => {
    const app = await start({ serializer: new SpringJsonSerializer(form) });
    try {
      const value = { authentication: { authenticated: true, principal: 'admin', authorities: ['ROLE_ADMIN'] } };
      const agents = [app.agent(), ...(form === 'security' ? [app.agent()] : [])];
      expect((await agents[0]!.post('/preferences', { name: 'theme', value: 'dark' })).status).toBe(201);
      await agents[1]?.post('/sign-in');
      for (const agent of agents) {
        const before = await agent.get('/user');
        for (const name of ['SPRING_SECURITY_CONTEXT', SPRING_PRINCIPAL_NAME]) {
          expect((await agent.post('/preferences', { name, value })).status).toBe(500);
          expect((await agent.post('/preferences', { name, value: 'admin' })).status).toBe(500);
        }
        const after = await agent.get('/user');
        expect([after.status, after.json()]).toEqual([before.status, before.json()]);
      }
    } finally {
      await app.stop();
    }
  },
);

describe('whom signInAs() signs in', () => {
  let app: App;
  let id: string;
  beforeEach(async () => {
    app = await start({ serializer: new SpringJsonSerializer('security') });
    id = idIn((await app.agent().post('/sign-in')).setCookies[0]!);
  });
  afterEach(() => app.stop());
  const sessions = () => app.nest.get(IndexedSessionRepository, { strict: false });
  const listed = (name: string) => client.smembers(spring.index(name));

  it('is named by the context alone, so that nobody else stays signed in when Spring signs in another user', async () => {
    const context = (await client.hget(spring.session(id), 'sessionAttr:SPRING_SECURITY_CONTEXT'))!;
    const names = await client.hkeys(spring.session(id));
    expect(names.filter((name) => name.includes('PRINCIPAL_NAME'))).toEqual([]);
    expect((await sessions().findById(id))!.authenticatedAt).toEqual(expect.any(Number));
    const later = context.replace('"username":"ann"', '"username":"zoe"');
    await client.hset(spring.session(id), 'sessionAttr:SPRING_SECURITY_CONTEXT', later);
    const session = (await sessions().findById(id))!;
    expect([session.principalName, session.authenticatedAt]).toEqual(['zoe', undefined]);
  });

  it('is found by name after a change of the id, and no more after the end or another sign-in', async () => {
    const session = (await sessions().findById(id))!;
    const newId = session.changeSessionId();
    await session.save();
    expect(await listed('ann')).toEqual([`"${newId}"`]);
    expect((await sessions().findByPrincipalName('ann'))[0]!.authenticatedAt).toBe(session.authenticatedAt);
    session.principalName = 'zoe';
    await session.save();
    expect([await listed('ann'), await listed('zoe')]).toEqual([[], [`"${newId}"`]]);
    const other = idIn((await app.agent().post('/sign-in')).setCookies[0]!);
    expect(await listed('ann')).toEqual([`"${other}"`]);
    await sessions().deleteById(other);
    expect(await listed('ann')).toEqual([]);
    const deleted = await app.events.next(SessionDeletedEvent, other);
    expect([deleted.session.principalName, deleted.session.authenticatedAt]).toEqual(['ann', expect.any(Number)]);
  });

  it('leaves it also where a request of Spring that knew nothing of it has signed in somebody else since', async () => {
    const context = (await client.hget(spring.session(id), 'sessionAttr:SPRING_SECURITY_CONTEXT'))!;
    const later = context.replace('"username":"ann"', '"username":"zoe"');
    await client.hset(spring.session(id), 'sessionAttr:SPRING_SECURITY_CONTEXT', later);
    await client.sadd(spring.index('zoe'), `"${id}"`);
    const session = (await sessions().findById(id))!;
    session.principalName = 'bob';
    await session.save();
    expect([await listed('ann'), await listed('zoe'), await listed('bob')]).toEqual([[], [], [`"${id}"`]]);
  });

  it('leaves the index of its name for another one, also where our key of the sign-in is gone', async () => {
    await client.del(`spring:session:nest:sessions:signed-in:${id}`);
    const session = (await sessions().findById(id))!;
    session.principalName = 'zoe';
    await session.save();
    expect([await listed('ann'), await listed('zoe')]).toEqual([[], [`"${id}"`]]);
  });
});

it('a name that is assigned takes the place of the former one in the index, without our key of the sign-in', async () => {
  const app = await start();
  try {
    const sessions = app.nest.get(IndexedSessionRepository, { strict: false });
    const created = sessions.createSession();
    created.signIn('ann');
    await created.save();
    const { id } = created;
    expect(await client.smembers(spring.index('ann'))).toEqual([`"${id}"`]);
    expect(await client.del(`spring:session:nest:sessions:signed-in:${id}`)).toBe(1);
    const session = (await sessions.findById(id))!;
    session.principalName = 'zoe';
    await session.save();
    expect(await client.smembers(spring.index('ann'))).toEqual([]);
    expect(await client.smembers(spring.index('zoe'))).toEqual([`"${id}"`]);
  } finally {
    await app.stop();
  }
});

it.each([
  ['long', 'x'.repeat(257)],
  ['like a hash', 'sha256:ann'],
])('finds and ends the sessions of a user of Spring whose name is %s', async (_, name) => {
  const app = await start();
  try {
    const ids = [
      await spring.create({ [SPRING_PRINCIPAL_NAME]: name }),
      await spring.create({ [SPRING_PRINCIPAL_NAME]: name }),
    ];
    const [found, sessions] = [
      app.nest.get(IndexedSessionRepository, { strict: false }),
      app.nest.get(Sessions, { strict: false }),
    ];
    expect((await found.findByPrincipalName(name)).map(({ id }) => id).toSorted()).toEqual(ids.toSorted());
    const session = (await found.findById(ids[0]!))!;
    const newId = session.changeSessionId();
    session.setAttribute('a', 1);
    await session.save();
    expect(await sessions.end(newId, { of: name })).toBe(true);
    expect(await sessions.endAll(name)).toBe(1);
    expect(await found.findByPrincipalName(name)).toEqual([]);
    expect(await client.exists(spring.index(name))).toBe(0);
  } finally {
    await app.stop();
  }
});

it('reads the session of Spring, and Spring that of NestJS', async () => {
  const app = await start();
  try {
    const id = await spring.create({ color: 'red', cart: { items: [1] } });
    const read = await app.agent().get('/read', cookieOf(id));
    expect(read.json()).toMatchObject({ id, attributes: { color: 'red', cart: { items: [1] } } });
    expect((await app.agent().post('/set/list', { value: [{ a: 1 }] }, cookieOf(id))).status).toBe(201);
    expect(await client.hget(spring.session(id), 'sessionAttr:list')).toBe('[{"a":1}]');
  } finally {
    await app.stop();
  }
});

describe('the JSON of Spring', () => {
  it('is unknown at first, so that objects and lists are refused, and other values are not', async () => {
    const app = await start();
    try {
      expect((await app.agent().post('/set/a', { value: 'text' })).status).toBe(201);
      const sessions = app.nest.get(IndexedSessionRepository, { strict: false });
      const session = sessions.createSession();
      const set = () => session.setAttribute('cart', { items: [1] });
      expect(set).toThrow(SessionAttributeError);
      expect(set).toThrow(/new SpringJsonSerializer\('plain'\)/);
    } finally {
      await app.stop();
    }
  });

  it('is known from what is in Redis, and from what Spring says of a new session', async () => {
    const typed = '{"@class":"java.util.LinkedHashMap","a":1}';
    const id = await spring.create();
    await client.hset(spring.session(id), 'sessionAttr:map', typed);
    const app = await start();
    try {
      await app.agent().post('/set/list', { value: [{ b: 2 }] }, cookieOf(id));
      expect(await client.hget(spring.session(id), 'sessionAttr:list')).toBe(
        '["java.util.ArrayList",[{"@class":"java.util.LinkedHashMap","b":2}]]',
      );
    } finally {
      await app.stop();
    }
  });

  it('of another kind is refused at the start', async () => {
    const id = await spring.create();
    await client.hset(spring.session(id), 'sessionAttr:a', Buffer.from('rO0ABXQAAWE=', 'base64'));
    await expect(start()).rejects.toThrow(/needs JSON.*One Redis with Spring Boot/s);
  });

  it('keeps the classes of Java, and refuses to change an object of one in place', async () => {
    const app = await start({ serializer: new SpringJsonSerializer('typed') });
    try {
      const [cart, map] = ['{"@class":"com.example.Cart","n":1}', '{"@class":"java.util.LinkedHashMap","n":1}'];
      const id = await spring.create();
      await client.hset(spring.session(id), 'sessionAttr:cart', cart, 'sessionAttr:map', map);
      const sessions = app.nest.get(IndexedSessionRepository, { strict: false });
      const session = (await sessions.findById(id))!;
      const [ofJava, plain] = [
        session.getAttribute<{ n: number }>('cart')!,
        session.getAttribute<{ n: number }>('map')!,
      ];
      plain.n = 2;
      await sessions.save(session);
      expect(await client.hmget(spring.session(id), 'sessionAttr:cart', 'sessionAttr:map')).toEqual([
        cart,
        '{"@class":"java.util.LinkedHashMap","n":2}',
      ]);
      ofJava.n = 2;
      await expect(sessions.save(session)).rejects.toThrow(/was written by Java/);
      expect(await client.hget(spring.session(id), 'sessionAttr:cart')).toBe(cart);
    } finally {
      await app.stop();
    }
  });
});

it('refuses what Spring does not have, at the start and later', async () => {
  const startWith = (session: SessionModuleOptions, mode: 'shared' | 'read' = 'shared') =>
    startWithSpring({ url: server.url, mode }, { session: { ...springSessions(), ...session } });
  await expect(startWith({ absoluteTimeout: '1d' })).rejects.toThrow(
    /`absoluteTimeout`.*is not possible with `mode: 'shared'`/,
  );
  for (const mode of ['shared', 'read'] as const) {
    const binding = startWith({ deviceBound: true, rotateEvery: '15m' }, mode);
    await expect(binding).rejects.toThrow(/`deviceBound`.*is not possible with `mode: '\w+'`.*`rotateEvery`/s);
  }
  await expect(startWith({ timeout: 'never' })).rejects.toThrow(/must be set with `mode: 'shared'`/);
  const nodes = [{ host: '127.0.0.1', port: 1 }];
  for (const address of [{ cluster: { nodes } }, { client: new Cluster(nodes, { lazyConnect: true }) }]) {
    await expect(startWithSpring({ ...address, mode: 'shared' })).rejects.toThrow(InvalidSessionOptionsError);
  }
  const app = await start();
  try {
    const sessions = app.nest.get(IndexedSessionRepository, { strict: false });
    await expect(Promise.resolve().then(() => sessions.endEverySession())).rejects.toThrow(SessionStateError);
  } finally {
    await app.stop();
  }
});

const EXPIRED = 'org.springframework.session.security.SpringSessionBackedSessionInformation.EXPIRED';

it('takes a session that Spring Security has expired for one that has ended, and renews it no more', async () => {
  const app = await start();
  try {
    const id = await spring.create({ [SPRING_PRINCIPAL_NAME]: 'ann', [EXPIRED]: false });
    const sessions = app.nest.get(IndexedSessionRepository, { strict: false });
    const session = (await sessions.findById(id))!;
    expect((await sessions.findByPrincipalName('ann')).map((each) => each.id)).toEqual([id]);
    await spring.set(id, EXPIRED, true);
    const before = await client.hgetall(spring.session(id));
    expect((await app.agent().get('/user', cookieOf(id))).status).toBe(401);
    expect(await sessions.findById(id)).toBeNull();
    expect(await sessions.findByPrincipalName('ann')).toEqual([]);
    session.setAttribute('color', 'red');
    expect(await session.save()).toBe('gone');
    expect(await sessions.touch(session)).toBe('gone');
    expect(await client.hgetall(spring.session(id))).toEqual(before);
    await sessions.deleteById(id);
    expect((await app.events.next(SessionDeletedEvent, id)).session.principalName).toBe('ann');
  } finally {
    await app.stop();
  }
});

const contextOf = (principal: object) => ({
  '@class': 'org.springframework.security.core.context.SecurityContextImpl',
  authentication: {
    '@class': 'org.springframework.security.authentication.UsernamePasswordAuthenticationToken',
    authenticated: true,
    authorities: [],
    principal,
  },
});
const ACCOUNT = { '@class': 'com.example.Account', email: 'mallory@evil.test', name: 'admin', username: 'admin' };

it.each([
  [undefined, undefined],
  [{ 'com.example.Account': 'email' }, 'mallory@evil.test'],
])('signs in nobody by a class of the application, and with ownClasses %j %s', async (ownClasses, name) => {
  const app = await start({ serializer: new SpringJsonSerializer('security'), ...(ownClasses && { ownClasses }) });
  try {
    const id = await spring.create({ SPRING_SECURITY_CONTEXT: contextOf(ACCOUNT) });
    const user = await app.agent().get('/user', cookieOf(id));
    expect([user.status, name && user.json()]).toEqual(name ? [200, { name, authorities: [] }] : [401, undefined]);
    const sessions = app.nest.get(IndexedSessionRepository, { strict: false });
    expect((await sessions.findById(id))!.principalName).toBe(name);
    // Spring lists it by the name that it knows.
    await client.sadd(spring.index('mallory@evil.test'), JSON.stringify(id));
    expect(await app.nest.get(Sessions, { strict: false }).endAll('mallory@evil.test')).toBe(1);
    expect(await sessions.findById(id)).toBeNull();
  } finally {
    await app.stop();
  }
});
