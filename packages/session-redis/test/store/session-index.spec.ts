import { Logger } from '@nestjs/common';
import { jest } from '@jest/globals';
import { PRINCIPAL_NAME_INDEX_NAME, type SessionInfo, SessionStoreError } from '@nest-session/core';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually } from '@nest-session/testing';
import { RequestConnection } from '../../../redis-events/src/connection/request.connection.js';
import type { PartitionKeys } from '../../../redis-events/src/partitions/partitions.js';
import { SingleNode } from '../../../redis-events/src/connection/redis-nodes.js';
import { ListedSessions } from '../../src/repository/listed-sessions.js';
import { RedisSessionRepository } from '../../src/repository/redis-session.repository.js';
import { commandStats } from '../support/command.stats.js';
import { MINUTE, Store, updateOf } from '../support/store.fixture.js';
import { hashOfValue } from '../support/hash-of-value.js';

LeakGuard.install();

const PRINCIPAL = PRINCIPAL_NAME_INDEX_NAME;

let store: Store;
let connection: RequestConnection;
let repository: RedisSessionRepository;
beforeAll(async () => {
  store = await Store.open();
  connection = new RequestConnection(new SingleNode(store.client), { commandTimeout: 10 * MINUTE });
  repository = new RedisSessionRepository(connection, () => store.scripts, store.partitions, {});
});
afterAll(() => store.close());
beforeEach(() => store.client.flushall());

const indexOf = (name: string) => store.keys.index(PRINCIPAL, hashOfValue(name));
const scoreOf = async (id: string, name = 'ann') => Number(await store.client.zscore(indexOf(name), id));
const at = async (id: string) => Number(await store.client.hget(store.keys.session(id), 'creationTime'));

async function open(name = 'ann'): Promise<string> {
  const session = repository.createSession();
  session.principalName = name;
  await session.save();
  return session.id;
}

const openMany = async (count: number) => Promise.all(Array.from({ length: count }, () => open()));

async function infosOf(name: string): Promise<SessionInfo[]> {
  const infos: SessionInfo[] = [];
  for await (const info of repository.listByIndex(PRINCIPAL, name)) infos.push(info);
  return infos;
}

const listed = async () => (await infosOf('ann')).map(({ id }) => id);

/** Signs in to a session again: it gets a new id and the highest score. */
async function signInAgain(id: string): Promise<string> {
  const newId = store.id(id);
  const signIn = { signIn: { butNot: [] }, maxInactiveInterval: 1800, absoluteTimeout: -1 };
  const change = updateOf(id, { newId, indexes: [[PRINCIPAL, hashOfValue('ann')]], ...signIn });
  expect(await store.scripts.save(change)).toMatchObject({ outcome: 'saved' });
  return newId;
}

describe('the score of a session in an index', () => {
  it('is its creation, then its sign-in, even after a rotation', async () => {
    const id = await open();
    expect(await scoreOf(id)).toBe(await at(id));
    const newId = store.id();
    await store.save(id, { newId });
    expect(await scoreOf(newId)).toBe(await at(newId));
    await eventually(async () => expect(await store.now()).toBeGreaterThan(await at(newId)));
    const signedIn = await signInAgain(newId);
    const authenticatedAt = Number((await store.session(signedIn))['authenticatedAt']);
    expect(await scoreOf(signedIn)).toBe(authenticatedAt);
    const rotated = store.id();
    await store.save(signedIn, { newId: rotated });
    expect(await scoreOf(rotated)).toBe(authenticatedAt);
    const [info] = await infosOf('ann');
    expect(info).toMatchObject({ id: rotated, authenticatedAt });
  });
});

// A look-up checks each session that it finds, so what it returns shows no entry that should have gone.
describe('the entries of an index', () => {
  const entriesOf = (name: string) => store.client.zrange(indexOf(name), '0', '-1');

  it('are those of the sessions that have the principal now', async () => {
    const [kept, moved] = [await open(), await open()];
    const session = (await repository.findById(moved))!;
    session.principalName = 'bob';
    await session.save();
    expect([await entriesOf('ann'), await entriesOf('bob')]).toEqual([[kept], [session.id]]);
    session.principalName = undefined;
    await session.save();
    expect(await entriesOf('bob')).toEqual([]);
  });

  it('have the id that a session has after a rotation', async () => {
    const id = await open();
    const newId = store.id();
    await store.save(id, { newId });
    expect(await entriesOf('ann')).toEqual([newId]);
  });
});

describe('a key of another type in the place of an index', () => {
  const warnings: unknown[] = [];
  beforeEach(() => {
    warnings.length = 0;
    jest.spyOn(Logger.prototype, 'warn').mockImplementation((text) => void warnings.push(text));
  });
  afterEach(() => {
    jest.restoreAllMocks();
  });

  it('is set aside by the next sign-in, and the new index lists the live sessions that it listed', async () => {
    const [first, over] = [await open(), await open()];
    await store.client.del(indexOf('ann'));
    await store.client.sadd(indexOf('ann'), over, 'unknown', first);
    await store.runOut(over);
    const signedInAt = await store.now();
    await store.client.hset(store.keys.session(first), {
      creationTime: signedInAt - MINUTE,
      authenticatedAt: signedInAt,
    });
    const second = await open();
    expect(await listed()).toEqual([second, first]);
    expect(await scoreOf(first)).toBe(signedInAt);
    const aside = store.keys.strayIndex(PRINCIPAL, hashOfValue('ann'));
    expect(new Set(await store.client.smembers(aside))).toEqual(new Set([first, over, 'unknown']));
    expect(await store.client.ttl(aside)).toBe(30 * 86_400);
    expect(warnings).toEqual([
      'An index was a set, not a sorted set, as if another version of this library or another client wrote it: ' +
        `it is set aside as ${aside}, and a new index lists 1 of its sessions`,
    ]);
  });

  it('of any type does not keep a user from signing in, again and again', async () => {
    for (const command of ['SET', 'RPUSH']) {
      await store.client.del(indexOf('ann'));
      await store.client.call(command, indexOf('ann'), 'planted');
      const session = (await repository.findById(await open('bob')))!;
      session.signIn('ann');
      await session.save();
      expect(await listed()).toEqual([session.id]);
    }
  });

  it('is set aside once by several sign-ins at the same time, none of which fails', async () => {
    await store.client.set(indexOf('ann'), 'planted');
    const ids = await openMany(3);
    expect(new Set(await listed())).toEqual(new Set(ids));
    expect(warnings).toHaveLength(1);
  });
});

describe('a reading of an index', () => {
  it('does not miss a session that signs in again meanwhile', async () => {
    const ids = await openMany(300);
    const [oldest] = await store.client.zrange(indexOf('ann'), '0', '0');
    const seen: string[] = [];
    let again: string | undefined;
    for await (const { id } of repository.listByIndex(PRINCIPAL, 'ann')) {
      seen.push(id);
      again ??= await signInAgain(oldest!);
    }
    expect(seen).toHaveLength(300);
    expect(new Set(seen)).toEqual(new Set([...ids.filter((id) => id !== oldest), again]));
    expect(seen.at(-1)).toBe(again);
  });

  it('does not miss a session that is rotated meanwhile', async () => {
    const later = new Map((await openMany(300)).map((id) => [id, store.id()]));
    const seen: string[] = [];
    for await (const { id } of repository.listByIndex(PRINCIPAL, 'ann')) {
      seen.push(id);
      if (seen.length === 20) await Promise.all([...later].map(([old, newId]) => store.save(old, { newId })));
    }
    for (const [old, newId] of later) expect(seen).toContain(seen.includes(old) ? old : newId);
  });

  it('asks for no page that is not read', async () => {
    await openMany(300);
    await listed();
    await store.client.config('RESETSTAT');
    for await (const { id } of repository.listByIndex(PRINCIPAL, 'ann')) {
      expect(id).toBeDefined();
      break;
    }
    expect((await commandStats(store.client)).get('evalsha')?.calls).toBe(1);
  });

  it('has all sessions of the same millisecond in one page', async () => {
    const ids = await openMany(250);
    for (const id of ids) await store.client.zadd(indexOf('ann'), 5, id);
    const page = await store.scripts.list(store.keys, indexOf('ann'), 10);
    expect(page.sessions.map(([id]) => id).toSorted()).toEqual(ids.toSorted());
    expect(await listed()).toHaveLength(250);
  });

  it('removes what a long outage left, and leaves what is over and not yet claimed to its claim', async () => {
    const [live, lost, over] = [await open(), await open(), await open()];
    await store.client.del(store.keys.session(lost), store.keys.shadow(lost));
    await store.runOut(over);
    expect(await listed()).toEqual([live]);
    expect(new Set(await store.client.zrange(indexOf('ann'), '0', '-1'))).toEqual(new Set([live, over]));
    expect(await store.scripts.claimExpired(store.keys, [`expires:${over}`])).toMatchObject([{ outcome: 'claimed' }]);
    expect(await repository.countByIndex(PRINCIPAL, 'ann')).toBe(1);
  });

  it('fails when a stray key is in the place of the index, and leaves out stray keys of sessions', async () => {
    const [live, foreign, half] = [await open(), await open(), await open()];
    await store.client.del(store.keys.session(foreign));
    await store.client.set(store.keys.session(foreign), 'planted');
    await store.client.hdel(store.keys.session(half), 'creationTime');
    expect(await listed()).toEqual([live]);
    await store.client.del(indexOf('ann'));
    await store.client.sadd(indexOf('ann'), live);
    // An empty result would let a caller believe that all sessions of the principal have ended.
    await expect(listed()).rejects.toThrow(SessionStoreError);
    await expect(repository.countByIndex(PRINCIPAL, 'ann')).rejects.toThrow('WRONGTYPE');
    await expect(repository.deleteByIndex(PRINCIPAL, 'ann')).rejects.toThrow('WRONGTYPE');
    await expect(repository.deleteIfListed(live, PRINCIPAL, 'ann')).rejects.toThrow('WRONGTYPE');
    expect(await store.isAlive(live)).toBe(true);
  });

  it('shows no device that is not one', async () => {
    const id = await open();
    for (const text of ['', 'x', '5', '"x"', 'null', '[1]', '"{\\"address\\":\\"x\\"}"', '{"address":5}']) {
      await store.client.hset(store.keys.session(id), 'device', text);
      const [info] = await infosOf('ann');
      expect(info?.device ?? {}).toEqual({});
    }
  });
});

describe('the end of all sessions of an index', () => {
  it('comes in batches, records a deleted event for each session, and leaves nothing in the index', async () => {
    const ids = await openMany(350);
    await repository.deleteByIndex(PRINCIPAL, 'nobody');
    await repository.deleteByIndex(PRINCIPAL, 'ann', ids.slice(1));
    await store.client.config('RESETSTAT');
    expect(await repository.deleteByIndex(PRINCIPAL, 'ann', [ids[5]!])).toBe(348);
    // Seven batches, after the revocation mark.
    expect((await commandStats(store.client)).get('evalsha')?.calls).toBe(8);
    expect(await store.client.zrange(indexOf('ann'), '0', '-1')).toEqual([ids[5]]);
    const types = await store.eventTypesOf(ids);
    expect(types.filter(([, end]) => end === 'deleted')).toHaveLength(349);
    expect(types[5]).toEqual(['created']);
    expect(await store.client.keys(store.keys.shadow('*'))).toEqual([store.keys.shadow(ids[5]!)]);
    expect(await repository.deleteByIndex(PRINCIPAL, 'ann')).toBe(1);
    expect(await store.client.exists(indexOf('ann'), store.keys.bucketList)).toBe(0);
  });

  it('tells after each batch how many have ended', async () => {
    await openMany(120);
    const told: number[] = [];
    const sessions = new ListedSessions(connection, () => store.scripts, store.partitions);
    expect(await sessions.end(PRINCIPAL, hashOfValue('ann'), [], (ended) => told.push(ended))).toBe(120);
    expect(told).toEqual([50, 100, 120]);
  });

  it('leaves who signs in after the call, and no session that was rotated', async () => {
    const ids = await openMany(5);
    for (const [i, id] of ids.entries()) {
      await store.client.hset(store.keys.session(id), 'creationTime', i + 1);
      await store.client.zadd(indexOf('ann'), i + 1, id);
    }
    const first = await store.scripts.endListed(store.keys, indexOf('ann'), 2);
    expect(first).toMatchObject({ ended: 2, latest: '5' });
    const rotated = store.id();
    await store.save(ids[4]!, { newId: rotated });
    const [created, again] = [await open(), await signInAgain(ids[3]!)];
    const rest = await store.scripts.endListed(store.keys, indexOf('ann'), 10, { latest: first.latest });
    expect(rest).toMatchObject({ ended: 2, latest: undefined });
    expect(await listed()).toEqual([again, created]);
    expect(await store.isAlive(rotated)).toBe(false);
  });

  it('does not end again what has expired, whose claim still records that', async () => {
    const [live, over] = [await open(), await open()];
    await store.runOut(over);
    expect(await repository.deleteByIndex(PRINCIPAL, 'ann')).toBe(1);
    expect(await repository.countByIndex(PRINCIPAL, 'ann')).toBe(0);
    expect(await store.scripts.claimExpired(store.keys, [`expires:${over}`])).toMatchObject([{ outcome: 'claimed' }]);
    expect(await store.eventTypesOf([live, over])).toEqual([
      ['created', 'deleted'],
      ['created', 'expired'],
    ]);
  });

  it('is not held up by a session that a stray key keeps alive, and fails afterwards without its id', async () => {
    const ids = await openMany(250);
    const kept = (await store.client.zrange(indexOf('ann'), '0', '0'))[0]!;
    await store.client.del(store.keys.shadow(kept));
    await store.client.rpush(store.keys.shadow(kept), 'planted');
    const error: unknown = await repository.deleteByIndex(PRINCIPAL, 'ann').catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(SessionStoreError);
    expect(String(error)).toContain('WRONGTYPE nest:session:sessions:expires:... is a list, not a string');
    expect(String(error)).not.toContain(kept);
    expect(await store.client.zrange(indexOf('ann'), '0', '-1')).toEqual([kept]);
    expect((await store.eventTypesOf(ids)).filter(([, end]) => end === 'deleted')).toHaveLength(249);
  });

  it('is not held up by more sessions that stray keys keep alive than it ends at once', async () => {
    const ids = await openMany(130);
    const kept = await store.client.zrange(indexOf('ann'), '0', '119');
    for (const id of kept) {
      await store.client.del(store.keys.shadow(id));
      await store.client.rpush(store.keys.shadow(id), 'planted');
    }
    await expect(repository.deleteByIndex(PRINCIPAL, 'ann')).rejects.toThrow('WRONGTYPE');
    expect(await store.client.zrange(indexOf('ann'), '0', '-1')).toEqual(kept);
    expect((await store.eventTypesOf(ids)).filter(([, end]) => end === 'deleted')).toHaveLength(10);
  });

  it('ends nothing when its event cannot be recorded', async () => {
    const id = await open();
    await store.client.del(store.keys.events);
    await store.client.set(store.keys.events, 'planted');
    await expect(repository.deleteByIndex(PRINCIPAL, 'ann')).rejects.toThrow('WRONGTYPE nest:session:events');
    expect([await store.isAlive(id), await scoreOf(id)]).toEqual([true, await at(id)]);
  });

  it('takes a session out of all of its indexes', async () => {
    const id = await open();
    await store.save(id, { indexes: [['team', hashOfValue('red')]] });
    expect(await repository.deleteByIndex('team', 'red')).toBe(1);
    expect(await store.client.exists(indexOf('ann'), store.keys.index('team', hashOfValue('red')))).toBe(0);
  });

  it('works when Redis is out of memory', async () => {
    await openMany(3);
    await store.client.config('SET', 'maxmemory', '1');
    try {
      await expect(open()).rejects.toThrow('OOM');
      expect(await listed()).toHaveLength(3);
      expect(await repository.deleteByIndex(PRINCIPAL, 'ann')).toBe(3);
    } finally {
      await store.client.config('SET', 'maxmemory', '0');
    }
  });

  it('works when Redis is out of memory, also where sessions of another library are taken over', async () => {
    await openMany(3);
    const sessions = new ListedSessions(connection, () => store.scripts, store.partitions);
    await store.client.config('SET', 'maxmemory', '1');
    try {
      await sessions.refuseBegun(PRINCIPAL, hashOfValue('ann'), true);
      expect(await sessions.end(PRINCIPAL, hashOfValue('ann'), [])).toBe(3);
    } finally {
      await store.client.config('SET', 'maxmemory', '0');
    }
    const mark = store.keys.revocationMark(PRINCIPAL, hashOfValue('ann'));
    expect(Number(await store.client.get(mark))).toBeLessThanOrEqual(await store.now());
    expect(await store.client.ttl(mark)).toBe(400 * 86_400);
  });
});

/** At each of whose calls, before it and after it, something else happens. */
class InterruptedConnection extends RequestConnection {
  inBetween: () => Promise<unknown> = () => Promise.resolve();

  override async run<T>(...args: Parameters<typeof RequestConnection.prototype.run<T>>): Promise<T> {
    await this.inBetween();
    const reply = await super.run(...args);
    await this.inBetween();
    return reply;
  }

  override async write<T>(...args: Parameters<typeof RequestConnection.prototype.write<T>>): Promise<T> {
    await this.inBetween();
    const reply = await super.write(...args);
    await this.inBetween();
    return reply;
  }
}

describe.each([1, 4])('an old session of another library, partitions: %d', (partitions) => {
  let other: Store;
  beforeAll(async () => {
    other = await Store.open({ partitions });
  });
  afterAll(() => other.close());

  it.each<[string, (ending: RedisSessionRepository) => Promise<unknown>]>([
    ['all sessions of its principal', (ending) => ending.deleteByIndex(PRINCIPAL, 'ann')],
    ['all sessions of its team', (ending) => ending.deleteByIndex('team', 'red')],
    ['every session', (ending) => ending.endEverySession()],
  ])('that arrives at any moment while somebody ends %s has ended, or is refused', async (_, end) => {
    await other.client.flushall();
    const interrupted = new InterruptedConnection(new SingleNode(other.client), { commandTimeout: 10 * MINUTE });
    const takesOver = { takeover: {} as never };
    const ending = new RedisSessionRepository(
      interrupted,
      () => other.scripts,
      other.partitions,
      {},
      undefined,
      undefined,
      takesOver,
    );
    const arrived: { readonly id: string; readonly outcome: string }[] = [];
    interrupted.inBetween = async () => {
      const times = { maxInactiveInterval: 1800, absoluteTimeout: -1 };
      const indexes = new Map([
        [PRINCIPAL, hashOfValue('ann')],
        ['team', hashOfValue('red')],
      ]);
      const id = other.id();
      arrived.push({ id, outcome: await other.scripts.takeOver({ id, ...times, attributes: new Map(), indexes }, -1) });
    };
    await end(ending);
    interrupted.inBetween = () => Promise.resolve();
    expect([...new Set(arrived.map(({ outcome }) => outcome))].toSorted()).toEqual(['created', 'refused']);
    expect(await ending.findByIds(arrived.map(({ id }) => id))).toEqual(arrived.map(() => null));
  });
});

describe('a look-up', () => {
  /** Runs a step after each read of the index, before the sessions are loaded. */
  class SteppedConnection extends RequestConnection {
    readonly steps: (() => Promise<unknown>)[] = [];

    override async runInAll<T, Keys extends PartitionKeys>(
      ...args: Parameters<typeof RequestConnection.prototype.runInAll<T, Keys>>
    ): Promise<T[]> {
      const replies = await super.runInAll(...args);
      await this.steps.shift()?.();
      return replies;
    }
  }

  let stepped: SteppedConnection;
  let finding: RedisSessionRepository;
  beforeAll(() => {
    stepped = new SteppedConnection(new SingleNode(store.client), { commandTimeout: 10 * MINUTE });
    finding = new RedisSessionRepository(stepped, () => store.scripts, store.partitions, {});
  });

  const rename = (id: string, name: string) => store.save(id, { indexes: [[PRINCIPAL, hashOfValue(name)]] });
  const found = async (name: string) => (await finding.findByPrincipalName(name)).map(({ id }) => id);

  it('does not find a session that gets another value before it is loaded, and leaves it in its index', async () => {
    const [id, other] = [await open(), await open()];
    stepped.steps.push(() => rename(id, 'bob'));
    expect(await found('ann')).toEqual([other]);
    expect([await found('ann'), await found('bob')]).toEqual([[other], [id]]);
    stepped.steps.push(
      () => Promise.all([rename(id, 'ann'), rename(other, 'bob')]),
      () => Promise.reject(new Error('It is not to read the index again')),
    );
    expect(await found('bob')).toEqual([]);
    stepped.steps.length = 0;
    expect([await found('ann'), await found('bob')]).toEqual([[id], [other]]);
  });

  it('finds a session that is rotated again and again, in one read of the index', async () => {
    let id = await open();
    stepped.steps.push(
      async () => {
        for (let i = 0; i < 7; i++) {
          const newId = store.id(id);
          await store.save(id, { newId });
          id = newId;
        }
        const newId = store.id(id);
        await store.save(id, { newId, clears: true, indexes: [[PRINCIPAL, hashOfValue('ann')]] });
        id = newId;
      },
      () => Promise.reject(new Error('It is not to read the index again')),
    );
    expect(await found('ann')).toEqual([id]);
    stepped.steps.length = 0;
  });

  it('does not find a session that is rotated to another value, nor one that ends', async () => {
    const [id, ended] = [await open(), await open()];
    stepped.steps.push(async () => {
      await store.save(id, { newId: store.id(id), indexes: [[PRINCIPAL, hashOfValue('bob')]] });
      await store.scripts.delete(ended);
    });
    expect(await found('ann')).toEqual([]);
  });

  it('does not find a session whose entries somebody else has written', async () => {
    const [id, other] = [await open(), await open()];
    for (const text of ['{', 'null', '[null]', '[["principal"]]', '["principal"]']) {
      await store.client.hset(store.keys.session(id), 'index', text);
      expect(await found('ann')).toEqual([other]);
    }
  });
});

it('thousands of sessions of one principal are found, in loads of at most 500', async () => {
  const ids = await openMany(1200);
  await store.client.config('RESETSTAT');
  let most = 0;
  let waiting = 0;
  const { sendCommand } = store.client;
  store.client.sendCommand = async (command) => {
    if (command.name === 'pttl') most = Math.max(most, ++waiting);
    const reply = (await sendCommand.call(store.client, command)) as unknown;
    if (command.name === 'pttl') waiting--;
    return reply;
  };
  try {
    const found = await repository.findByPrincipalName('ann');
    expect(found.map(({ id }) => id).toSorted()).toEqual(ids.toSorted());
  } finally {
    store.client.sendCommand = sendCommand;
  }
  expect(most).toBe(500);
});
