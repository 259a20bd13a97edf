import { Injectable, type Type } from '@nestjs/common';
import { EventEmitterModule, OnEvent } from '@nestjs/event-emitter';
import {
  OnSessionEvent,
  OnSessionEventGap,
  SessionCreatedEvent,
  SessionDeletedEvent,
  SessionEvent,
} from '@nest-session/core';
import { type RedisSessionModuleOptions, SessionEventGroups } from '@nest-session/redis';
import { LeakGuard, TcpProxy } from '@nest-session/test-infrastructure';
import { eventually } from '@nest-session/testing';
import type { SessionKeys } from '../../src/keys/session-keys.js';
import { EventInstance, type EventInstanceOptions } from '../support/event-instance.fixture.js';
import { Store } from '../support/store.fixture.js';

LeakGuard.install();

const NOTHING = 'an application without handlers';
const ENDS = 'a handler of another event';
const CREATED = 'a handler of the event';
const ALL = 'a handler of all events';
const LISTENER = 'a listener of the EventEmitter';
const BROADCAST = 'a broadcast handler';

const heard: string[] = [];

function providersOf(what: string): Type[] {
  @Injectable()
  class Handlers {
    @OnSessionEvent(SessionDeletedEvent)
    end(event: SessionDeletedEvent) {
      heard.push(event.type);
    }
  }
  @Injectable()
  class CreatedHandlers {
    @OnSessionEvent(SessionCreatedEvent)
    greet(event: SessionCreatedEvent) {
      heard.push(event.type);
    }
  }
  @Injectable()
  class AllHandlers {
    @OnSessionEvent(SessionEvent)
    log(event: SessionEvent) {
      heard.push(event.type);
    }
  }
  @Injectable()
  class Listeners {
    @OnEvent('session.created')
    greet(event: SessionCreatedEvent) {
      heard.push(event.type);
    }
  }
  @Injectable()
  class BroadcastHandlers {
    @OnSessionEvent(SessionCreatedEvent, { broadcast: true })
    greet(event: SessionCreatedEvent) {
      heard.push(event.type);
    }

    @OnSessionEventGap()
    clear() {
      heard.push('gap');
    }
  }
  const classes: Record<string, Type> = {
    [ENDS]: Handlers,
    [CREATED]: CreatedHandlers,
    [ALL]: AllHandlers,
    [LISTENER]: Listeners,
    [BROADCAST]: BroadcastHandlers,
  };
  return classes[what] ? [classes[what]] : [];
}

describe.each([1, 4])('with %d partition(s), the creation of a session', (partitions) => {
  let store: Store;
  let instances: EventInstance[] = [];
  beforeAll(async () => {
    store = await Store.open({ partitions });
  });
  afterEach(async () => {
    for (const instance of instances) await instance.stop();
    instances = [];
    heard.splice(0);
    await store.client.flushall();
  });
  afterAll(() => store.close());

  async function start(
    what: string,
    events: RedisSessionModuleOptions['events'] = {},
    url = store.server.url,
    pace: EventInstanceOptions['pace'] = {},
  ): Promise<EventInstance> {
    const cleanup = { cron: '0 0 0 29 2 *' };
    const redis = { url, partitions, cleanup, events };
    const instance = await EventInstance.start({
      redis,
      pace,
      imports: [EventEmitterModule.forRoot()],
      providers: providersOf(what),
    });
    instances.push(instance);
    return instance;
  }

  const wishesOf = (group: string) =>
    Promise.all(store.partitions.all.map(({ wanted }) => store.client.hget(wanted, group)));
  /** An instance with handlers tells twice: its group is created in between, and then wants all. */
  const hasJoined = (group: string) =>
    Promise.all(store.partitions.all.map(({ handlers }) => store.client.hexists(handlers, group)));
  const hasTold = (group: string, wish: string) =>
    eventually(async () => {
      expect(await wishesOf(group)).toEqual(Array.from({ length: partitions }, () => wish));
      if (wish !== '') expect(await hasJoined(group)).not.toContain(0);
    });
  const isRecorded = async () => (await store.eventTypes(await store.create())).includes('created');

  it.each([NOTHING, ENDS])('is not recorded for %s', async (what) => {
    await start(what);
    await hasTold('default', what === ENDS ? 'deleted' : '');
    for (let i = 0; i < 2 * partitions; i++) expect(await isRecorded()).toBe(false);
  });

  it.each([CREATED, ALL, LISTENER])('is recorded for %s beside a group that wants none', async (what) => {
    await start(NOTHING, { group: 'web' });
    await hasTold('web', '');
    await start(what, { group: 'worker' });
    await hasTold('worker', what === ALL ? 'created deleted expired id-changed signed-in' : 'created');
    for (let i = 0; i < 2 * partitions; i++) expect(await isRecorded()).toBe(true);
    await eventually(() => expect(heard).toEqual(Array.from({ length: 2 * partitions }, () => 'created')));
  });

  it.each([CREATED, ALL, BROADCAST])('is handled by %s as soon as the application has started', async (what) => {
    await start(NOTHING, { group: 'web' });
    await hasTold('web', '');
    await start(what);
    for (let i = 0; i < 2 * partitions; i++) await store.create();
    await eventually(() => expect(heard).toEqual(Array.from({ length: 2 * partitions }, () => 'created')));
  });

  it('is recorded while an instance of the group wants it, whichever joins last', async () => {
    await start(CREATED);
    await hasTold('default', 'created');
    await start(ENDS);
    await start(NOTHING);
    await eventually(() => expect(EventInstance.log.matching(/has other handlers/)).not.toEqual([]));
    await hasTold('default', 'deleted created');
  });

  it('is recorded for a group that was created for later, until it is removed', async () => {
    const groups = (await start(NOTHING)).module.get(SessionEventGroups, { strict: false });
    await hasTold('default', '');
    expect(await isRecorded()).toBe(false);
    await groups.create('later');
    expect(await isRecorded()).toBe(true);
    await groups.remove('later');
    expect(await isRecorded()).toBe(false);
  });

  it('is recorded as long as the process that would handle it has not told otherwise', async () => {
    await start(NOTHING, { consume: false });
    expect(await isRecorded()).toBe(true);
  });

  it('is recorded again as soon as a group has noticed that Redis lost its data', async () => {
    await start(CREATED);
    await hasTold('default', 'created');
    await store.client.flushall();
    await start(NOTHING, { group: 'web' });
    await hasTold('default', 'created');
    expect(await isRecorded()).toBe(true);
  });

  it('is recorded again as soon as Redis has come back with data in which the group does not want it', async () => {
    await start(ENDS);
    await hasTold('default', 'deleted');
    await Promise.all(instances.splice(0).map((instance) => instance.stop()));
    await store.client.save();
    await start(CREATED);
    await hasTold('default', 'created');
    await store.server.kill();
    await store.server.restart();
    await hasTold('default', 'created');
    expect(await isRecorded()).toBe(true);
  });

  it('is not recorded for an application without handlers when Redis has lost its data, either', async () => {
    await start(NOTHING);
    await hasTold('default', '');
    await store.client.flushall();
    await store.client.save();
    await store.server.kill();
    await store.server.restart();
    await hasTold('default', '');
    expect(await isRecorded()).toBe(false);
  });

  const losses: [string, () => Promise<unknown>][] = [
    ['was restarted', () => store.server.kill().then(() => store.server.restart())],
  ];
  // Several partitions are not read while nothing signals events.
  if (partitions === 1) losses.push(['was emptied', () => store.client.flushall()]);

  it.each(losses)('is recorded again for broadcast handlers as soon as Redis %s', async (_, loseData) => {
    await start(ENDS, { group: 'web' });
    await hasTold('web', 'deleted');
    await start(BROADCAST, {}, store.server.url, { wishRenewal: 3_600_000 });
    for (let i = 0; i < 4 * partitions; i++) await store.create();
    await eventually(() => expect(heard).toHaveLength(4 * partitions));
    await loseData();
    await eventually(async () => {
      const wishes = store.partitions.all.map((keys) => store.client.exists(keys.broadcastWanted('created')));
      expect(await Promise.all(wishes)).not.toContain(0);
    });
    expect(await isRecorded()).toBe(true);
  });

  it.each([
    ['when it was not recorded for them', async () => undefined],
    [
      'also when a partition cannot be read at that time',
      (keys: SessionKeys) => store.client.set(keys.thinned, 'planted'),
    ],
  ])('is reported as a gap to broadcast handlers %s', async (_, disturb) => {
    const proxy = await TcpProxy.start({ port: store.server.port });
    try {
      await start(NOTHING, { group: 'web' });
      await hasTold('web', '');
      await start(BROADCAST, {}, `redis://127.0.0.1:${proxy.port}`);
      await hasTold('default', '');
      proxy.refuse();
      proxy.cut();
      // As when the outage was longer than the wish of an ended instance lasts.
      for (const keys of store.partitions.all) {
        expect(await store.client.del(keys.broadcastWanted('created'))).toBe(1);
      }
      expect(await isRecorded()).toBe(false);
      const last = store.partitions.all.at(-1)!;
      await disturb(last);
      await proxy.accept();
      await eventually(async () => expect(await store.client.exists(last.broadcastWanted('created'))).toBe(1));
      await store.client.del(last.thinned);
      await eventually(() => expect(heard).toEqual(['gap']));
      expect(await isRecorded()).toBe(true);
      await eventually(() => expect(heard).toEqual(['gap', 'created']));
    } finally {
      await Promise.all(instances.splice(0).map((instance) => instance.stop()));
      await proxy.stop();
    }
  });
});
