import { randomBytes } from 'node:crypto';
import { PRINCIPAL_NAME_INDEX_NAME, type Session } from '@nest-session/core';
import type { SessionChange } from '@nest-session/core/store';
import { eventually, RedisServer } from '@nest-session/testing';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { Redis } from 'ioredis';
import { resolveRedisSessionOptions } from '../../src/configuration/redis-session.options.js';
import { checkStore } from '../../src/connection/check-store.js';
import { type Command, RequestConnection } from '../../src/connection/request.connection.js';
import { SingleNode } from '../../src/connection/single-node.js';
import type { SessionKeys } from '../../src/keys/session-keys.js';
import { type Repartitioning, SessionPartitions } from '../../src/keys/session-partitions.js';
import { SessionLedger } from '../../src/limits/session-ledger.js';
import { SessionRepartitioner } from '../../src/repartitioning/session-repartitioner.js';
import { type RedisRepositoryOptions, RedisSessionRepository } from '../../src/repository/redis-session.repository.js';
import { SessionEpochs } from '../../src/repository/session-epochs.js';
import { scriptsOn } from '../../src/scripts/define-scripts.js';
import { SessionScripts } from '../../src/scripts/session/session.scripts.js';
import { KEEPING_RULES, MINUTE, Store, updateOf } from '../support/store.fixture.js';
import { hashOfValue } from '../support/hash-of-value.js';

LeakGuard.install();

const MOVE = { from: 1, to: 4 };
const PACE = { forwarded: 1, broadcast: 1 };

let store: Store;
beforeAll(async () => {
  store = await Store.open();
  // Each instance has its listeners on it.
  store.client.setMaxListeners(0);
});
afterEach(() => store.client.flushall());
afterAll(() => store.close());

/** A connection whose calls a test can hold up, so that something happens between those that leave in one write. */
class SteppedConnection extends RequestConnection {
  #held: Promise<unknown> | undefined;
  #step: (() => Promise<unknown>) | undefined;

  /** After the next call, and before what is sent together with that. */
  afterNext(step: () => Promise<unknown>): void {
    this.#step = step;
  }

  override run<T>(command: Command<T>, key?: string): Promise<T> {
    return this.#inTurn(() => super.run(command, key));
  }

  override write<T>(...call: Parameters<typeof RequestConnection.prototype.write<T>>): Promise<T> {
    return this.#inTurn(() => super.write(...call));
  }

  #inTurn<T>(send: () => Promise<T>): Promise<T> {
    if (this.#held) return this.#held.then(send);
    const reply = send();
    const step = this.#step;
    this.#step = undefined;
    if (step) this.#held = reply.then(step).finally(() => (this.#held = undefined));
    return reply;
  }
}

/** An instance of the application, with its own view of how far the move is. */
class Instance extends RedisSessionRepository {
  readonly connection: SteppedConnection;

  constructor(
    readonly partitions: SessionPartitions,
    readonly scripts: SessionScripts,
    options: RedisRepositoryOptions,
  ) {
    const connection = new SteppedConnection(new SingleNode(store.client), { commandTimeout: 10 * MINUTE });
    const of = scriptsOn(() => scripts);
    const ledger = new SessionLedger(connection, of, partitions, { commandTimeout: 10 * MINUTE });
    super(connection, of, partitions, options, new SessionEpochs(), ledger);
    this.connection = connection;
  }

  /** `load`, `write` and `mayReplace` are for stores; a test calls them as such. */
  change(change: SessionChange) {
    return this.write(change);
  }
}

function instance(counts: number | Repartitioning = MOVE, options: RedisRepositoryOptions = {}): Instance {
  const partitions = new SessionPartitions('nest:session', counts);
  return new Instance(partitions, new SessionScripts(store.client, partitions, KEEPING_RULES), options);
}

const optionsOf = (partitions: Repartitioning) =>
  resolveRedisSessionOptions({ partitions, events: { consume: false } });
const repartitioner = (move = MOVE) => new SessionRepartitioner(store.client, optionsOf(move), PACE);
const begin = ({ from, to }: Repartitioning = MOVE) =>
  store.client.hset('nest:session:meta', 'version', '2', 'partitions', `${from}>${to}`);
const record = (count: number) => store.client.hset('nest:session:meta', 'version', '2', 'partitions', String(count));
const ANN = hashOfValue('ann');
const randomId = () => randomBytes(32).toString('base64url');

/** The places of a session, the old one first. */
const placesOf = (id: string, move = MOVE) =>
  new SessionPartitions('nest:session', move).placesOf(id) as [SessionKeys, SessionKeys];
const isAt = async (keys: SessionKeys, id: string) =>
  (await store.client.exists(keys.session(id), keys.shadow(id))) === 2;

async function stored(repository: RedisSessionRepository, change: (session: Session) => void = () => undefined) {
  const session = repository.createSession();
  session.setAttribute('cart', ['apple']);
  change(session);
  await session.save();
  return session;
}

it('moves the session hash, the shadow key with its exact end, the bucket and the index entries with their scores', async () => {
  await record(1);
  const id = await store.create({ cart: '"apple"' }, { principal: 'ann' });
  const [old, next] = placesOf(id);
  const [hash, end, kept] = [
    await store.client.hgetall(old.session(id)),
    await store.client.pexpiretime(old.shadow(id)),
    await store.client.pexpiretime(old.session(id)),
  ];
  const score = await store.client.zscore(old.index('principal', 'ann'), id);
  await begin();
  expect(await instance().scripts.move(old, next, id)).toBe('moved');
  expect(await store.client.hgetall(next.session(id))).toEqual(hash);
  expect(await store.client.pexpiretime(next.shadow(id))).toBe(end);
  expect(await store.client.pexpiretime(next.session(id))).toBe(kept);
  expect(await store.client.zscore(next.index('principal', 'ann'), id)).toBe(score);
  const minute = hash['bucket']!;
  expect(await store.client.zrange(next.bucketList, '0', '-1')).toEqual([minute]);
  expect(await store.client.smembers(next.bucket(minute))).toEqual([`expires:${id}`]);
  const left = await store.client.keys('nest:session:[^{]*');
  expect(left.toSorted()).toEqual(['nest:session:events', 'nest:session:meta']);
});

it('moves a session from one sorted set to the other, wherever the caller notes ends, and tells when it is due', async () => {
  await record(1);
  const id = await store.create({ cart: '"apple"' });
  const [old, next] = placesOf(id);
  const [minute] = await store.buckets(id);
  const end = await store.client.pexpiretime(old.shadow(id));
  await store.client.srem(old.bucket(minute!), `expires:${id}`);
  await store.client.del(old.bucketList);
  await store.client.hdel(old.session(id), 'bucket');
  await store.client.zadd(old.ends, 1, id);
  await begin();
  const subscriber = store.client.duplicate();
  const told: string[] = [];
  subscriber.on('smessage', (_, message: string) => told.push(message));
  await subscriber.ssubscribe(next.events);
  expect(await instance().scripts.move(old, next, id)).toBe('moved');
  expect(await store.client.zscore(next.ends, id)).toBe(String(end));
  expect(await store.client.exists(old.ends, old.bucketList, next.bucketList)).toBe(0);
  await eventually(() => expect(told).toEqual([expect.stringMatching(/^end 1[78]\d{5}$/)]));
  subscriber.disconnect();
});

it('moves nothing before the move has begun and after it is over', async () => {
  const id = await store.create();
  for (const count of [1, 4]) {
    await record(count);
    const [old, next] = placesOf(id);
    expect(await instance().scripts.move(old, next, id)).toBe('stopped');
    expect(await isAt(old, id)).toBe(true);
  }
});

it('moves an endless session, which is in no bucket and in no sorted set', async () => {
  await begin();
  const id = await store.create({}, { interval: -1 });
  const [old, next] = placesOf(id);
  expect(await instance().scripts.move(old, next, id)).toBe('moved');
  expect(await store.client.exists(next.ends)).toBe(0);
  expect([await store.client.ttl(next.shadow(id)), await store.client.ttl(next.session(id))]).toEqual([-1, -1]);
  expect(await store.client.exists(next.bucketList)).toBe(0);
});

it('leaves a session that is over where its end is recorded', async () => {
  await begin();
  const [expired, deleted] = [await store.create(), await store.create()];
  await store.runOut(expired);
  await store.scripts.delete(deleted);
  for (const id of [expired, deleted]) {
    const [old, next] = placesOf(id);
    expect(await instance().scripts.move(old, next, id)).toBe('over');
    expect(await store.client.exists(next.session(id))).toBe(0);
  }
  expect(await store.scripts.claimExpired(store.keys, [`expires:${expired}`])).toEqual(['claimed']);
});

it('ends a session that the epoch of either partition ends, instead of moving it', async () => {
  await begin();
  for (const where of [0, 1] as const) {
    const id = await store.create();
    const [old, next] = placesOf(id);
    await store.scripts.raiseEpoch([old, next][where]!);
    expect(await instance().scripts.move(old, next, id)).toBe('older');
    expect(await store.eventTypes(id)).toEqual(['created', 'deleted']);
    expect(await store.client.exists(next.session(id))).toBe(0);
    await store.client.del(old.epoch, next.epoch);
  }
});

it('does not move a session onto a foreign key, and leaves it usable where it is', async () => {
  await begin();
  const id = await store.create({}, { principal: 'ann' });
  const [old, next] = placesOf(id);
  for (const foreign of [next.session(id), next.bucketList, next.index('principal', 'ann')]) {
    await store.client.set(foreign, 'foreign');
    await expect(instance().scripts.move(old, next, id)).rejects.toThrow(/WRONGTYPE|is taken/);
    expect(await isAt(old, id)).toBe(true);
    expect(await store.client.zscore(old.index('principal', 'ann'), id)).not.toBeNull();
    await store.client.del(foreign);
  }
  expect(await instance().scripts.move(old, next, id)).toBe('moved');
});

it('finds a session that moves between the reads of its old place and its new one', async () => {
  await record(1);
  const repository = instance();
  // Whoever looks at the new partitions first looks at this one before the session moves there.
  const { prefix } = repository.partitions.layouts[1]!.all[0]!;
  const signedIn = async (): Promise<string> => {
    const session = repository.createSession();
    session.signIn('ann');
    if (placesOf(session.id)[1].prefix !== prefix) return signedIn();
    session.setAttribute('cart', ['apple']);
    await session.save();
    return session.id;
  };
  const [loaded, many, listed] = [await signedIn(), await signedIn(), await signedIn()];
  await begin();
  const moveNext = (id: string) => repository.connection.afterNext(() => repository.scripts.move(...placesOf(id), id));
  moveNext(loaded);
  expect((await repository.findById(loaded))?.getAttribute('cart')).toEqual(['apple']);
  moveNext(many);
  const made = Array.from({ length: 30 }, randomId);
  expect((await repository.findByIds([many, ...made]))[0]?.id).toBe(many);
  moveNext(listed);
  expect((await repository.findByPrincipalName('ann')).map(({ id }) => id).toSorted()).toEqual(
    [loaded, many, listed].toSorted(),
  );
  for (const id of [loaded, many, listed]) expect(await isAt(placesOf(id)[1], id)).toBe(true);
});

it('whoever writes a session moves it first, and a new session is made in its new place', async () => {
  await record(1);
  const repository = instance();
  const [saved, touched, rotated, ended] = await Promise.all(Array.from({ length: 4 }, () => stored(repository)));
  for (const { id } of [saved!, touched!, rotated!, ended!]) expect(await isAt(placesOf(id)[0], id)).toBe(true);
  await begin();
  saved!.setAttribute('cart', ['pear']);
  await saved!.save();
  expect(await repository.touch(touched!)).toBe('touched');
  rotated!.changeSessionId();
  await rotated!.save();
  await repository.deleteById(ended!.id);
  const made = await stored(repository);
  for (const { id } of [saved!, touched!, rotated!, made]) expect(await isAt(placesOf(id)[1], id)).toBe(true);
  const [, next] = placesOf(ended!.id);
  const events = await store.client.xrange(next.events, '-', '+');
  expect(events.map(([, fields]) => fields.slice(0, 4))).toContainEqual(['type', 'deleted', 'session', ended!.id]);
  expect((await repository.findById(saved!.id))?.getAttribute('cart')).toEqual(['pear']);
});

it('an instance that has not heard of the next stage changes nothing at the last one', async () => {
  await record(1);
  const late = instance();
  await stored(late);
  await begin();
  expect(late.partitions.stage).toBe('before');
  const session = await stored(late);
  expect(late.partitions.stage).toBe('moving');
  expect(await isAt(placesOf(session.id)[1], session.id)).toBe(true);
  await record(4);
  expect((await stored(late)).isNew).toBe(false);
  expect(late.partitions.stage).toBe('after');
  // Redis has lost its data, and another instance has begun from the start.
  await record(1);
  const again = await stored(late);
  expect(late.partitions.stage).toBe('before');
  expect(await isAt(placesOf(again.id)[0], again.id)).toBe(true);
});

it('a save that is late after a rotation finds its session, wherever this and the forwarding mark are', async () => {
  for (const when of ['before the rotation', 'after it', 'after the session moved'] as const) {
    await record(1);
    const repository = instance();
    const session = await stored(repository);
    const previous = session.id;
    if (when === 'before the rotation') await begin();
    session.changeSessionId();
    await session.save();
    if (when !== 'before the rotation') await begin();
    const [old, next] = placesOf(session.id);
    if (when === 'after the session moved') await repository.scripts.move(old, next, session.id);
    const late = updateOf(previous, { attributes: [['late', '1']] });
    expect(await repository.change(late)).toEqual({ outcome: 'forwarded' });
    expect((await repository.findById(session.id))?.getAttribute('late')).toBe(1);
    expect(await repository.findById(previous)).toBeNull();
    // The visitor of the old token gets no new session, whose cookie would replace that of the login.
    const beside = (): string => {
      const id = randomId();
      return repository.partitions.areBeside(id, previous) ? id : beside();
    };
    for (const id of [beside(), randomId()]) {
      const creation = {
        kind: 'create',
        id,
        presentedIds: [previous],
        maxInactiveInterval: 60,
        absoluteTimeout: -1,
      } as const;
      expect(await repository.change({ ...creation, attributes: new Map(), indexes: new Map() })).toEqual({
        outcome: 'gone',
      });
    }
  }
});

it('a new id is in one partition with the old one, in both layouts', () => {
  const repository = instance({ from: 3, to: 4 });
  const ids = Array.from({ length: 200 }, randomId);
  for (const id of ids.slice(1)) {
    const isBeside = repository.partitions.areBeside(id, ids[0]!);
    expect(isBeside).toBe(
      [3, 4].every((count) => {
        const partitions = new SessionPartitions('nest:session', count);
        return partitions.of(id) === partitions.of(ids[0]!);
      }),
    );
  }
});

it('a session that is taken over twice is made once, also when its first place was the old one', async () => {
  await record(1);
  const id = randomId();
  const taken = {
    id,
    maxInactiveInterval: 60,
    absoluteTimeout: -1,
    attributes: new Map(),
    indexes: new Map([['principal', 'ann']]),
  };
  const { scripts, partitions } = instance();
  expect(await scripts.takeOver(taken, 60_000)).toBe('created');
  await scripts.delete(id);
  await begin();
  partitions.learn('1>4');
  expect(await scripts.takeOver(taken, 60_000)).toBe('gone');
  const [old] = placesOf(id);
  await store.client.set(old.revocationMark('principal', 'ann'), '');
  expect(await scripts.takeOver({ ...taken, id: randomId() }, 60_000)).toBe('refused');
});

it('keeps a limit of sessions that one script has kept before, and a ledger keeps from then on', async () => {
  await record(1);
  const options = { maxSessions: { perPrincipal: 3, whenReached: 'refuse' } } as const;
  const instances = [instance(MOVE, options), instance(MOVE, options)];
  const limit = { principal: 'ann', atMost: 3, whenReached: 'refuse' } as const;
  const signIn = async (i: number) => {
    const creation = {
      kind: 'create',
      id: randomId(),
      presentedIds: [],
      maxInactiveInterval: 600,
      absoluteTimeout: -1,
    } as const;
    const indexes = new Map([[PRINCIPAL_NAME_INDEX_NAME, 'ann']]);
    return (await instances[i % 2]!.change({ ...creation, attributes: new Map(), indexes, limit })).outcome;
  };
  expect(await signIn(0)).toBe('created');
  const outcomes = await Promise.all([signIn(0), begin(), signIn(1), signIn(0), signIn(1), signIn(0)]);
  expect(outcomes.filter((outcome) => outcome === 'created')).toHaveLength(2);
  expect(outcomes.filter((outcome) => outcome === 'refused')).toHaveLength(3);
  expect(await instances[0]!.findByPrincipalName('ann')).toHaveLength(3);
});

it('a limit that was to be kept by one script is kept by the ledger when the move begins before that', async () => {
  await record(1);
  const options = { maxSessions: { perPrincipal: 1, whenReached: 'refuse' } } as const;
  const repository = instance(MOVE, options);
  const limit = { principal: 'ann', atMost: 1, whenReached: 'refuse' } as const;
  const creation = { kind: 'create', presentedIds: [], maxInactiveInterval: 600, absoluteTimeout: -1 } as const;
  const indexes = new Map([[PRINCIPAL_NAME_INDEX_NAME, 'ann']]);
  const signIn = () => repository.change({ ...creation, id: randomId(), attributes: new Map(), indexes, limit });
  expect((await signIn()).outcome).toBe('created');
  // The next sign-in waits for its connection, while another request of the process learns that the move has begun.
  repository.connection.afterNext(async () => {
    await begin();
    repository.partitions.learn('1>4');
  });
  const [, second] = await Promise.all([repository.findById(randomId()), signIn()]);
  expect(second.outcome).toBe('refused');
  expect(await repository.findByPrincipalName('ann')).toHaveLength(1);
});

it('keeps the ledger of a principal through a move, and none that another layout had', async () => {
  const move = { from: 4, to: 2 };
  await record(4);
  const options = { maxSessions: { perPrincipal: 2, whenReached: 'end-oldest' } } as const;
  const repository = instance(move, options);
  const signIn = () => stored(repository, (session) => session.signIn('ann'));
  const [first, second] = [await signIn(), await signIn()];
  const [old, next] = placesOf(ANN, move);
  expect(await store.client.exists(old.ledger(ANN))).toBe(1);
  await begin(move);
  const third = await signIn();
  expect([await store.client.exists(old.ledger(ANN)), await store.client.hlen(next.ledger(ANN))]).toEqual([0, 2]);
  const live = await repository.findByIds([first.id, second.id, third.id]);
  expect(live.map((session) => session !== null)).toEqual([false, true, true]);
});

it('lists, counts and ends each session of a principal once while some have moved', async () => {
  await record(1);
  const repository = instance();
  const sessions = [];
  // Several pages of the index.
  for (let i = 0; i < 250; i++) sessions.push(await stored(repository, (session) => session.signIn('ann')));
  await begin();
  const name = PRINCIPAL_NAME_INDEX_NAME;
  for (const { id } of sessions.slice(200)) await repository.scripts.move(...placesOf(id), id);
  const listed: string[] = [];
  for await (const { id } of repository.listByIndex(name, 'ann')) {
    // What it still has to list moves past the partitions that it has read.
    if (listed.length === 0) {
      for (const each of sessions) await repository.scripts.move(...placesOf(each.id), each.id);
    }
    listed.push(id);
  }
  expect(listed.toSorted()).toEqual(sessions.map(({ id }) => id).toSorted());
  expect(await repository.countByIndex(name, 'ann')).toBe(250);
  expect(await repository.deleteByIndex(name, 'ann', [sessions[0]!.id])).toBe(249);
  expect((await repository.findByPrincipalName('ann')).map(({ id }) => id)).toEqual([sessions[0]!.id]);
});

it('moves all sessions, and what outlives them, and then says that the new number can be set', async () => {
  await record(1);
  const before = instance(1);
  const sessions = await Promise.all(Array.from({ length: 120 }, () => stored(before)));
  const [old] = placesOf(sessions[0]!.id);
  await store.client.set(old.takeoverMark('t'), '', 'PX', 1_000_000);
  await store.client.set(old.revocationMark('principal', 'ann:b'), '', 'PX', 1_000_000);
  await store.client.hset(old.ledger('ann'), 'x', '1 1 - x');
  await store.client.hset(old.dropped, 'default', 3);
  await store.client.xadd(old.deadLetters, '*', 'session', sessions[0]!.id, 'group', 'default');
  await store.scripts.raiseEpoch(old);
  const young = await Promise.all(Array.from({ length: 60 }, () => stored(before)));
  const expired = await store.create({}, { interval: 1 });
  await store.runOut(expired);

  const steps: string[] = [];
  const { moved } = await repartitioner().run({ onProgress: ({ step }) => steps.push(step) });
  expect(moved).toBe(60);
  expect([...new Set(steps)]).toEqual(['waiting', 'moving', 'draining', 'done'].filter((step) => steps.includes(step)));
  expect(await store.client.hget('nest:session:meta', 'partitions')).toBe('4');
  for (const { id } of young) expect(await isAt(placesOf(id)[1], id)).toBe(true);
  for (const { id } of sessions) expect(await store.client.exists(placesOf(id)[0].shadow(id))).toBe(0);

  const after = instance(4);
  expect(await after.findByIds(young.map(({ id }) => id))).toEqual(young.map(() => expect.anything() as unknown));
  const { all } = after.partitions;
  const at = await store.client.hget(all[0]!.epoch, 'at');
  for (const keys of all) {
    expect(await store.client.exists(keys.revocationMark('principal', 'ann:b'))).toBe(1);
    expect(await store.client.hget(keys.epoch, 'at')).toBe(at);
  }
  expect(await store.client.exists(after.partitions.of('t').takeoverMark('t'))).toBe(1);
  expect(await store.client.xlen(after.partitions.of(sessions[0]!.id).deadLetters)).toBe(1);
  expect(await store.client.hget(all[0]!.dropped, 'default')).toBe('3');
  const left = await store.client.keys('nest:session:[^{]*');
  const ended = left.filter((key) => !/:sessions:[\w-]+$/.test(key));
  expect(ended.toSorted()).toEqual([
    'nest:session:epoch',
    'nest:session:events',
    'nest:session:events:dead',
    'nest:session:events:trimmed',
    'nest:session:meta',
  ]);
  expect([await store.client.xlen(old.events), await store.client.xlen(old.deadLetters)]).toEqual([0, 0]);
  expect(await repartitioner().run()).toEqual({ moved: 0 });
});

it('tells what cannot be moved and why, and continues when it is run again', async () => {
  await record(1);
  const before = instance(1);
  const [blocked, ...others] = await Promise.all(Array.from({ length: 20 }, () => stored(before)));
  const [old, next] = placesOf(blocked!.id);
  await store.client.set(next.session(blocked!.id), 'foreign');
  await expect(repartitioner().run()).rejects.toThrow(
    /^1 sessions cannot be moved\. Repair this, and run it again: ERR a session cannot move/,
  );
  expect(await store.client.hget('nest:session:meta', 'partitions')).toBe('1>4');
  expect(await isAt(old, blocked!.id)).toBe(true);
  for (const { id } of others) expect(await isAt(placesOf(id)[1], id)).toBe(true);
  await store.client.del(next.session(blocked!.id));
  expect(await repartitioner().run()).toEqual({ moved: 1 });
});

it('leaves a session where it is when both layouts have its partition', async () => {
  const move = { from: 3, to: 2 };
  await record(3);
  const repository = instance(move);
  const sessions = await Promise.all(Array.from({ length: 60 }, () => stored(repository)));
  const staying = sessions.filter(
    ({ id }) =>
      placesOf(id, move)[0] === placesOf(id, move)[1] || placesOf(id, move)[0].prefix === placesOf(id, move)[1].prefix,
  );
  expect(staying.length).toBeGreaterThan(0);
  expect(await repartitioner(move).run()).toEqual({ moved: 60 - staying.length });
  const after = instance(2);
  for (const { id } of sessions) expect((await after.findById(id))?.id).toBe(id);
});

it.each([
  ['another move', '2>8', /are in 2 to 8 partitions, which is neither 1 nor 4/],
  ['other partitions', '16', /are in 16 partitions, which is neither 1 nor 4/],
])('refuses to move sessions that are in %s', async (_, recorded, problem) => {
  await store.client.hset('nest:session:meta', 'partitions', recorded);
  await expect(repartitioner().run()).rejects.toThrow(problem);
});

it('refuses to move the sessions of a namespace that no application has used', async () => {
  await expect(repartitioner().run()).rejects.toThrow(/There is nothing to move: no application has started/);
});

it('refuses to move sessions on a server in Cluster mode, and leaves what is recorded', async () => {
  const server = await RedisServer.start({ args: ['--cluster-enabled', 'yes'] });
  const client = new Redis(server.url);
  try {
    await client.cluster('ADDSLOTSRANGE', 0, 16_383);
    await eventually(async () => expect(await client.cluster('INFO')).toContain('cluster_state:ok'));
    const meta = { version: '2', partitions: '64' };
    await client.hset('nest:session:meta', meta);
    const move = { from: 64, to: 128 };
    await expect(new SessionRepartitioner(client, optionsOf(move), PACE).run()).rejects.toThrow(/in Cluster mode/);
    const partitions = new SessionPartitions('nest:session', move);
    const connection = new RequestConnection(new SingleNode(client), { commandTimeout: MINUTE });
    await expect(checkStore(connection, partitions)).rejects.toThrow(/in Cluster mode/);
    await expect(connection.run((node) => node.mget('a', 'b'))).rejects.toThrow(/CROSSSLOT.*set option `cluster`/);
    const others = checkStore(connection, new SessionPartitions('nest:session', 32));
    await expect(others).rejects.toThrow(/are in 64 partitions, .* or use another namespace\. See docs/);
    expect(await client.hgetall('nest:session:meta')).toEqual(meta);
  } finally {
    client.disconnect();
    await server.stop();
  }
});

it('stops when it is told to, and leaves the rest to the next run', async () => {
  await record(1);
  const before = instance(1);
  const sessions = await Promise.all(Array.from({ length: 120 }, () => stored(before)));
  const stopping = new AbortController();
  const stopped = repartitioner().run({
    signal: stopping.signal,
    onProgress: ({ step }) => step === 'moving' && stopping.abort(),
  });
  await expect(stopped).rejects.toThrow(/abort/);
  expect(await store.client.hget('nest:session:meta', 'partitions')).toBe('1>4');
  const { moved } = await repartitioner().run();
  expect([moved > 0, moved < 120]).toEqual([true, true]);
  for (const { id } of sessions) expect(await isAt(placesOf(id)[1], id)).toBe(true);
});

/** A connection of its own, whose commands a MONITOR sees. */
it('costs an application without a move no command more', async () => {
  const client = new Redis(store.server.url);
  const monitor = await new Redis(store.server.url, { lazyConnect: true }).monitor();
  const sent: string[] = [];
  monitor.on(
    'monitor',
    (_: string, [name]: string[], source: string) =>
      void sent.push(`${source === 'lua' ? 'lua ' : ''}${name!.toLowerCase()}`),
  );
  const partitions = new SessionPartitions('nest:session', 4);
  const scripts = new SessionScripts(client, partitions, KEEPING_RULES);
  const id = randomId();
  const creation = { kind: 'create', id, presentedIds: [], maxInactiveInterval: 60, absoluteTimeout: -1 } as const;
  await scripts.create({ ...creation, attributes: new Map(), indexes: new Map() });
  await scripts.touch(id);
  await client.echo('end');
  while (!sent.includes('echo')) await new Promise((resolve) => setImmediate(resolve));
  expect(sent.filter((name) => !name.startsWith('lua')).filter((name) => /eval/.test(name))).toHaveLength(2);
  expect(sent).not.toContain('lua hget');
  monitor.disconnect();
  client.disconnect();
});
