import { IndexedSessionRepository, PRINCIPAL_NAME_INDEX_NAME, SessionRepository } from '@nest-session/core';
import { RedisSessionRepository } from '@nest-session/redis';
import { LeakGuard, RedisServer } from '@nest-session/testing';
import { Redis } from 'ioredis';
import { SessionPartitions } from '../../src/keys/session.partitions.js';
import { App } from '../support/app.fixture.js';

LeakGuard.install();

describe.each([1, 4])('with %d partitions', (count) => {
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

  it('is what the ports stand for', () => {
    expect(app.nest.get(SessionRepository, { strict: false })).toBe(sessions);
    expect(app.nest.get(IndexedSessionRepository, { strict: false })).toBe(sessions);
  });

  it('stores a session and loads it again', async () => {
    const session = sessions.createSession();
    expect(session.isNew).toBe(true);
    expect(await sessions.findById(session.id)).toBeNull();
    session.setAttribute('cart', { items: ['apple'], note: 'ä \u2028 {x}' });
    expect(await sessions.save(session)).toBe('saved');
    expect(session.isNew).toBe(false);
    const loaded = (await sessions.findById(session.id))!;
    expect(loaded.getAttribute('cart')).toEqual({ items: ['apple'], note: 'ä \u2028 {x}' });
    expect(loaded).toMatchObject({ id: session.id, isNew: false, maxInactiveInterval: 1800 });
    expect(loaded.creationTime).toBe(session.creationTime);
  });

  it('stores nothing of a session without attributes', async () => {
    const session = sessions.createSession();
    expect(await sessions.save(session)).toBe('saved');
    expect(await client.exists(partitions.of(session.id).session(session.id))).toBe(0);
  });

  it('treats an id that cannot be one, or whose hash is none, as no session', async () => {
    for (const id of ['', 'x', 'expires:x', '*', '__proto__', 'a'.repeat(43), 'ä'.repeat(43)]) {
      expect(await sessions.findById(id)).toBeNull();
      expect(await sessions.deleteById(id)).toBe(false);
    }
    const half = 'h'.repeat(43);
    await client.hset(partitions.of(half).session(half), 'lastAccessedTime', Date.now());
    await client.set(partitions.of(half).shadow(half), '');
    expect(await sessions.findById(half)).toBeNull();
  });

  it('finds no session where a foreign key is, and all the others of that principal', async () => {
    const [bad, good] = [sessions.createSession(), sessions.createSession()];
    for (const session of [bad, good]) {
      session.principalName = 'neighbour';
      await session.save();
    }
    await client.set(partitions.of(bad.id).session(bad.id), 'planted');
    expect(await sessions.findById(bad.id)).toBeNull();
    expect((await sessions.findByPrincipalName('neighbour')).map((session) => session.id)).toEqual([good.id]);
  });

  it('finds the sessions of a principal, and only those that are alive', async () => {
    const open = async (name: string) => {
      const session = sessions.createSession();
      session.principalName = name;
      await session.save();
      return session;
    };
    const [first, second] = [await open('ann'), await open('ann')];
    await open('bob');
    const found = await sessions.findByPrincipalName('ann');
    expect(found.map((session) => session.id).sort()).toEqual([first.id, second.id].sort());
    expect(found[0]!.principalName).toBe('ann');

    // Its end was not noticed: the application was away for longer than the grace.
    const keys = partitions.of(first.id);
    await client.del(keys.session(first.id), keys.shadow(first.id));
    expect((await sessions.findByPrincipalName('ann')).map((session) => session.id)).toEqual([second.id]);
    const indexes = partitions.all.map((each) => each.index(PRINCIPAL_NAME_INDEX_NAME, 'ann'));
    expect(await client.sunion(indexes)).toEqual([second.id]);

    second.principalName = undefined;
    await second.save();
    expect(await sessions.findByPrincipalName('ann')).toEqual([]);
    expect(await client.exists(indexes)).toBe(0);
  });

  it('finds a live session of a principal that changes its id meanwhile', async () => {
    const session = sessions.createSession();
    session.principalName = 'mover';
    await session.save();
    for (let round = 0; round < 200; round++) {
      const found = sessions.findByPrincipalName('mover');
      session.changeSessionId();
      await session.save();
      expect((await found).length).toBeGreaterThan(0);
    }
  });

  it('finds all sessions of a principal, wherever they are, and fails where a foreign key is in the way', async () => {
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

    const index = partitions.all.at(-1)!.index(PRINCIPAL_NAME_INDEX_NAME, 'everywhere');
    await client.del(index);
    await client.set(index, 'planted');
    // To say that there are none would be believed by whoever wants to end them all.
    await expect(sessions.findByPrincipalName('everywhere')).rejects.toThrow('WRONGTYPE');
  });

  it('keeps a session in its partition when its id changes, and refuses one to whoever presented the id before', async () => {
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
      expect(await late.save()).toBe('gone');
      expect(await client.exists(partitions.of(late.id).session(late.id))).toBe(0);
    }
  });

  it('ends a session once', async () => {
    const session = sessions.createSession();
    session.setAttribute('a', 1);
    await session.save();
    const sameSession = (await sessions.findById(session.id))!;
    expect(await sessions.deleteById(session.id)).toBe(true);
    expect(await sessions.deleteById(session.id)).toBe(false);
    sameSession.setAttribute('a', 2);
    expect(await sameSession.save()).toBe('gone');
    expect(await sessions.touch(sameSession)).toBe('gone');
    expect(await sessions.findById(session.id)).toBeNull();
  });

  it('finds several sessions, and says which ids are none', async () => {
    const [first, second] = [sessions.createSession(), sessions.createSession()];
    for (const each of [first, second]) {
      each.setAttribute('n', 1);
      await each.save();
    }
    const found = await sessions.findByIds([second.id, 'expires:x', sessions.createSession().id, first.id, second.id]);
    expect(found.map((each) => each?.id ?? null)).toEqual([second.id, null, null, first.id, second.id]);
    expect(await sessions.findByIds([])).toEqual([]);
  });

  it('renews a session that is touched', async () => {
    const session = sessions.createSession();
    session.setAttribute('a', 1);
    await session.save();
    const shadow = partitions.of(session.id).shadow(session.id);
    await client.pexpire(shadow, 60_000);
    expect(await sessions.touch(session)).toBe('touched');
    expect(await client.pttl(shadow)).toBeGreaterThan(1_700_000);
  });

  it('leaves the client of the application as it was', async () => {
    expect(client.status).toBe('ready');
    expect(client.listenerCount('message')).toBe(0);
    expect((client as unknown as Record<string, unknown>)['saveSession']).toBeUndefined();
  });
});
