import { setTimeout as delay } from 'node:timers/promises';
import {
  IndexedSessionRepository,
  PRINCIPAL_NAME_INDEX_NAME,
  SessionGoneError,
  SessionRepository,
} from '@nest-session/core';
import { RedisSessionRepository } from '@nest-session/redis';
import { LeakGuard, TcpProxy } from '@nest-session/test-infrastructure';
import { eventually, RedisServer } from '@nest-session/testing';
import { Redis } from 'ioredis';
import { REDIS_CONNECTIONS, type RedisConnections } from '../../../redis-events/src/connection/redis-connections.js';
import { SessionPartitions } from '../../src/keys/session-partitions.js';
import { App } from '../support/app.fixture.js';
import { hashOfValue } from '../support/hash-of-value.js';

LeakGuard.install();

describe.each([1, 4])('the Redis repository with %d partitions', (count) => {
  const partitions = new SessionPartitions('nest:session', count);
  let server: RedisServer;
  let client: Redis;
  let app: App;
  let sessions: RedisSessionRepository;
  beforeAll(async () => {
    server = await RedisServer.start();
    client = new Redis(server.url);
    app = await App.start({ redis: { client, partitions: count } });
    sessions = app.nest.get(RedisSessionRepository, { strict: false });
  });
  afterAll(async () => {
    await app.stop();
    client.disconnect();
    await server.stop();
  });

  it('is bound to both repository classes', () => {
    expect(app.nest.get(SessionRepository, { strict: false })).toBe(sessions);
    expect(app.nest.get(IndexedSessionRepository, { strict: false })).toBe(sessions);
  });

  it('keeps a session compact in Redis when somebody signs in to it', async () => {
    const session = sessions.createSession();
    session.setAttribute('cart', ['apple']);
    session.signIn('a-name-of-some-length@example.com');
    await session.save();
    session.changeSessionId();
    await session.save();
    expect(await client.object('ENCODING', partitions.of(session.id).session(session.id))).toBe('listpack');
    session.setAttribute('note', 'x'.repeat(100));
    await session.save();
    expect(await client.object('ENCODING', partitions.of(session.id).session(session.id))).toBe('hashtable');
  });

  it('finds no session when its session hash is incomplete', async () => {
    const half = 'h'.repeat(43);
    await client.hset(partitions.of(half).session(half), 'lastAccessedTime', Date.now());
    await client.set(partitions.of(half).shadow(half), '');
    expect(await sessions.findById(half)).toBeNull();
  });

  it('finds no session at a stray key, but the other sessions of its principal', async () => {
    const [bad, good] = [sessions.createSession(), sessions.createSession()];
    for (const session of [bad, good]) {
      session.principalName = 'neighbour';
      await session.save();
    }
    await client.set(partitions.of(bad.id).session(bad.id), 'planted');
    expect(await sessions.findById(bad.id)).toBeNull();
    expect((await sessions.findByPrincipalName('neighbour')).map((session) => session.id)).toEqual([good.id]);
  });

  it('finds no session whose shadow key is a stray one, but the other sessions of its principal', async () => {
    const [bad, good] = [sessions.createSession(), sessions.createSession()];
    for (const session of [bad, good]) {
      session.principalName = 'of-stray';
      await session.save();
    }
    const shadow = partitions.of(bad.id).shadow(bad.id);
    await client.del(shadow);
    await client.rpush(shadow, 'planted');
    expect(await sessions.findById(bad.id)).toBeNull();
    const listed = [];
    for await (const { id } of sessions.listByIndex(PRINCIPAL_NAME_INDEX_NAME, 'of-stray')) listed.push(id);
    expect(listed).toEqual([good.id]);
    expect((await sessions.findByPrincipalName('of-stray')).map((session) => session.id)).toEqual([good.id]);
  });

  it('removes sessions whose end was missed from the index', async () => {
    const open = async () => {
      const session = sessions.createSession();
      session.principalName = 'ann';
      await session.save();
      return session;
    };
    const [first, second] = [await open(), await open()];
    // As if the application had been down for longer than the grace period.
    const keys = partitions.of(first.id);
    await client.del(keys.session(first.id), keys.shadow(first.id));
    expect((await sessions.findByPrincipalName('ann')).map((session) => session.id)).toEqual([second.id]);
    const indexes = partitions.all.map((each) => each.index(PRINCIPAL_NAME_INDEX_NAME, hashOfValue('ann')));
    expect(await client.zunion(indexes.length, ...indexes)).toEqual([second.id]);

    second.principalName = undefined;
    await second.save();
    expect(await client.exists(indexes)).toBe(0);
  });

  it('finds the sessions of a principal in all partitions, and fails at a stray key', async () => {
    const open = async () => {
      const session = sessions.createSession();
      session.principalName = 'everywhere';
      await session.save();
      return session.id;
    };
    const ids = await Promise.all(Array.from({ length: 90 }, open));
    expect(new Set(ids.map((id) => partitions.of(id)))).toEqual(new Set(partitions.all));
    const found = await sessions.findByPrincipalName('everywhere');
    expect(found.map(({ id }) => id).toSorted()).toEqual(ids.toSorted());

    const index = partitions.all.at(-1)!.index(PRINCIPAL_NAME_INDEX_NAME, hashOfValue('everywhere'));
    await client.del(index);
    await client.set(index, 'planted');
    // An empty result would let a caller believe that all sessions of the principal have ended.
    await expect(sessions.findByPrincipalName('everywhere')).rejects.toThrow('WRONGTYPE');
  });

  it('keeps a session in its partition across changes of id, and creates none for a late request', async () => {
    const session = sessions.createSession();
    session.principalName = 'rotator';
    await session.save();
    for (let round = 0; round < 30; round++) {
      const before = session.id;
      session.changeSessionId();
      expect(await session.save()).toBe('saved');
      expect(partitions.of(session.id)).toBe(partitions.of(before));
      expect((await sessions.findById(session.id))!.principalName).toBe('rotator');
      const late = sessions.createSession([sessions.createSession().id, before, sessions.createSession().id]);
      late.setAttribute('a', 1);
      await expect(late.save()).rejects.toThrow(SessionGoneError);
      expect(await client.exists(partitions.of(late.id).session(late.id))).toBe(0);
    }
  });

  it('does not modify the client of the application', async () => {
    expect(client.status).toBe('ready');
    expect(client.listenerCount('message')).toBe(0);
    expect((client as unknown as Record<string, unknown>)['saveSession']).toBeUndefined();
  });
});

it('the Redis repository creates no session after it has reported a failure', async () => {
  const partitions = new SessionPartitions('nest:session', 4);
  const server = await RedisServer.start();
  const proxy = await TcpProxy.start({ port: server.port });
  const client = new Redis(server.url);
  const app = await App.start({ redis: { url: proxy.url, partitions: 4, commandTimeout: '1s' } });
  try {
    const sessions = app.nest.get(RedisSessionRepository, { strict: false });
    // Of so many presented ids, some are in other partitions, where a forwarding mark is looked for first.
    const presented = Array.from({ length: 40 }, () => sessions.createSession().id);
    proxy.hold('reply', 'sessions:forwarded:');
    const late = sessions.createSession(presented);
    late.setAttribute('a', 1);
    // The call of the creation begins before those that look for the marks, which so may take longer than that.
    proxy.refuse();
    proxy.cut();
    // A command that is sent before the client has noticed would fail at once.
    const [connection] = app.nest.get<RedisConnections>(REDIS_CONNECTIONS, { strict: false }).request.all;
    await eventually(() => connection!.status !== 'ready', { interval: 1 });
    const saved = expect(late.save()).rejects.toThrow('did not reply within 1000 ms');
    await delay(300);
    await proxy.accept();
    await saved;
    proxy.release('reply');
    // What follows the replies is sent before this is. The client may not have connected again yet.
    await eventually(async () => expect(await sessions.findById(late.id)).toBeNull());
    expect(await sessions.findById(late.id)).toBeNull();
    expect(await client.exists(partitions.of(late.id).session(late.id))).toBe(0);
  } finally {
    await app.stop();
    client.disconnect();
    await proxy.stop();
    await server.stop();
  }
});
