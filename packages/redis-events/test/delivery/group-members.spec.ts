import { Controller, Injectable, Module, type Type } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { OnSessionEvent, SessionCreatedEvent, SessionDestroyedEvent, SessionModule } from '@nest-session/core';
import { RedisSessionModule } from '@nest-session/redis';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually } from '@nest-session/testing';
import type { SessionKeys } from '../../../session-redis/src/keys/session-keys.js';
import { App } from '../../../session-redis/test/support/app.fixture.js';
import { EventInstance } from '../../../session-redis/test/support/event-instance.fixture.js';
import { Store } from '../../../session-redis/test/support/store.fixture.js';
import { monitorOf } from '../../../session-redis/test/support/monitor-of.js';

LeakGuard.install();

let store: Store;
let open: { stop(): Promise<void> }[] = [];
beforeAll(async () => {
  store = await Store.open();
});
afterEach(async () => {
  for (const application of open) await application.stop();
  open = [];
  EventInstance.log.lines.length = 0;
  await store.client.flushall();
});
afterAll(() => store.close());

async function opened<T extends { stop(): Promise<void> }>(starting: Promise<T>): Promise<T> {
  const application = await starting;
  open.push(application);
  return application;
}

async function endedBy(web: App): Promise<string> {
  const agent = web.agent();
  const { id } = (await agent.post('/set/cart', { value: ['apple'] })).json<{ id: string }>();
  await agent.post('/logout');
  return id;
}

it('no instance of a group is always the first one to look for what others have left', async () => {
  @Injectable()
  class Handlers {
    @OnSessionEvent(SessionCreatedEvent)
    handle() {}
  }
  // Of one partition, Redis ends waits at ticks of its own.
  const partitioned = await Store.open({ partitions: 2 });
  const [{ events }] = partitioned.partitions.all as [SessionKeys];
  const monitor = await monitorOf(partitioned.client);
  const looks: number[] = [];
  monitor.on('monitor', (time: string, [command, key, ...rest]: string[]) => {
    // A call with more arguments is the claim script.
    if (command === 'xpending' && key === events && rest.length === 1) looks.push(1000 * Number(time));
  });
  try {
    const { client } = partitioned;
    await client.xgroup('CREATE', events, 'default', '0', 'MKSTREAM');
    await client.xadd(events, '*', 'type', 'created', 'session', 's');
    // So that it looks each time.
    await client.xreadgroup('GROUP', 'default', 'other', 'COUNT', 1, 'STREAMS', events, '>');
    const redis = { url: partitioned.server.url, partitions: 2 };
    await opened(EventInstance.start({ redis, providers: [Handlers], pace: { pollInterval: 200 } }));
    await eventually(() => expect(looks.length).toBeGreaterThan(20));
    const waits = looks.slice(1, 21).map((look, i) => look - looks[i]!);
    // 76 ms can be expected, of the 100 between the shortest wait and the longest; less than 35, once in 100,000 runs.
    const [shorter, longer] = [0.1, 0.9].map((share) => waits.toSorted((a, b) => a - b)[waits.length * share]!);
    expect(longer! - shorter!).toBeGreaterThan(35);
  } finally {
    monitor.disconnect();
    await Promise.all(open.splice(0).map((application) => application.stop()));
    await partitioned.close();
  }
});

describe('an application', () => {
  it('that only handles events works beside one that only serves requests', async () => {
    const handled: string[] = [];
    @Injectable()
    class Handlers {
      @OnSessionEvent(SessionDestroyedEvent)
      handle({ sessionId, session }: SessionDestroyedEvent) {
        handled.push(`${sessionId} ${JSON.stringify(session.getAttribute('cart'))}`);
      }
    }
    const redis = { url: store.server.url };
    @Module({ imports: [SessionModule.forRoot(), RedisSessionModule.forRoot(redis)], providers: [Handlers] })
    class WorkerModule {}
    const worker = await NestFactory.createApplicationContext(WorkerModule, { logger: false });
    await opened(Promise.resolve({ stop: () => worker.close() }));
    const web = await opened(App.start({ redis: { ...redis, events: { consume: false } } }));
    const id = await endedBy(web);
    await eventually(() => handled.length > 0);
    expect(handled).toEqual([`${id} ["apple"]`]);
    // The controller has handlers as well.
    expect(web.events.all()).toEqual([]);
    expect(await store.consumers('default')).toHaveLength(1);
  });

  it('tells its group later which handlers it has when that has failed at first', async () => {
    @Injectable()
    class Handlers {
      @OnSessionEvent(SessionCreatedEvent)
      handle() {}
    }
    const { handlers, wanted } = store.keys;
    await store.client.set(handlers, 'foreign');
    await opened(EventInstance.start({ redis: { url: store.server.url }, providers: [Handlers] }));
    const said = () => EventInstance.log.matching(/Events cannot be read, retrying/);
    await eventually(() => expect(said()).toHaveLength(1));
    await store.client.del(handlers);
    await eventually(async () => {
      expect(await store.client.hget(handlers, 'default')).toContain('Handlers.handle');
      expect(await store.client.hget(wanted, 'default')).toBe('created');
    });
    expect(said()).toHaveLength(1);
  });

  it('without handlers leaves the events to instances with handlers', async () => {
    const redis = { url: store.server.url };
    const without = await opened(App.start({ redis, handlers: false }));
    const id = await endedBy(without);
    const withHandlers = await opened(App.start({ redis }));
    await withHandlers.events.next('deleted', id);
    expect(await store.consumers('default')).toHaveLength(1);
  });

  it('can have its handlers on controllers', async () => {
    const handled: string[] = [];
    @Controller('carts')
    class Carts {
      @OnSessionEvent(SessionCreatedEvent)
      @OnSessionEvent(SessionDestroyedEvent)
      remember({ eventName }: SessionCreatedEvent | SessionDestroyedEvent) {
        handled.push(eventName);
      }
    }
    await opened(EventInstance.start({ redis: { url: store.server.url }, controllers: [Carts] }));
    await store.scripts.delete(await store.create({ a: '1' }));
    await eventually(() => handled.length === 2);
    expect(handled).toEqual(['session.created', 'session.deleted']);
  });
});

describe('an instance that joins a group', () => {
  @Injectable()
  class Reminders {
    @OnSessionEvent(SessionDestroyedEvent)
    remind() {}

    @OnSessionEvent(SessionDestroyedEvent)
    audit() {}
  }
  @Injectable()
  class Carts {
    @OnSessionEvent(SessionDestroyedEvent)
    clear() {}
  }
  const join = async (group: string, ...providers: Type[]) => {
    const before = await store.readers();
    await opened(EventInstance.start({ redis: { url: store.server.url, events: { group } }, providers }));
    await eventually(async () => (await store.readers()) === before + 1);
  };
  const warnings = () => EventInstance.log.matching(/^warn Another instance/);

  it('logs once which handlers it and another instance do not share', async () => {
    await join('mail', Reminders);
    expect(warnings()).toEqual([]);
    await join('mail', Carts);
    const difference = 'Only here: Carts.clear; only there: Reminders.audit, Reminders.remind.';
    expect(warnings()).toEqual([expect.stringMatching(`of the group "mail" has other handlers.*${difference}`)]);
  });

  it('logs nothing when the handlers are the same or the groups differ', async () => {
    await join('mail', Reminders, Carts);
    await join('mail', Carts, Reminders);
    await join('audit', Carts);
    expect(warnings()).toEqual([]);
  });
});
