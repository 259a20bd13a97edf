import { SessionRepository, IndexedSessionRepository } from '@nest-session/core';
import { RedisSessionRepository } from '@nest-session/redis';
import { LeakGuard, RedisServer } from '@nest-session/testing';
import { Redis } from 'ioredis';
import { App } from '../support/app.fixture.js';

LeakGuard.install();

let server: RedisServer;
let client: Redis;
let app: App;
let sessions: RedisSessionRepository;
beforeAll(async () => {
  server = await RedisServer.start();
  client = new Redis(server.url);
  app = await App.start({ redis: { client } });
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
  expect(await client.exists(`nest:session:sessions:${session.id}`)).toBe(0);
});

it('treats an id that cannot be one, or whose hash is none, as no session', async () => {
  for (const id of ['', 'x', 'expires:x', '*', '__proto__', 'a'.repeat(43), 'ä'.repeat(43)]) {
    expect(await sessions.findById(id)).toBeNull();
    expect(await sessions.deleteById(id)).toBe(false);
  }
  const half = 'h'.repeat(43);
  await client.hset(`nest:session:sessions:${half}`, 'lastAccessedTime', Date.now());
  await client.set(`nest:session:sessions:expires:${half}`, '');
  expect(await sessions.findById(half)).toBeNull();
});

it('finds no session where a foreign key is, and all the others of that principal', async () => {
  const [bad, good] = [sessions.createSession(), sessions.createSession()];
  for (const session of [bad, good]) {
    session.principalName = 'neighbour';
    await session.save();
  }
  await client.set(`nest:session:sessions:${bad.id}`, 'planted');
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
  await client.del(`nest:session:sessions:${first.id}`, `nest:session:sessions:expires:${first.id}`);
  expect((await sessions.findByPrincipalName('ann')).map((session) => session.id)).toEqual([second.id]);
  const index = `nest:session:index:org.springframework.session.FindByIndexNameSessionRepository.PRINCIPAL_NAME_INDEX_NAME:ann`;
  expect(await client.smembers(index)).toEqual([second.id]);

  second.principalName = undefined;
  await second.save();
  expect(await sessions.findByPrincipalName('ann')).toEqual([]);
  expect(await client.exists(index)).toBe(0);
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
  const shadow = `nest:session:sessions:expires:${session.id}`;
  await client.pexpire(shadow, 60_000);
  expect(await sessions.touch(session)).toBe('touched');
  expect(await client.pttl(shadow)).toBeGreaterThan(1_700_000);
});

it('leaves the client of the application as it was', async () => {
  expect(client.status).toBe('ready');
  expect(client.listenerCount('message')).toBe(0);
  expect((client as unknown as Record<string, unknown>)['saveSession']).toBeUndefined();
});
