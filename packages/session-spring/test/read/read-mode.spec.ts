import { jest } from '@jest/globals';
import {
  type CallHandler,
  Controller,
  type ExecutionContext,
  Get,
  Inject,
  Injectable,
  type NestInterceptor,
  Post,
  UseInterceptors,
} from '@nestjs/common';
import {
  Authenticated,
  IndexedSessionRepository,
  InvalidSessionOptionsError,
  Session,
  SessionContext,
  SessionRepository,
  Sessions,
  SessionStateError,
} from '@nest-session/core';
import { type HealthLook, PRINCIPAL_ATTRIBUTE, SESSION_HEALTH, SESSION_READER } from '@nest-session/core/internal';
import { type ReadSpringSessionOptions, signedInAs } from '@nest-session/spring';
import { beginRequest, LeakGuard, SteppableRedisServer } from '@nest-session/test-infrastructure';
import { KeyspaceNotificationListener } from '@nest-session/redis-events';
import { eventually, RedisCluster } from '@nest-session/testing';
import { Cluster, Redis } from 'ioredis';
import { SPRING_PRINCIPAL_NAME } from '../../src/values/spring-principal.js';
import type { App } from '../../../session-redis/test/support/app.fixture.js';
import { startWithSpring } from '../support/spring.app.js';
import { calledCommand } from '../../../session-cli/test/support/called.command.js';
import { commandStats } from '../../../session-redis/test/support/command.stats.js';
import { documentedCommands, documentedLines } from '../../../session-redis/test/support/documented.rights.js';
import { allBytes, NAMESPACE, recordedContext, restoreRecorded } from '../support/recorded-spring.js';
import { RECORDED_KEYS, RECORDED_SIMPLE } from '../support/spring.records.js';
import { SpringWriter } from '../support/spring-writer.js';
import { ALL_RIGHTS, withAllRights } from '../../../session-redis/test/support/with-all-rights.js';

LeakGuard.install();

@Controller()
class UserController {
  @Get('user')
  @Authenticated()
  user(@Session() session: Session) {
    return { name: session.principalName, ...signedInAs(session) };
  }

  @Post('user')
  @Authenticated()
  change(@Session() { principalName }: Session) {
    return { name: principalName };
  }
}

@Injectable()
class RenewalInterceptor implements NestInterceptor {
  constructor(
    @Inject(SessionContext) private readonly context: SessionContext,
    @Inject(SessionRepository) private readonly sessions: SessionRepository,
  ) {}

  async intercept(_context: ExecutionContext, next: CallHandler) {
    await this.sessions.touch(this.context.session);
    return next.handle();
  }
}

@Controller()
@UseInterceptors(RenewalInterceptor)
class RenewingController {
  @Get('renewing')
  read(@Session() { isNew }: Session) {
    return { isNew };
  }
}

let server: SteppableRedisServer;
let client: Redis;
beforeAll(async () => {
  server = await SteppableRedisServer.start();
  client = new Redis(server.url);
});
afterAll(async () => {
  client.disconnect();
  await server.stop();
});

function start(adapter: 'express' | 'fastify' = 'express', options?: Partial<ReadSpringSessionOptions>): Promise<App> {
  return startWithSpring(
    { url: server.url, mode: 'read', ...options },
    { adapter, controllers: [UserController, RenewingController] },
  );
}

/** Where Java had read a session that is in Redis. */
const READ_BY_JAVA = [...RECORDED_KEYS, ...RECORDED_SIMPLE].filter(
  ({ says, keys }) => says && `sessions:${says.id}` in keys,
);
const SECURITY_CONTEXT = 'SPRING_SECURITY_CONTEXT';

const recorded = (from: string, scenario: string) =>
  RECORDED_KEYS.find((each) => each.from === from && each.scenario === scenario && each.says)!;
const base64 = (id: string) => Buffer.from(id).toString('base64');
const withCookie = (value: string) => ({ headers: { cookie: `SESSION=${value}` } });

it('nothing is measured of a cleanup that Spring does', async () => {
  const app = await start();
  expect(app.nest.get<unknown>(SESSION_READER, { strict: false })).toBeUndefined();
  await app.stop();
});

it('whoever injects the repository writes nothing into the namespace of Spring', async () => {
  const app = await start();
  try {
    const session = app.nest.get(SessionRepository, { strict: false }).createSession();
    session.setAttribute('color', 'red');
    await expect(session.save()).rejects.toThrow(SessionStateError);
    expect(await client.keys(`${NAMESPACE}:*${session.id}`)).toEqual([]);
  } finally {
    await app.stop();
  }
});

it('the application hears key events of its own keys', async () => {
  const app = await start('express', { url: withAllRights(server.url) });
  try {
    const heard: string[] = [];
    const subscription = app.nest.get(KeyspaceNotificationListener, { strict: false }).listen({
      keys: 'order:*',
      events: 'expired',
      handler: ({ key }) => void heard.push(key),
    });
    await eventually(() => expect(subscription.health.state).toBe('listening'));
    await client.set('order:1', '', 'PX', 1);
    await eventually(async () => {
      await client.exists('order:1');
      expect(heard).toEqual(['order:1']);
    });
  } finally {
    await app.stop();
  }
});

it.each([...new Set(READ_BY_JAVA.map(({ from }) => from))])(
  'finds the sessions that Java had, each with its times and attributes: %s',
  async (from) => {
    const app = await start();
    try {
      const sessions = app.nest.get(SessionRepository, { strict: false });
      for (const snapshot of READ_BY_JAVA.filter((each) => each.from === from)) {
        await restoreRecorded(server, client, snapshot);
        const { id, attributes, ...times } = snapshot.says!;
        const session = await sessions.findById(id);
        if (times.maxInactiveInterval === 0) {
          expect(session).toBeNull();
          continue;
        }
        expect(session).toMatchObject(times);
        const user = SECURITY_CONTEXT in attributes ? 'ann' : attributes[SPRING_PRINCIPAL_NAME]?.[1];
        expect(session!.principalName).toBe(user);
        const own = user === undefined ? [] : [PRINCIPAL_ATTRIBUTE];
        expect(session!.attributeNames.toSorted()).toEqual([...Object.keys(attributes), ...own].toSorted());
      }
    } finally {
      await app.stop();
    }
  },
);

describe.each(['express', 'fastify'] as const)('%s', (adapter) => {
  let app: App;
  const snapshot = recorded('one-json-typed', '01-create-one-attribute');
  const { id } = snapshot.says!;
  beforeAll(async () => {
    app = await start(adapter);
  });
  afterAll(() => app.stop());
  beforeEach(() => restoreRecorded(server, client, snapshot));

  const get = (path: string, cookie: string) => app.agent().get(path, withCookie(cookie));

  it.each([
    ['in Base64, as Spring Boot writes it', base64],
    ['plain', (text: string) => text],
  ])('opens the session of a cookie, %s', async (_form, encoded) => {
    const response = await get('/read', encoded(id));
    expect(response.json()).toEqual({ id, isNew: false, attributes: { color: 'blue' } });
    expect(response.setCookies).toEqual([]);
  });

  it('finds no session from its end on, whatever else is in Redis', async () => {
    await server.stopClock(snapshot.says!.lastAccessedTime + 1_799_999);
    expect((await get('/read', base64(id))).json()).toMatchObject({ isNew: false });
    await server.stopClock(snapshot.says!.lastAccessedTime + 1_800_000);
    expect((await get('/read', base64(id))).json()).toMatchObject({ isNew: true });
  });

  it('renews it where the application asks for that, and nowhere else', async () => {
    const key = `${NAMESPACE}:sessions:${id}`;
    const ends = () => Promise.all([client.pexpiretime(key), client.hget(key, 'lastAccessedTime')]);
    const before = await ends();
    const now = snapshot.at + 600_000;
    await server.stopClock(now);
    await get('/read', base64(id));
    expect(await ends()).toEqual(before);
    expect((await get('/renewing', base64(id))).json()).toEqual({ isNew: false });
    expect(await ends()).toEqual([now + 2_100_000, `${now}`]);
  });

  it('has nothing to renew in a request without a session', async () => {
    const before = await allBytes(client);
    expect((await app.agent().get('/renewing')).json()).toEqual({ isNew: true });
    expect((await get('/renewing', base64('an-id-that-nobody-knows'))).json()).toEqual({ isNew: true });
    expect(await allBytes(client)).toEqual(before);
  });

  it.each(['jdk', 'secmods'] as const)(
    'knows who is signed in by Spring Security, and with which authorities: %s',
    async (form) => {
      expect((await get('/user', base64(id))).status).toBe(401);
      const key = `${NAMESPACE}:sessions:${id}`;
      await client.hset(key, 'sessionAttr:SPRING_SECURITY_CONTEXT', recordedContext('userDetails', form));
      const response = await get('/user', base64(id));
      expect([response.status, response.json()]).toEqual([
        200,
        { name: 'ann', authorities: ['ROLE_ADMIN', 'ROLE_USER'] },
      ]);
    },
  );

  it.each(['a sign-out', 'nothing'])('refuses a request that began before Spring did %s', async (what) => {
    const key = `${NAMESPACE}:sessions:${id}`;
    await client.hset(key, 'sessionAttr:SPRING_SECURITY_CONTEXT', recordedContext('userDetails', 'jdk'));
    const ann = app.agent();
    ann.setCookie(`SESSION=${base64(id)}; Path=/`);
    await client.config('RESETSTAT');
    const finish = beginRequest(ann, '/user');
    await eventually(async () => expect((await commandStats(client)).get('time')?.calls).toBe(1));
    if (what !== 'nothing') await client.del(key);
    const now = performance.now.bind(performance);
    jest.spyOn(performance, 'now').mockImplementation(() => now() + 1001);
    expect((await finish()).status).toBe(what === 'nothing' ? 201 : 401);
    jest.restoreAllMocks();
  });

  it('lets nobody be signed in by an attribute of Spring that has a name of this library', async () => {
    await client.hset(`${NAMESPACE}:sessions:${id}`, `sessionAttr:${PRINCIPAL_ATTRIBUTE}`, '"mallory"');
    expect((await get('/user', base64(id))).status).toBe(401);
    expect((await get('/read', base64(id))).json()).toMatchObject({ attributes: { color: 'blue' } });
  });

  it('refuses a change with an error that names the mode, and changes nothing', async () => {
    const before = await allBytes(client);
    for (const path of ['/set/color', '/login/ann', '/logout']) {
      const response = await app.agent().post(path, { value: 'red' }, withCookie(base64(id)));
      expect([path, response.status]).toEqual([path, 500]);
    }
    expect((await app.agent().post('/set/color', { value: 'red' })).status).toBe(500);
    expect(await allBytes(client)).toEqual(before);
  });

  it('says in the error what to do', async () => {
    const sessions = app.nest.get(IndexedSessionRepository, { strict: false });
    const session = (await sessions.findById(id))!;
    session.setAttribute('color', 'red');
    const created = sessions.createSession();
    created.setAttribute('color', 'red');
    const calls = [
      () => sessions.save(session),
      () => sessions.save(created),
      () => sessions.deleteById(id),
      () => sessions.deleteByIndex('tenant', 'ann'),
      () => sessions.endEverySession(),
    ];
    for (const call of calls) {
      const error: unknown = await Promise.resolve(call()).catch((reason: unknown) => reason);
      expect(error).toBeInstanceOf(SessionStateError);
      expect((error as Error).message).toContain("mode: 'read'");
    }
  });
});

it('finds the sessions of a user by the index of Spring, without those that are over', async () => {
  const snapshot = recorded('one-jdk', '16-principal-two-sessions');
  const app = await start();
  try {
    await restoreRecorded(server, client, snapshot);
    const sessions = app.nest.get(IndexedSessionRepository, { strict: false });
    const index = Object.keys(snapshot.keys).find((key) => key.startsWith('index:'))!;
    const user = index.slice(index.lastIndexOf(':') + 1);
    const found = await sessions.findByPrincipalName(user);
    expect(found.map(({ principalName }) => principalName)).toEqual(found.map(() => user));
    expect(found.map(({ id }) => id)).toContain(snapshot.says!.id);
    const listed: string[] = [];
    for await (const info of app.nest.get(Sessions, { strict: false }).ofPrincipal(user)) listed.push(info.id);
    expect(listed.toSorted()).toEqual(found.map(({ id }) => id).toSorted());
    await client.del(`${NAMESPACE}:sessions:${snapshot.says!.id}`);
    expect(await sessions.findByPrincipalName(user)).toHaveLength(found.length - 1);
  } finally {
    await app.stop();
  }
});

it.each([
  ['long', 'x'.repeat(257)],
  ['like a hash', 'sha256:ann'],
])('finds the sessions of a user whose name is %s, which Spring lists as it is', async (_, name) => {
  const app = await start();
  try {
    const spring = new SpringWriter(client, NAMESPACE);
    const id = await spring.create({ [SPRING_PRINCIPAL_NAME]: name });
    const sessions = app.nest.get(IndexedSessionRepository, { strict: false });
    expect((await sessions.findByPrincipalName(name)).map((session) => session.id)).toEqual([id]);
    expect(await app.nest.get(Sessions, { strict: false }).count(name)).toBe(1);
  } finally {
    await app.stop();
  }
});

it('lists no session under a name that its user has no more, and each whose name only Spring can read', async () => {
  const app = await start();
  try {
    const spring = new SpringWriter(client, NAMESPACE);
    const sessions = app.nest.get(IndexedSessionRepository, { strict: false });
    const found = async (name: string) => (await sessions.findByPrincipalName(name)).map(({ id }) => id);
    const id = await spring.create({ [SPRING_PRINCIPAL_NAME]: 'otto' });
    expect(await found('otto')).toEqual([id]);
    // A request that has loaded the session before the sign-in of otto knows nothing of it.
    await client.sadd(spring.index('ann'), JSON.stringify(id));
    await spring.set(id, SPRING_PRINCIPAL_NAME, 'ann');
    expect([await found('otto'), await found('ann')]).toEqual([[], [id]]);
    await client.hset(spring.session(id), `sessionAttr:${SPRING_PRINCIPAL_NAME}`, '');
    expect(await found('ann')).toEqual([]);
    for (const context of ['"of an unknown form"', Buffer.from('rO0ABXNyAA', 'base64')]) {
      await client.hset(spring.session(id), `sessionAttr:${SECURITY_CONTEXT}`, context);
      expect(await found('ann')).toEqual([id]);
    }
  } finally {
    await app.stop();
  }
});

it('writes nothing into the namespace while it starts, serves and stops', async () => {
  await restoreRecorded(server, client, recorded('one-jdk', '01-create-one-attribute'));
  const before = await allBytes(client);
  const app = await start();
  await app.agent().get('/read');
  await app.stop();
  expect(await allBytes(client)).toEqual(before);
});

it('needs no right to change anything', async () => {
  await restoreRecorded(server, client, recorded('one-jdk', '15-principal'));
  for (const line of documentedLines(['spring renewal']).slice(0, 2)) await client.acl('SETUSER', 'app', ...line);
  await client.call('ACL', 'LOG', 'RESET');
  const app = await start('express', { url: server.url.replace('//', '//app:a-long-secret@') });
  try {
    const sessions = app.nest.get(IndexedSessionRepository, { strict: false });
    const { says } = recorded('one-jdk', '15-principal');
    expect(await sessions.findById(says!.id)).not.toBeNull();
    await sessions.findByPrincipalName('ann');
    const health = await app.nest.get<HealthLook>(SESSION_HEALTH, { strict: false }).look(0);
    expect(health).toMatchObject({ state: 'up', data: { groups: [] } });
  } finally {
    await app.stop();
    const refused = await denied();
    await client.acl('DELUSER', 'app');
    expect(refused).toEqual([]);
  }
});

/** What was refused, but for what ioredis tells a server of itself, from Redis 7.2 on, and does without. */
async function denied(): Promise<string[]> {
  const entries = (await client.acl('LOG')) as string[][];
  return entries.map((entry) => entry[entry.indexOf('object') + 1]!).filter((object) => object !== 'client|setinfo');
}

/** The commands that ran in the meantime, those of scripts included. */
async function commandsOf(work: () => Promise<unknown>): Promise<string[]> {
  await client.config('RESETSTAT');
  await work();
  const stats = await commandStats(client);
  const needNoRight = ['auth', 'client|setinfo', 'config|resetstat', 'hello', 'quit'];
  return [...stats].flatMap(([name, { calls }]) => (calls > 0 && !needNoRight.includes(name) ? [name] : []));
}

it('needs the documented rights to renew sessions, and no others', async () => {
  for (const line of documentedLines(['spring renewal'])) await client.acl('SETUSER', 'app', ...line);
  await client.acl('LOG', 'RESET');
  const used = new Set<string>();
  const note = async (work: () => Promise<unknown>) => {
    for (const command of await commandsOf(work)) used.add(command);
  };
  let app: App | undefined;
  try {
    await note(async () => (app = await start('express', { url: server.url.replace('//', '//app:a-long-secret@') })));
    const sessions = app!.nest.get(IndexedSessionRepository, { strict: false });
    for (const from of ['simple-jdk', 'one-jdk', 'one-json-plain', 'one-json-typed-sorted-set-store']) {
      const snapshot = READ_BY_JAVA.find((each) => each.from === from)!;
      await restoreRecorded(server, client, snapshot);
      // Then it has neither a shadow key nor a bucket.
      if (from === 'one-json-plain') await client.del(await client.keys('*:expir*'));
      await server.stopClock(snapshot.at + 60_000);
      await note(async () => {
        await sessions.findByPrincipalName('ann');
        expect(await sessions.touch((await sessions.findById(snapshot.says!.id))!)).toBe('touched');
      });
    }
  } finally {
    await app?.stop();
    const refused = await denied();
    await client.acl('DELUSER', 'app');
    expect(refused).toEqual([]);
  }
  expect([...used].toSorted()).toEqual(documentedCommands(['spring renewal']).toSorted());
});

/** Those that other libraries have too, and such as could match keys of others. */
const NAMESPACES_OF_SPRING = [
  '{shop}:session',
  'spring:session:{tenant}',
  'shop[dev]:session',
  'a*b?c\\d',
  'shop:index',
];

it.each(NAMESPACES_OF_SPRING)(
  'finds and renews sessions in namespace %s, which Spring has chosen',
  async (namespace) => {
    await client.flushall();
    const spring = new SpringWriter(client, namespace);
    const id = await spring.create({ color: 'red', [SPRING_PRINCIPAL_NAME]: 'ann' });
    // A pattern would match these.
    for (const other of ['shopd:session', 'axbyc\\d', 'axbycd']) await new SpringWriter(client, other).create();
    const app = await start('express', { namespace, url: withAllRights(server.url) });
    try {
      const sessions = app.nest.get(IndexedSessionRepository, { strict: false });
      const session = (await sessions.findById(id))!;
      expect(session.getAttribute('color')).toBe('red');
      expect(await sessions.touch(session)).toBe('touched');
      expect((await sessions.findByPrincipalName('ann')).map((found) => found.id)).toEqual([id]);
    } finally {
      await app.stop();
    }
    const printed = await calledCommand(['spring', '--namespace', namespace, '--url', withAllRights(server.url)]);
    expect(JSON.parse(printed)).toMatchObject({ sessions: { found: 1 } });
  },
);

describe('on a Cluster', () => {
  let servers: RedisCluster;
  let cluster: Cluster;
  let app: App;
  let sessions: SessionRepository;
  beforeAll(async () => {
    servers = await RedisCluster.start();
    cluster = new Cluster([...servers.addresses]);
    for (const { url } of servers.nodes) await allowRenewals(url);
    const login = { username: 'app', password: 'a-long-secret' };
    app = await startWithSpring({ cluster: { nodes: servers.addresses }, mode: 'read', ...login });
    sessions = app.nest.get(SessionRepository, { strict: false });
  }, 60_000);
  afterAll(async () => {
    await app.stop();
    cluster.disconnect();
    await servers.stop();
  }, 60_000);

  /** Makes the user of the documentation. */
  async function allowRenewals(url: string): Promise<void> {
    const admin = new Redis(url);
    for (const line of [...documentedLines(['spring renewal', 'cluster']), ['+exists']])
      await admin.acl('SETUSER', 'app', ...line);
    admin.disconnect();
  }

  const ids = Array.from({ length: 8 }, (_, i) => `session-of-spring-number-${i}`);
  const keyOf = (id: string) => `${NAMESPACE}:sessions:${id}`;

  async function created(id: string): Promise<number> {
    const time = Date.now() - 60_000;
    await cluster.hset(keyOf(id), { creationTime: time, lastAccessedTime: time, maxInactiveInterval: 1800 });
    await cluster.pexpireat(keyOf(id), time + 1_800_000);
    return time;
  }

  it('renews a session of the simple repository', async () => {
    for (const id of ids) {
      const time = await created(id);
      expect(await sessions.touch((await sessions.findById(id))!)).toBe('touched');
      const { lastAccessedTime } = (await sessions.findById(id))!;
      expect(lastAccessedTime).toBeGreaterThanOrEqual(time + 60_000);
      expect(await cluster.pexpiretime(keyOf(id))).toBe(lastAccessedTime + 1_800_000);
    }
  });

  it('renews one of the indexed repository whose namespace has a hash tag', async () => {
    const namespace = `${NAMESPACE}:{tenant}`;
    const own = await startWithSpring({
      cluster: { nodes: servers.addresses },
      mode: 'read',
      namespace,
      ...ALL_RIGHTS,
    });
    try {
      const spring = new SpringWriter(cluster as unknown as Redis, namespace);
      const id = await spring.create({ color: 'red' });
      const repository = own.nest.get(SessionRepository, { strict: false });
      const session = (await repository.findById(id))!;
      expect(await repository.touch(session)).toBe('touched');
      expect((await repository.findById(id))!.lastAccessedTime).toBeGreaterThanOrEqual(session.lastAccessedTime);
      expect(await cluster.pttl(spring.shadow(id))).toBeGreaterThan(1_790_000);
    } finally {
      await own.stop();
    }
  });

  it('refuses to renew one of the indexed repository, and writes nothing', async () => {
    for (const id of ids) {
      const time = await created(id);
      await cluster.set(`${NAMESPACE}:sessions:expires:${id}`, '', 'PX', 1_740_000);
      const session = (await sessions.findById(id))!;
      const error: unknown = await sessions.touch(session).catch((reason: unknown) => reason);
      expect(error).toBeInstanceOf(SessionStateError);
      expect((error as Error).message).toMatch(/Redis Cluster.*RedisIndexedSessionRepository/);
      expect((await sessions.findById(id))!.lastAccessedTime).toBe(time);
      expect(await cluster.pexpiretime(keyOf(id))).toBe(time + 1_800_000);
    }
  });
});

it('is healthy, although no job of ours runs', async () => {
  const app = await start();
  try {
    const health = app.nest.get<HealthLook>(SESSION_HEALTH, { strict: false });
    expect(await health.look(0)).toEqual({ state: 'up', data: { redis: 'up', notifications: 'off', groups: [] } });
  } finally {
    await app.stop();
  }
});

it('refuses options that mean nothing for the sessions of Spring, and hashed ids', async () => {
  const withOthers: object = { grace: '5m', partitions: 4, events: { group: 'shop' } };
  await expect(start('express', withOthers)).rejects.toThrow(
    /Unknown option `grace`.*Unknown option `partitions`: .*form of Spring Session.*`events`: it has no effect/s,
  );
  const hashed = startWithSpring({ url: server.url, mode: 'read' }, { session: {} });
  await expect(hashed).rejects.toThrow(InvalidSessionOptionsError);
  await expect(hashed).rejects.toThrow("Option `sessionIds` of SessionModule must be 'plain'");
});

it.each([
  [undefined, 401, {}],
  [{ 'lab.fixtures.Main$AppUser': 'username' }, 200, { name: 'zoe', authorities: ['ROLE_APP'] }],
])('signs in a user of the application with ownClasses %j: %d', async (ownClasses, status, user) => {
  const app = await start('express', ownClasses && { ownClasses });
  try {
    const spring = new SpringWriter(client, NAMESPACE);
    for (const form of ['jdk', 'secmods'] as const) {
      const id = await spring.create();
      await client.hset(spring.session(id), `sessionAttr:${SECURITY_CONTEXT}`, recordedContext('ownUser', form));
      const response = await app.agent().get('/user', withCookie(base64(id)));
      expect([form, response.status]).toEqual([form, status]);
      expect(response.json()).toMatchObject(user);
    }
  } finally {
    await app.stop();
  }
});
