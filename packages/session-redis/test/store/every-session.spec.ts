import { jest } from '@jest/globals';
import { Injectable } from '@nestjs/common';
import { OnSessionEvent, SessionDeletedEvent, Sessions } from '@nest-session/core';
import { RedisSessionRepository } from '@nest-session/redis';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually, type HttpAgent } from '@nest-session/testing';
import { OlderSessionSweeper, SessionEpochs } from '../../src/repository/session-epochs.js';
import { SessionPartitions } from '../../src/keys/session-partitions.js';
import { BackgroundLimiter } from '../../../redis-events/src/timing/background.limiter.js';
import { SessionScripts } from '../../src/scripts/session/session.scripts.js';
import { App } from '../support/app.fixture.js';
import { commandStats } from '../support/command.stats.js';
import { KEEPING_RULES, MINUTE, type SteppableStore, Store } from '../support/store.fixture.js';
import type { SessionKeys } from '../../src/keys/session-keys.js';

LeakGuard.install();

@Injectable()
class Ends {
  readonly ids: string[] = [];

  @OnSessionEvent(SessionDeletedEvent)
  record({ sessionId }: SessionDeletedEvent) {
    this.ids.push(sessionId);
  }
}

const apps: App[] = [];
let store: SteppableStore;
beforeEach(async () => {
  store = await Store.openSteppable({ partitions: 4 });
});
afterEach(async () => {
  await Promise.all(apps.splice(0).map((app) => app.stop()));
  await store.close();
});

async function start(): Promise<App> {
  const redis = { url: store.server.url, partitions: 4, cleanup: { cron: '0 0 0 29 2 *' } };
  const app = await App.start({ redis, providers: [Ends] });
  apps.push(app);
  return app;
}

const isNew = async (agent: HttpAgent) => (await agent.get('/read')).json<{ isNew: boolean }>().isNew;

it('every instance refuses every session, and each end is reported once, endless sessions included', async () => {
  const [here, there] = [await start(), await start()];
  const agents = Array.from({ length: 10 }, (_, i) => (i % 2 ? here : there).agent());
  await Promise.all(agents.map((agent, i) => agent.post('/set/cart', { value: 1, interval: i === 0 ? -1 : 600 })));
  const ids = await Promise.all(agents.map(async (agent) => (await agent.get('/read')).json<{ id: string }>().id));
  await here.nest.get(Sessions).endEverySession();
  for (const agent of agents) await eventually(async () => expect(await isNew(agent)).toBe(true));
  const ended = () => [here, there].flatMap((app) => app.nest.get(Ends).ids);
  await eventually(() => expect(ended().toSorted()).toEqual(ids.toSorted()), { timeout: 20_000 });
  const late = here.agent();
  await late.post('/set/cart', { value: 1 });
  expect(await isNew(late)).toBe(false);
});

it('every instance hears of the partitions whose sessions are over, although another one has failed', async () => {
  const [here, there] = [await start(), await start()];
  const repository = there.nest.get(RedisSessionRepository, { strict: false });
  const ids = await Promise.all(Array.from({ length: 40 }, () => store.create({ a: '1' })));
  const [failing] = store.partitions.all;
  await store.client.del(failing!.epoch);
  await store.client.set(failing!.epoch, 'foreign');
  await expect(here.nest.get(Sessions).endEverySession()).rejects.toThrow('WRONGTYPE');
  const over = ids.filter((id) => store.keysOf(id) !== failing);
  await eventually(async () => expect(await repository.findByIds(over)).toEqual(over.map(() => null)));
});

it('every instance hears of it also where Redis has forgotten the script', async () => {
  const [here, there] = [await start(), await start()];
  const [sessions, epochs] = [here.nest.get(Sessions), there.nest.get(SessionEpochs, { strict: false })];
  const { all } = there.nest.get(SessionPartitions, { strict: false });
  const pending = () => all.filter((keys) => epochs.pending(keys) !== undefined);
  await sessions.endEverySession();
  await eventually(() => expect(pending()).toEqual(all));
  // Until the last session has ended, an instance polls.
  for (const { epoch } of all) await store.client.hset(epoch, 'ended', (await store.client.hget(epoch, 'at'))!);
  await eventually(() => expect(pending()).toEqual([]));
  await store.client.script('FLUSH');
  await sessions.endEverySession();
  await eventually(() => expect(pending()).toEqual(all));
});

it('an instance ends the sessions that one that has stopped did not end', async () => {
  const ids = await Promise.all(Array.from({ length: 120 }, () => store.create({ a: '1' }, { interval: -1 })));
  for (const keys of store.partitions.all) await store.scripts.raiseEpoch(keys);
  await start();
  await eventually(async () => expect(await store.eventTypesOf(ids)).toEqual(ids.map(() => ['created', 'deleted'])), {
    timeout: 20_000,
  });
});

it('the background work looks at the sessions once more when requests that rotate them are over, and is done', async () => {
  for (const keys of store.partitions.all) await store.scripts.raiseEpoch(keys);
  const epochs = new SessionEpochs();
  for (const keys of store.partitions.all) await epochs.ask(store.client, keys);
  const limiter = new BackgroundLimiter();
  const sweeper = new OlderSessionSweeper(store.client, store.scripts, store.partitions, epochs, limiter);
  const ended = () => Promise.all(store.partitions.all.map(({ epoch }) => store.client.hget(epoch, 'ended')));
  const scans = jest.spyOn(store.client, 'scan');
  const raisedAt = await Promise.all(store.partitions.all.map(({ epoch }) => store.client.hget(epoch, 'at')));
  await sweeper.runOnce();
  expect(await ended()).toEqual([null, null, null, null]);
  // Nobody is looked for again until then.
  scans.mockClear();
  await sweeper.runOnce();
  expect(scans).not.toHaveBeenCalled();
  // A request that was open rotates its session past the scan.
  const [keys] = store.partitions.all;
  const id = await store.create();
  await store.client.hset(store.keysOf(id).session(id), 'creationTime', raisedAt[0]!);
  await store.server.stepClock(MINUTE + 1000);
  expect(await sweeper.runOnce()).toEqual({ ended: 1 });
  expect(await store.isAlive(id)).toBe(false);
  // Another one may have been rotated past this scan.
  const isHere = ({ epoch }: SessionKeys) => epoch === store.keysOf(id).epoch;
  expect(await ended()).toEqual(store.partitions.all.map((each, i) => (isHere(each) ? null : raisedAt[i])));
  await sweeper.runOnce();
  expect(await ended()).toEqual(raisedAt);
  await epochs.ask(store.client, keys!);
  expect(epochs.pending(keys!)).toBeUndefined();
  // The same once more, with other sessions.
  const others = [await store.create(), await store.create()];
  for (const each of store.partitions.all) {
    await store.scripts.raiseEpoch(each);
    await epochs.ask(store.client, each);
  }
  expect(await sweeper.runOnce()).toEqual({ ended: 2 });
  expect(await store.eventTypesOf(others)).toEqual(others.map(() => ['created', 'deleted']));
  expect(await sweeper.runOnce()).toEqual({ ended: 0 });
});

it('the background work is done also while Redis is out of memory, and looks for no sessions again', async () => {
  const { client, scripts, partitions } = store;
  const [keys] = partitions.all as [SessionKeys];
  const epochs = new SessionEpochs();
  const sweeper = new OlderSessionSweeper(client, scripts, partitions, epochs, new BackgroundLimiter());
  await scripts.raiseEpoch(keys);
  await epochs.ask(client, keys);
  await store.server.stepClock(MINUTE + 1000);
  await client.config('SET', 'maxmemory', '1');
  await sweeper.runOnce();
  await epochs.ask(client, keys);
  const scans = jest.spyOn(client, 'scan');
  await sweeper.runOnce();
  expect(scans).not.toHaveBeenCalled();
});

it('the background work ends the sessions of the partitions that have something to end, and of no other ones', async () => {
  const { client, scripts, partitions } = store;
  const last = partitions.all.at(-1)!;
  const ids: string[] = [];
  const areIn = (keys: SessionKeys) => ids.some((id) => store.keysOf(id) === keys);
  while (!partitions.all.every(areIn)) ids.push(await store.create());
  await scripts.raiseEpoch(last);
  const epochs = new SessionEpochs();
  for (const keys of partitions.all) await epochs.ask(client, keys);
  const limiter = new BackgroundLimiter();
  const sweeper = new OlderSessionSweeper(client, scripts, partitions, epochs, limiter);
  const over = ids.filter((id) => store.keysOf(id) === last);
  expect(await sweeper.runOnce()).toEqual({ ended: over.length });
  expect(await Promise.all(ids.map((id) => store.isAlive(id)))).toEqual(ids.map((id) => !over.includes(id)));
});

it('a pass that is aborted ends no more sessions, and is not recorded as done', async () => {
  const ids: string[] = [];
  // One in each partition: a pass is done with those that have none.
  const isEmpty = (keys: SessionKeys) => !ids.some((id) => store.keysOf(id) === keys);
  while (store.partitions.all.some(isEmpty)) ids.push(await store.create());
  const epochs = new SessionEpochs();
  for (const each of store.partitions.all) {
    await store.scripts.raiseEpoch(each);
    await epochs.ask(store.client, each);
  }
  await store.server.stepClock(MINUTE + 1000);
  const aborting = new AbortController();
  const { client, partitions, scripts } = store;
  const limiter = new BackgroundLimiter();
  const run = limiter.run.bind(limiter);
  // During the first scan.
  limiter.run = async (call, key) => {
    const found = await run(call, key);
    aborting.abort();
    return found;
  };
  const sweeper = new OlderSessionSweeper(client, scripts, partitions, epochs, limiter);
  expect(await sweeper.runOnce({ signal: aborting.signal })).toEqual({ ended: 0 });
  const ended = () => Promise.all(partitions.all.map(({ epoch }) => client.hget(epoch, 'ended')));
  expect(await ended()).toEqual([null, null, null, null]);
  expect(await sweeper.runOnce()).toEqual({ ended: ids.length });
});

it('a load asks for nothing but the session while the instance polls', async () => {
  const app = await start();
  const repository = app.nest.get(RedisSessionRepository, { strict: false });
  const id = await store.create({ a: '1' });
  await eventually(async () => {
    await store.client.config('RESETSTAT');
    const began = performance.now();
    for (let i = 0; i < 50; i++) await repository.findById(id);
    const stats = await commandStats(store.client);
    const calls = (name: string) => stats.get(name)?.calls ?? 0;
    expect([calls('hgetall'), calls('pttl')]).toEqual([50, 50]);
    // What the polls have asked in this time.
    const polls = Math.ceil((performance.now() - began) / 1000) + 1;
    expect(calls('hmget')).toBeLessThanOrEqual(polls * store.partitions.all.length);
  });
});

it('sessions that begin in the millisecond of the call end, and those that somebody signs in to later live', async () => {
  const [old, again] = [await store.create(), await store.create()];
  const keys = store.keysOf(again);
  for (const each of store.partitions.all) await store.scripts.raiseEpoch(each);
  const epoch = Number(await store.client.hget(keys.epoch, 'at'));
  await store.client.hset(keys.session(again), 'authenticatedAt', epoch + 1);
  const exact = await store.create();
  await store.client.hset(store.keysOf(exact).session(exact), 'creationTime', epoch);
  await store.client.hset(store.keysOf(exact).epoch, 'at', epoch);
  const epochs = new SessionEpochs();
  await epochs.ask(store.client, keys);
  const times: [creationTime: number, authenticatedAt?: number][] = [
    [epoch],
    [epoch + 1],
    [epoch - 1, epoch],
    [epoch - 1, epoch + 1],
  ];
  const ends = times.map(([creationTime, authenticatedAt = 0]) => epochs.ends(keys, { creationTime, authenticatedAt }));
  expect(ends).toEqual([true, false, true, false]);
  for (const id of [old, again, exact]) await store.scripts.endOlder(store.keysOf(id), [id]);
  expect([await store.isAlive(old), await store.isAlive(again), await store.isAlive(exact)]).toEqual([
    false,
    true,
    false,
  ]);
});

it('an epoch never goes back with the clock of Redis', async () => {
  const [keys] = store.partitions.all;
  await store.scripts.raiseEpoch(keys!);
  const at = await store.client.hget(keys!.epoch, 'at');
  await store.server.stepClock(-MINUTE);
  await store.scripts.raiseEpoch(keys!);
  expect(await store.client.hget(keys!.epoch, 'at')).toBe(at);
});

it('an epoch is of a given time, never of one that is later than now or than before', async () => {
  const [keys] = store.partitions.all;
  await store.server.stopClock();
  const now = await store.now();
  const raised = async (at?: number) => Number(await store.scripts.raiseEpoch(keys!, at));
  expect(await raised(now - MINUTE)).toBe(now - MINUTE);
  expect(await raised(now - 2 * MINUTE)).toBe(now - MINUTE);
  expect(await raised(now + MINUTE)).toBe(now);
  await store.server.stepClock(MINUTE);
  expect([await raised(now), await raised(0)]).toEqual([now, now + MINUTE]);
});

it('the background work waits for requests that rotate sessions also after an epoch of long ago', async () => {
  const keys = store.keysOf(await store.create());
  await store.server.stepClock(10 * MINUTE);
  const epochs = new SessionEpochs();
  const sweeper = new OlderSessionSweeper(
    store.client,
    store.scripts,
    store.partitions,
    epochs,
    new BackgroundLimiter(),
  );
  const at = (await store.now()) - 5 * MINUTE;
  await store.scripts.raiseEpoch(keys, at);
  await epochs.ask(store.client, keys);
  expect(await sweeper.runOnce()).toEqual({ ended: 1 });
  expect(await sweeper.runOnce()).toEqual({ ended: 0 });
  expect(await store.client.hget(keys.epoch, 'ended')).toBeNull();
  await store.server.stepClock(MINUTE + 1000);
  await sweeper.runOnce();
  expect(await store.client.hget(keys.epoch, 'ended')).toBe(`${at}`);
});

it('a session that the epoch of its partition ends takes no place of a limit', async () => {
  const id = await store.create({}, { principal: 'ann' });
  const keys = store.keysOf(id);
  const ledger = new SessionScripts(store.client, store.partitions, KEEPING_RULES);
  const found = () => ledger.find(keys, keys.index('principal', 'ann'), [id]);
  expect(await found()).toEqual([id]);
  await store.scripts.raiseEpoch(keys);
  expect(await found()).toEqual([]);
});
