import { Injectable } from '@nestjs/common';
import { OnSessionEvent, SessionEvent } from '@nest-session/core';
import { type RedisSessionModuleOptions, SessionEventGroups, SessionExpirationSweeper } from '@nest-session/redis';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually, type HttpAgent, SessionEventRecorder } from '@nest-session/testing';
import { resolveRedisSessionOptions } from '../../src/configuration/redis-session.options.js';
import { SessionPartitions } from '../../src/keys/session-partitions.js';
import { SessionRepartitioner } from '../../src/repartitioning/session-repartitioner.js';
import { SessionScripts } from '../../src/scripts/session/session.scripts.js';
import { App } from '../support/app.fixture.js';
import { EventInstance } from '../support/event-instance.fixture.js';
import { KEEPING_RULES, MINUTE, Store } from '../support/store.fixture.js';

LeakGuard.install();

const MOVE = { from: 1, to: 4 };
const PACE = { forwarded: 20, broadcast: 1 };

let store: Store;
beforeEach(async () => {
  store = await Store.open();
});
afterEach(() => store.close());

const redis = (partitions: RedisSessionModuleOptions['partitions'], notifications: 'auto' | 'off' = 'off') => ({
  url: store.server.url,
  notifications,
  partitions: partitions!,
  cleanup: { cron: '0 0 0 29 2 *' },
});
const repartitioner = () =>
  new SessionRepartitioner(store.client, resolveRedisSessionOptions({ partitions: MOVE }), PACE);
const recorded = () => store.client.hget(store.partitions.meta, 'partitions');
const idOf = async (agent: HttpAgent) => ((await agent.get('/read')).json() as { id: string }).id;
const next = new SessionPartitions('nest:session', MOVE.to);

it('instances serve their sessions before, during and after the move, and each end is handled once and broadcast', async () => {
  const heard = new SessionEventRecorder();
  @Injectable()
  class Everywhere {
    @OnSessionEvent(SessionEvent, { broadcast: true })
    hear(event: SessionEvent) {
      heard.record(event);
    }
  }
  const before = await App.start({ redis: redis(1) });
  const agents = Array.from({ length: 20 }, () => before.agent());
  await Promise.all(agents.map((agent) => agent.post('/set/cart', { value: ['apple'] })));
  await before.stop();

  const app = await App.start({ redis: redis(MOVE), providers: [Everywhere] });
  const clients = agents.map((agent) => {
    const client = app.agent();
    client.setCookie(`SESSION=${agent.cookie('SESSION')}; Path=/`);
    return client;
  });
  try {
    const [ended, expiring, ...staying] = clients as [HttpAgent, HttpAgent, ...HttpAgent[]];
    const early = await idOf(ended);
    await ended.post('/logout');
    const ids = await Promise.all([expiring, ...staying].map(idOf));
    const moving = repartitioner().run();
    const reads = (async () => {
      for (let isOver = false; !isOver;) {
        isOver = (await recorded()) === '4';
        for (const agent of staying) {
          expect((await agent.get('/read')).json()).toMatchObject({ isNew: false, attributes: { cart: ['apple'] } });
        }
      }
    })();
    await Promise.all([moving, reads]);
    for (const id of ids) expect(await store.client.exists(next.of(id).shadow(id))).toBe(1);
    await expiring.post('/set/cart', { value: ['pear'], interval: 1 });
    const late = ids[0]!;
    await eventually(async () => expect(await store.client.exists(next.of(late).shadow(late))).toBe(0));
    await app.nest.get(SessionExpirationSweeper, { strict: false }).runOnce({ ahead: MINUTE });
    await eventually(() =>
      expect([app.events.count('deleted', early), app.events.count('expired', late)]).toEqual([1, 1]),
    );
    await eventually(() => expect([heard.count('deleted', early), heard.count('expired', late)]).toEqual([1, 1]));

    const after = await App.start({ redis: redis(4) });
    for (const agent of staying) {
      const client = after.agent();
      client.setCookie(`SESSION=${agent.cookie('SESSION')}; Path=/`);
      expect((await client.get('/read')).json()).toMatchObject({ isNew: false, attributes: { cart: ['apple'] } });
    }
    await after.stop();
  } finally {
    await app.stop();
  }
});

it('key events of both layouts are heard, and of no other keys', async () => {
  const app = await App.start({ redis: redis(MOVE, 'auto') });
  try {
    await store.client.hset(store.partitions.meta, 'partitions', '1');
    const [old, moved] = [await store.create({}, { interval: 1 }), await store.create({}, { interval: 1 })];
    await store.client.hset(store.partitions.meta, 'partitions', '1>4');
    const scripts = new SessionScripts(store.client, new SessionPartitions('nest:session', MOVE), KEEPING_RULES);
    expect(await scripts.move(store.keys, next.of(moved), moved)).toBe('moved');
    await eventually(async () => {
      // Redis notices an end when somebody looks.
      await store.client.exists(store.keys.shadow(old), next.of(moved).shadow(moved));
      expect([app.events.count('expired', old), app.events.count('expired', moved)]).toEqual([1, 1]);
    });
  } finally {
    await app.stop();
  }
});

it('a group whose instances are not there gets what happens after the move as well', async () => {
  const events = { group: 'mails' };
  const sleeping = await EventInstance.start({ redis: { ...redis(1), events } });
  const groups = sleeping.module.get(SessionEventGroups, { strict: false });
  await groups.create('mails');
  await sleeping.stop();
  const awake = await App.start({ redis: redis(MOVE) });
  try {
    // Nothing waits for the group in the old partition.
    await repartitioner().run();
    // From now on events wait for it in the new ones, also when all other groups have handled them.
    for (const { events: stream } of next.all) {
      expect(JSON.stringify(await store.client.xinfo('GROUPS', stream))).toContain('"mails"');
    }
    const agent = awake.agent();
    await agent.post('/set/cart', { value: 1 });
    const id = await idOf(agent);
    await agent.post('/logout');
    const heard = new SessionEventRecorder();
    @Injectable()
    class Mails {
      @OnSessionEvent(SessionEvent)
      hear(event: SessionEvent) {
        heard.record(event);
      }
    }
    const late = await EventInstance.start({ redis: { ...redis(4), events }, providers: [Mails] });
    await eventually(() => expect(heard.all(id).map(({ type }) => type)).toEqual(['created', 'deleted']));
    await late.stop();
  } finally {
    await awake.stop();
  }
});

it('the move waits until the groups have handled what the old partitions hold', async () => {
  const events = { group: 'mails' };
  const instance = await EventInstance.start({ redis: { ...redis(1), events } });
  await instance.module.get(SessionEventGroups, { strict: false }).create('mails');
  await instance.stop();
  const id = await store.create();
  await store.scripts.delete(id);
  const waits: string[] = [];
  const moving = repartitioner().run({ onProgress: ({ waitingFor }) => waits.push(waitingFor) });
  await eventually(() => expect(waits).toContain('the handlers of group "mails"'));
  expect(await recorded()).toBe('1>4');
  const heard = new SessionEventRecorder();
  @Injectable()
  class Mails {
    @OnSessionEvent(SessionEvent)
    hear(event: SessionEvent) {
      heard.record(event);
    }
  }
  const late = await EventInstance.start({ redis: { ...redis(MOVE), events }, providers: [Mails] });
  await moving;
  expect(heard.all(id).map(({ type }) => type)).toEqual(['created', 'deleted']);
  expect(await recorded()).toBe('4');
  await late.stop();
});

describe('an instance does not start', () => {
  it.each<[string, string, RedisSessionModuleOptions['partitions'], RegExp]>([
    [
      'with the new number before the move',
      '1',
      4,
      /are in 1 partitions, but option `partitions` is 4\. .* To move them, set { from: 1, to: 4 } first/,
    ],
    [
      'with the new number during the move',
      '1>4',
      4,
      /are being moved from 1 to 4 partitions\. Set option `partitions` to { from: 1, to: 4 } until/,
    ],
    ['with the old number during the move', '1>4', 1, /are being moved from 1 to 4 partitions/],
    ['with the old number after the move', '4', 1, /are in 4 partitions, but option `partitions` is 1\. Set it to 4/],
    ['with numbers of another move', '1>4', { from: 1, to: 8 }, /are being moved from 1 to 4 partitions/],
    [
      'with numbers of a move that was never begun',
      '2',
      { from: 1, to: 8 },
      /are in 2 partitions, but option `partitions` is { from: 1, to: 8 }/,
    ],
  ])('%s', async (_, record, partitions, problem) => {
    await store.client.hset(store.partitions.meta, 'version', '2', 'partitions', record);
    await expect(EventInstance.start({ redis: redis(partitions) })).rejects.toThrow(problem);
  });
});

it('an instance with both numbers starts before, during and after the move, and first in a new namespace with the old one', async () => {
  const fresh = await EventInstance.start({ redis: redis(MOVE) });
  expect(await recorded()).toBe('1');
  await fresh.stop();
  for (const record of ['1', '1>4', '4']) {
    await store.client.hset(store.partitions.meta, 'partitions', record);
    const instance = await EventInstance.start({ redis: redis(MOVE) });
    expect(instance.module.get(SessionPartitions, { strict: false }).records).toMatchObject({ moving: '1>4' });
    await instance.stop();
  }
});

it.each<[string, object, string[]]>([
  [
    'equal numbers',
    { partitions: { from: 4, to: 4 } },
    ['Options `partitions.from` and `partitions.to` must be two numbers.'],
  ],
  [
    'numbers out of range',
    { partitions: { from: 0, to: 1025 } },
    [
      'Option `partitions.from` must be a whole number from 1 to 1024.',
      'Option `partitions.to` must be a whole number from 1 to 1024.',
    ],
  ],
  ['a number missing', { partitions: { from: 1 } }, ['Option `partitions.to` must be a whole number from 1 to 1024.']],
  [
    'another option',
    { partitions: { from: 1, to: 4, until: 8 } },
    ['Unknown option `partitions.until`: known are from, to.'],
  ],
  [
    'a Cluster',
    { partitions: { from: 2, to: 4 }, cluster: { nodes: [{ host: 'localhost', port: 1 }] } },
    [expect.stringMatching(/^Option `partitions` must be a number on a Cluster/)],
  ],
])('the option is refused with %s', (_, options, problems) => {
  expect(() => resolveRedisSessionOptions(options)).toThrow(expect.objectContaining({ problems }) as Error);
});
