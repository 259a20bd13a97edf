import { IndexedSessionRepository, PRINCIPAL_NAME_INDEX_NAME } from '@nest-session/core';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { RedisServer } from '@nest-session/testing';
import { Redis } from 'ioredis';
import { App } from '../support/app.fixture.js';
import { hashOfValue } from '../support/hash-of-value.js';

LeakGuard.install();

describe('what clients choose as the value of an index', () => {
  let redis: RedisServer;
  let client: Redis;
  let app: App;
  let sessions: IndexedSessionRepository;

  beforeAll(async () => {
    redis = await RedisServer.start();
    client = new Redis(redis.url);
    app = await App.start({
      redis: { url: redis.url },
      session: { indexes: { 'a:b': (session) => session.getAttribute<string>('choice') } },
    });
    sessions = app.nest.get(IndexedSessionRepository, { strict: false });
  });
  afterAll(async () => {
    await app.stop();
    client.disconnect();
    await redis.stop();
  });
  beforeEach(() => client.flushall());

  async function stored(principalName: string, choice?: string): Promise<string> {
    const session = sessions.createSession();
    session.principalName = principalName;
    if (choice !== undefined) session.setAttribute('choice', choice);
    await session.save();
    return session.id;
  }

  it('fills neither keys nor the session hash, however long it is (L7)', async () => {
    const long = '\u007f'.repeat(60_000);
    const id = await stored(long, `${long}!`);
    const keys = await client.keys('*index*');
    expect(keys).toHaveLength(2);
    for (const key of keys) expect(key.length).toBeLessThan(256);
    expect(await client.hstrlen(`nest:session:sessions:${id}`, 'index')).toBeLessThan(512);
    expect((await sessions.findByPrincipalName(long)).map((session) => session.id)).toEqual([id]);
    expect((await sessions.findByPrincipalName(long))[0]!.principalName).toBe(long);
    expect(await sessions.findByIndex('a:b', long)).toEqual([]);
    expect((await sessions.findByIndex('a:b', `${long}!`)).map((session) => session.id)).toEqual([id]);
    await sessions.deleteById(id);
    expect(await client.keys('*index*')).toEqual([]);
  });

  it('is in no key as it is, but as its hash', async () => {
    await stored('ada:lovelace', 'x:y');
    expect((await client.keys('*index*')).toSorted()).toEqual([
      `nest:session:index:a%3Ab:${hashOfValue('x:y')}`,
      `nest:session:index:${PRINCIPAL_NAME_INDEX_NAME}:${hashOfValue('ada:lovelace')}`,
    ]);
  });

  it('never stands for another one because half of a character has no encoding (L1)', async () => {
    const id = await stored('x\ufffd', 'x\ufffd');
    for (const half of ['x\ud800', 'x\udfff']) {
      await expect(stored(half)).rejects.toThrow();
      await expect(stored('ann', half)).rejects.toThrow('Session index "a:b" has a value that is not well-formed');
      expect([await sessions.findByPrincipalName(half), await sessions.findByIndex('a:b', half)]).toEqual([[], []]);
    }
    expect((await sessions.findByPrincipalName('x\ufffd')).map((session) => session.id)).toEqual([id]);
    expect((await sessions.findByIndex('a:b', 'x\ufffd')).map((session) => session.id)).toEqual([id]);
  });
});
