import { Controller, Get, Param, Post, Res } from '@nestjs/common';
import { PRINCIPAL_NAME_INDEX_NAME, Session, TooManySessionsError } from '@nest-session/core';
import { generateSessionKey, PRINCIPAL_ATTRIBUTE } from '@nest-session/core/internal';
import type { CreateSession, SessionLimit, UpdateSession } from '@nest-session/core/store';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually } from '@nest-session/testing';
import { checkStore, LIMITED_SINCE } from '../../../redis-events/src/namespace/store-format.js';
import { RequestConnection } from '../../../redis-events/src/connection/request.connection.js';
import { SingleNode } from '../../../redis-events/src/connection/redis-nodes.js';
import { SessionPartitions } from '../../src/keys/session-partitions.js';
import { type LimitedChange, LimitAcrossPartitions } from '../../src/limits/limit-across-partitions.js';
import {
  type LedgerPlace,
  type PlaceFindings,
  type Room,
  SessionScripts,
} from '../../src/scripts/session/session.scripts.js';
import { RedisSessionRepository } from '../../src/repository/redis-session.repository.js';
import { SessionEpochs } from '../../src/repository/session-epochs.js';
import { App } from '../support/app.fixture.js';
import { KEEPING_RULES, MINUTE, type SteppableStore, Store, updateOf } from '../support/store.fixture.js';
import { hashOfValue } from '../support/hash-of-value.js';

LeakGuard.install();

const PARTITIONS = 16;

@Controller('limited')
class AccountController {
  @Post('sign-in/:name')
  signIn(@Session() session: Session, @Param('name') name: string) {
    session.signIn(name);
    return { id: session.id };
  }

  @Post('raw/:name')
  raw(@Session() session: Session, @Param('name') name: string, @Res() response: { send(body: string): void }) {
    session.signIn(name);
    response.send('signed in');
  }

  /** Responds to a refused sign-in itself. */
  @Post('offer/:name')
  async offer(@Session() session: Session, @Param('name') name: string) {
    session.signIn(name);
    const error: unknown = await session.save().catch((each: unknown) => each);
    if (!(error instanceof TooManySessionsError)) return { name };
    session.principalName = undefined;
    session.setAttribute('asked', name);
    return { most: error.perPrincipal };
  }

  @Get('me')
  me(@Session() session: Session) {
    return { name: session.principalName ?? 'nobody' };
  }
}

describe.each([
  ['express', 1],
  ['fastify', PARTITIONS],
] as const)('on %s with %d partitions', (adapter, partitions) => {
  let store: Store;
  const apps: App[] = [];
  beforeAll(async () => (store = await Store.open({ partitions })));
  afterEach(async () => {
    for (const app of apps.splice(0)) await app.stop();
  });
  afterAll(() => store.close());

  async function start(whenReached?: 'end-oldest' | 'refuse'): Promise<App> {
    const app = await App.start({
      adapter,
      session: whenReached ? { maxSessions: { perPrincipal: 2, whenReached } } : {},
      redis: { url: store.server.url, partitions },
      controllers: [AccountController],
      handlers: false,
    });
    apps.push(app);
    return app;
  }

  it('one more sign-in ends the session of the device that signed in first', async () => {
    const app = await start('end-oldest');
    const devices = [app.agent(), app.agent(), app.agent()];
    for (const device of devices) expect((await device.post('/limited/sign-in/ann')).status).toBe(201);
    const names = [];
    for (const device of devices) names.push(((await device.get('/limited/me')).json() as { name: string }).name);
    expect(names).toEqual(['nobody', 'ann', 'ann']);
  });

  it('one more sign-in ends also what was signed in to while there was no limit, the earliest first', async () => {
    const cookies: string[] = [];
    for (const whenReached of ['end-oldest', undefined, 'end-oldest'] as const) {
      for (const former of apps.splice(0)) await former.stop();
      const app = await start(whenReached);
      for (let i = 0; i < (whenReached ? 1 : 3); i++) {
        const device = app.agent();
        expect((await device.post('/limited/sign-in/zoe')).status).toBe(201);
        cookies.push(...Object.entries(device.cookies).map(([name, value]) => `${name}=${value}`));
      }
    }
    const names = [];
    for (const cookie of cookies) {
      const device = apps[0]!.agent();
      device.setCookie(`${cookie}; Path=/`);
      names.push(((await device.get('/limited/me')).json() as { name: string }).name);
    }
    expect(names).toEqual(['nobody', 'nobody', 'nobody', 'zoe', 'zoe']);
  });

  it('one more sign-in can be answered by the application, which takes it back', async () => {
    const app = await start('refuse');
    const devices = [app.agent(), app.agent(), app.agent(), app.agent()];
    await devices[2]!.post('/set/cart', { value: 'apple' });
    const offers = [];
    for (const device of devices) offers.push((await device.post('/limited/offer/eve')).json());
    expect(offers).toEqual([{ name: 'eve' }, { name: 'eve' }, { most: 2 }, { most: 2 }]);
    const seen = [];
    for (const device of devices) seen.push((await device.get('/limited/me')).json());
    expect(seen).toEqual([{ name: 'eve' }, { name: 'eve' }, { name: 'nobody' }, { name: 'nobody' }]);
    const read = (await devices[2]!.get('/read')).json();
    expect(read).toMatchObject({ attributes: { cart: 'apple', asked: 'eve' } });
  });

  it('one more sign-in is answered 409, and changes nothing', async () => {
    const app = await start('refuse');
    const [first, second, third] = [app.agent(), app.agent(), app.agent()];
    await third.post('/set/cart', { value: 'apple' });
    for (const device of [first, second]) await device.post('/limited/sign-in/bob');
    const refused = await third.post('/limited/sign-in/bob');
    expect([refused.status, refused.json()]).toEqual([
      409,
      { statusCode: 409, message: 'Too many sessions', error: 'Conflict', reason: 'too-many-sessions' },
    ]);
    expect((await third.get('/limited/me')).json()).toEqual({ name: 'nobody' });
    expect((await third.get('/read')).json()).toMatchObject({ attributes: { cart: 'apple' } });
    await first.post('/logout');
    expect((await third.post('/limited/sign-in/bob')).status).toBe(201);
    expect((await third.get('/limited/me')).json()).toEqual({ name: 'bob' });
  });

  it.each(['refuse', 'end-oldest'] as const)(
    'a session whose hash somebody has removed does not count (%s)',
    async (way) => {
      const app = await start(way);
      const name = `of-${way}`;
      const [first, second, third] = [app.agent(), app.agent(), app.agent()];
      await first.post(`/limited/sign-in/${name}`);
      const { id } = (await second.post(`/limited/sign-in/${name}`)).json() as { id: string };
      const [lost] = (await store.client.keys('*')).filter((key) => key.endsWith(`sessions:${id}`));
      expect(await store.client.del(lost!)).toBe(1);
      expect((await third.post(`/limited/sign-in/${name}`)).status).toBe(201);
      expect((await first.get('/limited/me')).json()).toEqual({ name });
    },
  );

  it.each(['refuse', 'end-oldest'] as const)(
    'a session does not count in the place of whose keys there are stray ones (%s)',
    async (way) => {
      const app = await start(way);
      const name = `beside-${way}`;
      const [first, second, third, fourth] = [app.agent(), app.agent(), app.agent(), app.agent()];
      for (const [device, part] of [
        [first, 'sessions:expires:'],
        [second, 'sessions:'],
      ] as const) {
        const { id } = (await device.post(`/limited/sign-in/${name}`)).json() as { id: string };
        const [key] = (await store.client.keys('*')).filter((each) => each.endsWith(`:${part}${id}`));
        expect(await store.client.del(key!)).toBe(1);
        await store.client.rpush(key!, 'planted');
      }
      for (const device of [third, fourth]) expect((await device.post(`/limited/sign-in/${name}`)).status).toBe(201);
      for (const device of [third, fourth]) expect((await device.get('/limited/me')).json()).toEqual({ name });
    },
  );
});

// As the repository names principals to the ledger.
const ANN = hashOfValue('ann');

describe('the ledger', () => {
  let store: SteppableStore;
  let connection: RequestConnection;
  let ledger: LimitAcrossPartitions;
  let roundTrips = 0;
  let running = 0;
  const limit = { principal: ANN, atMost: 2, whenReached: 'end-oldest' } as const;
  const refusing = { ...limit, whenReached: 'refuse' } as const;
  beforeEach(async () => {
    store = await Store.openSteppable({ partitions: PARTITIONS });
    await store.client.hset(store.partitions.meta, LIMITED_SINCE, 0);
    connection = new RequestConnection(new SingleNode(store.client), { commandTimeout: 1000 });
    const run = connection.run.bind(connection);
    // Calls that overlap leave together. Without replicas, a write is as any other call.
    connection.run = connection.write = async (command, key) => {
      if (running++ === 0) roundTrips++;
      return run(command, key).finally(() => running--);
    };
    ledger = newLedger();
    roundTrips = 0;
  });
  afterEach(() => store.close());

  /** That of another process has turns of its own. */
  function newLedger(): LimitAcrossPartitions {
    const { scripts, partitions } = store;
    return new LimitAcrossPartitions(connection, () => scripts, partitions, { commandTimeout: 1000 });
  }

  /** An instance. */
  async function starts(owner: { readonly limits: boolean }): Promise<void> {
    const partitions = new SessionPartitions(store.partitions.namespace, PARTITIONS, owner);
    await checkStore({ run: (command) => command(store.client) }, partitions);
  }

  function creation(id = generateSessionKey().id): CreateSession & LimitedChange {
    const indexes = new Map([[PRINCIPAL_NAME_INDEX_NAME, ANN]]);
    const times = { maxInactiveInterval: 1800, absoluteTimeout: -1 };
    const attributes = new Map([[PRINCIPAL_ATTRIBUTE, '"ann"']]);
    return { kind: 'create', id, presentedIds: [], ...times, signsIn: true, attributes, indexes, limit };
  }

  async function signIn(limits: SessionLimit = limit): Promise<string> {
    const change = { ...creation(), limit: limits };
    const reply = await ledger.write(change, (room) => connection.run(() => store.scripts.create(change, room)));
    expect(reply.outcome).toBe('created');
    return change.id;
  }

  async function roundTripsOf(step: () => Promise<unknown>): Promise<number> {
    const before = roundTrips;
    await step();
    await eventually(() => expect(running).toBe(0));
    // Nobody waits for the last one, which settles the place.
    return roundTrips - before - 1;
  }

  const isLive = async (id: string) => (await store.client.exists(store.keysOf(id).shadow(id))) === 1;

  it('takes one round trip more, and three more where a session ends or has expired', async () => {
    // The first sign-in asks since when there are ledgers, and the indexes, and makes the ledger.
    expect(await roundTripsOf(signIn)).toBe(5);
    const ids: string[] = [];
    const signsIn = async () => void ids.push(await signIn());
    expect(await roundTripsOf(signsIn)).toBe(2);
    expect(await roundTripsOf(signsIn)).toBe(4);
    expect(await Promise.all(ids.map(isLive))).toEqual([true, true]);
    await store.scripts.delete(ids[1]!);
    expect(await roundTripsOf(signsIn)).toBe(4);
    expect(await Promise.all(ids.map(isLive))).toEqual([true, false, true]);
    expect(await roundTripsOf(signsIn)).toBe(4);
    expect(await Promise.all(ids.map(isLive))).toEqual([false, false, true, true]);
  });

  it('knows the sessions that were there before it', async () => {
    const before = [];
    for (let i = 0; i < 3; i++) {
      const change = creation();
      await store.scripts.create(change);
      before.push(change.id);
      await store.server.stepClock(1000);
    }
    await signIn();
    expect(await Promise.all(before.map(isLive))).toEqual([false, false, true]);
  });

  it('counts the sessions of a time without the option, although it is there since before', async () => {
    await store.client.hdel(store.partitions.meta, LIMITED_SINCE);
    await starts({ limits: true });
    ledger = newLedger();
    const [first, second] = [await signIn(), await signIn()];
    await starts({ limits: false });
    await store.server.stepClock(1000);
    // Instances without the option sign the user in, and give a session another id.
    const before = [];
    for (let i = 0; i < 3; i++) {
      const change = creation();
      await store.scripts.create(change);
      before.push(change.id);
      await store.server.stepClock(1000);
    }
    const rotated = store.id(second);
    await store.save(second, { newId: rotated });
    await starts({ limits: true });
    ledger = newLedger();
    const last = await signIn();
    expect(await Promise.all([first, rotated, ...before, last].map(isLive))).toEqual([
      false,
      false,
      false,
      false,
      true,
      true,
    ]);
  });

  it('counts a session that was taken over, and ends none for it', async () => {
    const first = await signIn();
    const second = await signIn();
    const { id, ...taken } = creation();
    await ledger.takeOver(id, ANN, () => store.scripts.takeOver({ id, ...taken }, 60_000));
    expect(await Promise.all([first, second, id].map(isLive))).toEqual([true, true, true]);
    await signIn();
    expect(await Promise.all([first, second, id].map(isLive))).toEqual([false, false, true]);
  });

  it('gets another place when the time of its place passes before the session is stored', async () => {
    const change = creation();
    const outcomes: string[] = [];
    const reply = await ledger.write(change, async (room) => {
      if (outcomes.length === 0) await store.server.stepClock(MINUTE);
      const stored = await connection.run(() => store.scripts.create(change, room));
      outcomes.push(stored.outcome);
      return stored;
    });
    expect([...outcomes, reply.outcome]).toEqual(['late', 'created', 'created']);
    const others = [await signIn(), await signIn()];
    expect(await Promise.all([change.id, ...others].map(isLive))).toEqual([false, true, true]);
  });

  it('ends nothing for a session that is not created, because its client presents a token that was replaced', async () => {
    const others = [await signIn(), await signIn()];
    const planted = await store.create({ a: '1' });
    await store.scripts.save(updateOf(planted, { newId: store.id(planted) }));
    const change = { ...creation(), presentedIds: [planted] };
    const reply = await ledger.write(change, () => Promise.reject(new Error('It is not to be stored')));
    expect(reply.outcome).toBe('gone');
    expect(await Promise.all(others.map(isLive))).toEqual([true, true]);
  });

  it('keeps no place for a session that has ended during a sign-in to it', async () => {
    const limited = { ...limit, atMost: 1, whenReached: 'refuse' } as const;
    const create = async () => {
      const change = { ...creation(), limit: limited };
      const reply = await ledger.write(change, (room) => connection.run(() => store.scripts.create(change, room)));
      return { id: change.id, outcome: reply.outcome };
    };
    const { id } = await create();
    const { attributes, indexes } = creation();
    const again: LimitedChange = { kind: 'update', id, newId: store.id(id), attributes, indexes, limit: limited };
    const reply = await ledger.write(again, async (room) => {
      await store.scripts.delete(id);
      // Nobody wants the event.
      await store.client.del(store.keysOf(id).session(id));
      return connection.run(() => store.scripts.save(again, room));
    });
    expect(reply.outcome).toBe('gone');
    expect(await create()).toMatchObject({ outcome: 'created' });
  });

  it('gives back the place of a rotation that a bound refuses, and keeps that of a session without a new id', async () => {
    const { indexes } = creation();
    const attributes = new Map(['b', 'c'].map((name) => [name, '1']));
    const bounds = { maxAttributes: 1, maxAttributeNameSize: 100, maxAttributeSize: 100, maxSessionSize: 100 };
    const more = { kind: 'update', attributes, indexes, bounds, limit: { ...refusing, atMost: 1 } } as const;
    const write = (change: LimitedChange & UpdateSession) =>
      ledger.write(change, (room) => connection.run(() => store.scripts.save(change, room)));
    const places = () => store.client.hkeys(store.partitions.of(ANN).ledger(ANN));
    const full = { outcome: 'full', bound: 'maxAttributes' };
    const id = await store.create({ a: '1' });
    expect(await write({ ...more, id, newId: store.id(id) })).toEqual(full);
    expect(await places()).toEqual([]);
    const signedIn = await signIn(more.limit);
    expect(await write({ ...more, id: signedIn })).toEqual(full);
    expect(await places()).toEqual([signedIn]);
  });

  it('gives back the place that a rotation has with a principal whose session it is not', async () => {
    const id = await signIn();
    const other = { ...limit, principal: hashOfValue('bob') };
    const rest = { newId: store.id(id), attributes: new Map(), indexes: new Map(), limit: other };
    const change: LimitedChange & UpdateSession = { kind: 'update', id, ...rest };
    const reply = await ledger.write(change, (room) => connection.run(() => store.scripts.save(change, room)));
    expect(reply).toEqual({ outcome: 'unplaced', principal: ANN });
    expect(await store.client.exists(store.partitions.of(other.principal).ledger(other.principal))).toBe(0);
  });

  it('gives back the place of a sign-in that cannot find out what has become of the others, each time', async () => {
    const ids = [await signIn(), await signIn()];
    const index = store.keysOf(ids[0]!).index(PRINCIPAL_NAME_INDEX_NAME, ANN);
    await store.client.rename(index, 'aside');
    await store.client.set(index, 'foreign');
    for (let round = 1; round <= 2; round++) {
      await expect(signIn()).rejects.toThrow('WRONGTYPE');
      const places = await store.client.hkeys(store.partitions.of(ANN).ledger(ANN));
      expect(places.toSorted()).toEqual(ids.toSorted());
    }
  });

  it('keeps the place that another request has asked for since a look at its session', async () => {
    const scripts = new SessionScripts(store.client, store.partitions, KEEPING_RULES);
    const request = { atMost: 2, whenReached: 'refuse', duration: 5000 } as const;
    const reserve = async (id: string, findings?: PlaceFindings) => {
      const place = await scripts.reserve(ANN, { ...request, id, replaced: undefined }, findings);
      return place.word === 'refused' ? place.others : [];
    };
    const sessions = [['a', '1'] as const, ['left', '2'] as const];
    const seen = (await reserve('new', { sessions })).filter(({ id }) => id === 'left');
    expect(seen).toHaveLength(1);
    // Meanwhile the session becomes one of the principal again, and keeps its id.
    await scripts.reserve(ANN, { ...request, atMost: 3, id: 'left', replaced: 'left' });
    await scripts.settle(ANN, 'left', true);
    const ids = async (over: readonly LedgerPlace[]) => (await reserve('new', { over })).map(({ id }) => id).toSorted();
    expect(await ids(seen)).toEqual(['a', 'left']);
    const now = (await reserve('new')).filter(({ id }) => id === 'left');
    expect(await ids(now)).toEqual([]);
  });

  it('ends no session for which another sign-in may still leave room', async () => {
    const scripts = new SessionScripts(store.client, store.partitions, KEEPING_RULES);
    const { whenReached } = limit;
    const reserve = async (id: string, findings?: PlaceFindings) => {
      const request = { id, replaced: undefined, atMost: 3, whenReached, duration: 5000 };
      const place = await scripts.reserve(ANN, request, findings);
      if (place.word !== 'room') throw new Error(`There is no room: ${place.word}`);
      const ids = (places: readonly LedgerPlace[]) => places.map((each) => each.id).join(' ');
      return { ...place, ends: ids(place.ending), stays: ids(place.others) };
    };
    // One of the four sessions of the ledger is over, but nobody has looked yet.
    const sessions = ['a', 'b', 'c', 'over'].map((id, i) => [id, `${i}`] as const);
    const first = await reserve('first', { sessions });
    expect(first).toMatchObject({ ends: 'a b', stays: 'c over' });
    // Until then the first one stands for two sessions.
    await expect(reserve('second')).rejects.toThrow('busy');
    const over = first.others.filter(({ id }) => id === 'over');
    expect(await reserve('first', { over })).toMatchObject({ ends: 'a', stays: 'b c', latest: first.latest });
    expect(await reserve('second')).toMatchObject({ ends: 'b', stays: 'c' });
  });

  it('counts a session once while a request changes its id', async () => {
    const scripts = new SessionScripts(store.client, store.partitions, KEEPING_RULES);
    const rules = { whenReached: limit.whenReached, duration: 5000 };
    const rotation = { ...rules, id: 'new', replaced: 'old', atMost: undefined };
    expect(await scripts.reserve(ANN, rotation, { sessions: [['old', '1']] })).toMatchObject({ word: 'room' });
    const signIn = { ...rules, id: 'other', replaced: undefined, atMost: 2 };
    expect(await scripts.reserve(ANN, signIn)).toMatchObject({ word: 'room', ending: [] });
  });

  it('gives up no place that another sign-in has taken since', async () => {
    const scripts = new SessionScripts(store.client, store.partitions, KEEPING_RULES);
    const one = { replaced: undefined, atMost: 1, whenReached: limit.whenReached, duration: 5000 } as const;
    const sessions = [['old', '1'] as const];
    const ending = [{ id: 'old' }];
    expect(await scripts.reserve(ANN, { ...one, id: 'slow' }, { sessions })).toMatchObject({ word: 'room', ending });
    await store.server.stepClock(5001);
    const next = await scripts.reserve(ANN, { ...one, id: 'next' });
    expect(next).toMatchObject({ word: 'room', ending: [{ id: 'old' }, { id: 'slow' }] });
    const ledger = () => store.client.hgetall(store.partitions.of(ANN).ledger(ANN));
    const before = await ledger();
    await scripts.settle(ANN, 'slow', false, ['old']);
    const { slow: _, ...others } = before;
    expect(await ledger()).toEqual(others);
    await scripts.settle(ANN, 'next', true, ['old']);
    expect(Object.keys(await ledger())).toEqual(['next']);
  });

  it('waits for the sign-in of an instance that died only until its time has passed', async () => {
    const limited = { ...limit, atMost: 1 };
    const first = await signIn(limited);
    const scripts = new SessionScripts(store.client, store.partitions, KEEPING_RULES);
    const died = { id: 'died', replaced: undefined, atMost: 1, whenReached: limit.whenReached, duration: 5000 };
    expect(await scripts.reserve(ANN, died)).toMatchObject({ word: 'room', ending: [{ id: first }] });
    const next = { ...died, id: 'next' };
    expect((await scripts.reserve(ANN, next)).word).toBe('busy');
    await store.server.stepClock(5001);
    // It may have been stored, so both places are looked at.
    expect(await scripts.reserve(ANN, next)).toMatchObject({ word: 'room', ending: [{ id: first }, { id: 'died' }] });
    await scripts.settle(ANN, 'next', false);
    const second = await signIn(limited);
    expect([await isLive(first), await isLive(second)]).toEqual([false, true]);
  });

  it('gives a place to the request that has waited the longest, and to no other one instead', async () => {
    const scripts = new SessionScripts(store.client, store.partitions, KEEPING_RULES);
    const reserve = async (id: string) => {
      const request = { id, replaced: undefined, atMost: 1, whenReached: limit.whenReached, duration: 5000 };
      return (await scripts.reserve(ANN, request, { sessions: [] })).word;
    };
    expect(await reserve('first')).toBe('room');
    expect(await reserve('second')).toBe('busy');
    await store.server.stepClock(1);
    expect(await reserve('third')).toBe('busy');
    await scripts.settle(ANN, 'first', true);
    expect([await reserve('third'), await reserve('fourth'), await reserve('second')]).toEqual([
      'busy',
      'busy',
      'room',
    ]);
    await scripts.settle(ANN, 'second', true);
    // One that has given up, or died, is waited for no longer.
    await scripts.settle(ANN, 'third', false);
    expect(await reserve('fourth')).toBe('room');
    expect(await reserve('fifth')).toBe('busy');
    await scripts.settle(ANN, 'fourth', true);
    await store.server.stepClock(1000);
    expect(await reserve('sixth')).toBe('room');
    expect(await store.client.hkeys(store.partitions.of(ANN).ledger(ANN))).not.toContain('?fifth');
  });

  it('takes no room from a sign-in that has found the session of the place to be over', async () => {
    const limited = { ...limit, atMost: 1 };
    const id = await signIn(limited);
    // It is nobody's from then on, and its place is still there.
    await store.save(id, { indexes: [[PRINCIPAL_NAME_INDEX_NAME, null]] });
    const change = { ...creation(), limit: limited };
    await ledger.write(change, async (room) => {
      const again = { id: store.id(id), replaced: id, atMost: 1, whenReached: limit.whenReached, duration: 5000 };
      const scripts = new SessionScripts(store.client, store.partitions, KEEPING_RULES);
      expect((await scripts.reserve(ANN, again)).word).toBe('busy');
      return connection.run(() => store.scripts.create(change, room));
    });
  });

  it('gives back the place of a sign-in that found its session gone', async () => {
    await signIn();
    const id = store.id();
    const { attributes, indexes } = creation();
    const change: LimitedChange = { kind: 'update', id, newId: store.id(id), attributes, indexes, limit };
    const reply = await ledger.write(change, (room) => connection.run(() => store.scripts.save(change, room)));
    expect(reply.outcome).toBe('gone');
    const key = store.partitions.of(ANN).ledger(ANN);
    expect(await store.client.hlen(key)).toBe(1);
    expect(await isLive(await signIn())).toBe(true);
    expect(await store.client.hlen(key)).toBe(2);
  });

  it('keeps the place of a new session when its request, whose first attempt had no reply, finds it gone', async () => {
    const change = creation();
    const stored = (room?: Room) => connection.run(() => store.scripts.create(change, room));
    const lost = ledger.write(change, async (room) => {
      await stored(room);
      throw new Error('The reply is lost');
    });
    await expect(lost).rejects.toThrow('The reply is lost');
    expect(await ledger.write(change, async () => ({ outcome: 'gone' }))).toEqual({ outcome: 'gone' });
    expect(await store.client.hkeys(store.partitions.of(ANN).ledger(ANN))).toEqual([change.id]);
    const one = { ...creation(), limit: { ...refusing, atMost: 1 } };
    const reply = await ledger.write(one, () => Promise.reject(new Error('It is not to be stored')));
    expect(reply.outcome).toBe('refused');
  });

  it('gives back the place of a sign-in that is refused', async () => {
    const [first, second] = [await signIn(), await signIn()];
    const change = { ...creation(), limit: { ...limit, whenReached: 'refuse' } as const };
    const reply = await ledger.write(change, () => Promise.reject(new Error('It is not to be stored')));
    expect(reply.outcome).toBe('refused');
    const places = await store.client.hkeys(store.partitions.of(ANN).ledger(ANN));
    expect(places.toSorted()).toEqual([first, second].toSorted());
  });

  /** The time to store it has passed: it only asks whether the session was rotated. */
  async function askWhy(room?: Room) {
    expect(room?.until).toBe(0);
    return { outcome: 'gone', rotated: true } as const;
  }

  it.each(['a visitor', 'its user'])(
    'ends one session for two sign-ins at once to the session of %s',
    async (whose) => {
      const other = await signIn();
      const id = whose === 'a visitor' ? await store.create({ a: '1' }) : await signIn();
      if (whose === 'a visitor') await signIn();
      const { attributes, indexes } = creation();
      const again = () => ({ kind: 'update', id, newId: store.id(id), attributes, indexes, limit }) as const;
      const save = (change: UpdateSession, room?: Room) => connection.run(() => store.scripts.save(change, room));
      const [first, second] = [again(), again()];
      let late: ReturnType<LimitAcrossPartitions['write']>;
      const reply = await ledger.write(first, async (room) => {
        // It waits until the first one is stored.
        late = newLedger().write(second, askWhy);
        await eventually(() => expect(running).toBe(0));
        return save(first, room);
      });
      expect(reply.outcome).toBe('saved');
      expect((await late!).outcome).toBe('gone');
      expect(await isLive(other)).toBe(whose === 'its user');
      // The forwarding mark, which led from the old id to the new one, is gone.
      await store.server.stepClock(2 * MINUTE);
      const ids = [first.newId, await signIn(), await signIn()];
      expect(await Promise.all(ids.map(isLive))).toEqual([false, true, true]);
    },
  );

  it('gives up the place of a session that was rotated, when two late requests signed in to it at once', async () => {
    const save = (change: UpdateSession, room?: Room) => connection.run(() => store.scripts.save(change, room));
    const id = await store.create({ a: '1' });
    const { attributes, indexes } = creation();
    const signsIn = () => ({ kind: 'update', id, newId: store.id(id), attributes, indexes, limit: refusing }) as const;
    const [first, second, third] = [signsIn(), signsIn(), signsIn()];
    await ledger.write(first, (room) => save(first, room));
    const early = await ledger.write(second, async (room) => {
      const late = newLedger().write(third, askWhy);
      expect((await late).outcome).toBe('gone');
      return save(second, room);
    });
    expect(early.outcome).toBe('gone');
    // The forwarding mark still leads from the old id to the new one.
    const another = { ...creation(), limit: refusing };
    const reply = await ledger.write(another, (room) => connection.run(() => store.scripts.create(another, room)));
    expect(reply.outcome).toBe('created');
    expect(await Promise.all([first.newId, another.id].map(isLive))).toEqual([true, true]);
  });

  it('keeps the place of a session that was rotated, when a late request knows it by its first id', async () => {
    const first = await signIn();
    const id = await signIn();
    const { attributes, indexes } = creation();
    const renewal = { kind: 'update', id, newId: store.id(id), attributes, indexes, limit } as const;
    const save = (change: UpdateSession, room?: Room) => connection.run(() => store.scripts.save(change, room));
    await ledger.write(renewal, (room) => save(renewal, room));
    const late = { kind: 'update', id, attributes, indexes, limit } as const;
    expect((await ledger.write(late, (room) => save(late, room))).outcome).toBe('gone');
    // The forwarding mark, which led from the old id to the new one, is gone.
    await store.server.stepClock(2 * MINUTE);
    const ids = [first, renewal.newId, await signIn()];
    expect(await Promise.all(ids.map(isLive))).toEqual([false, true, true]);
  });

  it('has one place for a session that two requests list under its principal at once', async () => {
    const id = await store.create({ a: '1' });
    const { attributes, indexes } = creation();
    const change = { kind: 'update', id, attributes, indexes, limit: { ...refusing, atMost: 1 } } as const;
    const save = (room?: Room) => connection.run(() => store.scripts.save(change, room));
    const reply = await ledger.write(change, async (room) => {
      expect((await newLedger().write(change, save)).outcome).toBe('saved');
      return save(room);
    });
    expect(reply.outcome).toBe('saved');
    expect(await store.client.hkeys(store.partitions.of(ANN).ledger(ANN))).toEqual([id]);
  });

  it('learns the new id of a session that a request rotates without knowing of its principal', async () => {
    const maxSessions = { perPrincipal: limit.atMost, whenReached: limit.whenReached };
    const { scripts, partitions } = store;
    const options = [() => scripts, partitions, { maxSessions }, new SessionEpochs(), ledger] as const;
    const repository = new RedisSessionRepository(connection, ...options);
    const session = repository.createSession();
    session.setAttribute('a', 1);
    await session.save();
    const sameSession = (await repository.findById(session.id))!;
    session.principalName = 'ann';
    await session.save();
    sameSession.changeSessionId();
    expect(await sameSession.save()).toBe('saved');
    // The forwarding mark, which led from the old id to the new one, is gone.
    await store.server.stepClock(2 * MINUTE);
    const ids = [sameSession.id, await signIn(), await signIn()];
    expect(await Promise.all(ids.map(isLive))).toEqual([false, true, true]);
  });

  it('is made for a new id of a session although a stray key stands in the place of an index', async () => {
    const { scripts, partitions } = store;
    const maxSessions = { perPrincipal: limit.atMost, whenReached: limit.whenReached };
    const options = [() => scripts, partitions, { maxSessions }, new SessionEpochs(), ledger] as const;
    const repository = new RedisSessionRepository(connection, ...options);
    const session = repository.createSession();
    session.principalName = 'ann';
    await session.save();
    const elsewhere = partitions.all.find((keys) => keys !== partitions.of(session.id))!;
    await store.client.sadd(elsewhere.index(PRINCIPAL_NAME_INDEX_NAME, ANN), 'planted');
    // Nobody has signed in for a week.
    await store.client.del(partitions.of(ANN).ledger(ANN));
    session.changeSessionId();
    expect(await session.save()).toBe('saved');
    expect(await store.client.hkeys(partitions.of(ANN).ledger(ANN))).toHaveLength(1);
  });

  it('makes each of many sign-ins at once on several instances, also where two requests sign in to one session', async () => {
    const save = (change: UpdateSession, room?: Room) => connection.run(() => store.scripts.save(change, room));
    const visitors = await Promise.all(Array.from({ length: 24 }, () => store.create({ a: '1' })));
    // One command sees all partitions at one moment.
    const liveNow = async () =>
      (await store.client.keys('*:sessions:expires:*')).filter((key) => !visitors.includes(key.slice(-43))).length;
    const { attributes, indexes } = creation();
    const doubleClick = async (id: string) => {
      const outcomes = await Promise.all(
        [1, 2].map(async () => {
          const change = { kind: 'update', id, newId: store.id(id), attributes, indexes, limit } as const;
          return (await newLedger().write(change, (room) => save(change, room))).outcome;
        }),
      );
      expect(outcomes.toSorted()).toEqual(['gone', 'saved']);
    };
    let isOver = false;
    let most = 0;
    const watching = (async () => {
      while (!isOver) most = Math.max(most, await liveNow());
    })();
    await Promise.all(visitors.map(doubleClick));
    isOver = true;
    await watching;
    expect([most, await liveNow()]).toEqual([limit.atMost, limit.atMost]);
  });

  it('takes in thousands of sessions, and gives up their places, without holding up Redis', async () => {
    const scripts = new SessionScripts(store.client, store.partitions, KEEPING_RULES);
    const request = { id: 'new', replaced: undefined, ...limit, duration: 5000 };
    const sessions = Array.from({ length: 20_000 }, (_, i) => [`${i}`.padStart(43, 'x'), `${i}`] as const);
    // In microseconds: with steps in the square of their number, each call would take several times as long.
    await store.client.config('SET', 'slowlog-log-slower-than', 2_000_000);
    const place = await scripts.reserve(ANN, request, { sessions });
    if (place.word !== 'room') throw new Error(`There is no room: ${place.word}`);
    expect(place.ending).toHaveLength(19_999);
    const ended = place.ending.map(({ id }) => id);
    await scripts.settle(ANN, 'new', true, ended);
    expect(await store.client.hkeys(store.partitions.of(ANN).ledger(ANN))).toHaveLength(2);
    expect(await store.client.slowlog('LEN')).toBe(0);
  });

  it('vanishes a week after the last sign-in', async () => {
    await signIn();
    const key = store.partitions.of(ANN).ledger(ANN);
    const left = (await store.client.pttl(key)) / (24 * 60 * MINUTE);
    expect([left > 6.9, left <= 7]).toEqual([true, true]);
  });
});
