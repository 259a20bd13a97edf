import { Injectable, type Type } from '@nestjs/common';
import { EventEmitterModule, OnEvent } from '@nestjs/event-emitter';
import {
  OnSessionEvent,
  SessionCreatedEvent,
  SessionDeletedEvent,
  SessionDestroyedEvent,
  SessionExpiredEvent,
} from '@nest-session/core';
import { type RedisSessionModuleOptions, SessionEventGroups } from '@nest-session/redis';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually } from '@nest-session/testing';
import { SessionScripts } from '../../src/scripts/session/session.scripts.js';
import { EventInstance } from '../support/event-instance.fixture.js';
import { KEEPING_RULES, MINUTE, Store } from '../support/store.fixture.js';

LeakGuard.install();

let store: Store;
let instances: EventInstance[] = [];
beforeAll(async () => {
  store = await Store.open();
});
afterEach(async () => {
  for (const instance of instances) await instance.stop();
  instances = [];
  await store.client.flushall();
});
afterAll(() => store.close());

type Kind = 'deleted' | 'expired';

interface End {
  readonly kind: Kind;
  /** Ends the session, and resolves to a word that tells whether this call did. */
  readonly end: (id: string) => Promise<unknown>;
  readonly replies: readonly [first: unknown, second: unknown];
}

const claimIn = async (id: string, minute?: string) => {
  await store.runOut(id);
  const claims = await store.scripts.claimExpired(store.keys, [`expires:${id}`], minute);
  return claims.map(({ outcome }) => outcome);
};

/** Each way in which a session ends. */
const ENDS: Record<string, End> = {
  'a deletion': {
    kind: 'deleted',
    end: async (id) => (await store.scripts.delete(id)).outcome,
    replies: ['deleted', 'gone'],
  },
  'an interval of 0': {
    kind: 'deleted',
    end: async (id) => (await store.save(id, { maxInactiveInterval: 0, attributes: [['cart', '"pear"']] })).outcome,
    replies: ['saved', 'gone'],
  },
  'an absolute timeout that has passed': {
    kind: 'expired',
    end: async (id) => {
      if (await store.isAlive(id)) await store.client.hincrby(store.keys.session(id), 'creationTime', -MINUTE);
      return (await store.save(id, { absoluteTimeout: 60, attributes: [['cart', '"pear"']] })).outcome;
    },
    replies: ['saved', 'gone'],
  },
  'the end of all sessions of an index': {
    kind: 'deleted',
    end: async () => (await store.scripts.endListed(store.keys, store.keys.index('principal', 'ann'), 10)).ended,
    replies: [1, 0],
  },
  'the end of every session': {
    kind: 'deleted',
    end: async (id) => {
      await store.scripts.raiseEpoch(store.keys);
      return store.scripts.endOlder(store.keys, [id]);
    },
    replies: [1, 0],
  },
  'a sweep': {
    kind: 'expired',
    end: async (id) => claimIn(id, (await store.buckets(id))[0] ?? `${MINUTE}`),
    replies: [['claimed'], ['already']],
  },
  'a key event': { kind: 'expired', end: (id) => claimIn(id), replies: [['claimed'], ['already']] },
};
const names = Object.keys(ENDS);

const open = () => store.create({ cart: '"apple"' }, { principal: 'ann' });
const want = (group: string, ...types: string[]) => store.client.hset(store.keys.wanted, group, types.join(' '));
const hasData = async (id: string) => (await store.client.exists(store.keys.session(id))) === 1;

/** The keys that are left, besides those of events. */
const left = async () => (await store.client.keys('*')).filter((key) => !key.startsWith(store.keys.events));

describe('the data of a session goes at once when nobody wants its end:', () => {
  it.each(names)('%s', async (name) => {
    const { kind, end, replies } = ENDS[name]!;
    const other = kind === 'deleted' ? 'expired' : 'deleted';
    await want('web');
    await want('worker', 'created', 'id-changed', other);
    await store.client.set(store.keys.broadcastWanted(other), '');
    const id = await open();
    expect(await end(id)).toEqual(replies[0]);
    expect(await left()).toEqual(name === 'the end of every session' ? [store.keys.epoch] : []);
    expect(await end(id)).toEqual(replies[1]);
    expect(await store.eventTypes(id)).toEqual(['created', kind]);
    expect(await hasData(id)).toBe(false);
  });

  it('and neither a late save nor a touch brings it back, under its old id neither', async () => {
    await want('web');
    const [id, newId] = [await open(), store.id()];
    expect(await store.save(id, { newId })).toMatchObject({ outcome: 'saved' });
    expect(await store.scripts.delete(id)).toEqual({ outcome: 'forwarded' });
    for (const late of [id, newId]) {
      expect(await store.save(late, { attributes: [['cart', '"pear"']] })).toEqual({ outcome: 'gone' });
      expect(await store.scripts.touch(late)).toEqual({ outcome: 'gone' });
      expect(await store.scripts.delete(late)).toEqual({ outcome: 'gone' });
    }
    expect(await left()).toEqual([store.keys.forwardingMark(id)]);
    expect(await store.eventTypes(newId)).toEqual(['id-changed', 'deleted']);
  });

  it('and an end whose script fails before the data has gone is recorded once', async () => {
    await want('web');
    await store.client.call('ACL', 'SETUSER', 'limited', 'on', 'nopass', '~*', '+@all', '-unlink');
    const limited = store.client.duplicate({ username: 'limited', password: 'x' });
    try {
      const id = await open();
      const [minute] = await store.buckets(id);
      await store.runOut(id);
      const claim = (client = store.client) =>
        new SessionScripts(client, store.partitions, KEEPING_RULES).claimExpired(store.keys, [`expires:${id}`], minute);
      await expect(claim(limited)).rejects.toThrow(/can't run this command|no permissions to run/);
      await store.client.sadd(store.keys.bucket(minute!), `expires:${id}`);
      expect(await claim()).toEqual([{ outcome: 'already' }]);
      expect(await store.eventTypes(id)).toEqual(['expired']);
    } finally {
      limited.disconnect();
    }
  });
});

describe('the data of a session stays when somebody wants its end:', () => {
  const WISHES: Record<string, (kind: Kind) => Promise<unknown>> = {
    'nobody has told what it wants': async () => undefined,
    'one of several groups does': async (kind) => {
      await want('web');
      await want('worker', 'created', kind);
    },
    'only broadcast handlers do': async (kind) => {
      await want('web', 'created');
      await store.client.set(store.keys.broadcastWanted(kind), '');
    },
  };

  it.each(names.flatMap((name) => Object.keys(WISHES).map((wish) => [name, wish])))(
    '%s, and %s',
    async (name, wish) => {
      const { kind, end, replies } = ENDS[name!]!;
      await WISHES[wish!]!(kind);
      const id = await open();
      expect(await end(id)).toEqual(replies[0]);
      expect(await end(id)).toEqual(replies[1]);
      expect(await store.session(id)).toMatchObject({ ended: kind, 'sessionAttr:cart': expect.any(String) });
      expect(await store.client.pttl(store.keys.session(id))).toBeGreaterThan(59 * MINUTE);
      expect(await store.eventTypes(id)).toEqual(expect.arrayContaining([kind]));
    },
  );

  it('a stray key in the place of the wishes', async () => {
    const id = await open();
    await store.client.set(store.keys.wanted, 'planted');
    expect(await store.scripts.delete(id)).toEqual({ outcome: 'deleted' });
    expect(await hasData(id)).toBe(true);
  });
});

describe('with applications', () => {
  const heard: string[] = [];
  afterEach(() => void heard.splice(0));
  const record = ({ type, session, dataLost }: SessionDestroyedEvent) =>
    void heard.push(`${type} ${dataLost ? 'without data' : session.getAttribute<string>('cart')}`);

  @Injectable()
  class Ends {
    @OnSessionEvent(SessionDestroyedEvent)
    end(event: SessionDestroyedEvent) {
      record(event);
    }
  }
  @Injectable()
  class Expiries {
    @OnSessionEvent(SessionExpiredEvent)
    end(event: SessionExpiredEvent) {
      record(event);
    }
  }
  @Injectable()
  class Broadcast {
    @OnSessionEvent(SessionDeletedEvent, { broadcast: true })
    end(event: SessionDeletedEvent) {
      record(event);
    }
  }
  @Injectable()
  class Listeners {
    @OnEvent('session.deleted')
    end(event: SessionDeletedEvent) {
      record(event);
    }
  }
  @Injectable()
  class Creations {
    @OnSessionEvent(SessionCreatedEvent)
    greet() {}
  }

  async function start(providers: Type[], events: RedisSessionModuleOptions['events'] = {}): Promise<EventInstance> {
    const redis = { url: store.server.url, cleanup: { cron: '0 0 0 29 2 *' }, events };
    const imports = [EventEmitterModule.forRoot()];
    const instance = await EventInstance.start({ redis, imports, providers });
    instances.push(instance);
    return instance;
  }

  /** An instance with handlers tells twice: its group is created in between, and then wants all. */
  const hasTold = (group: string, types: string) =>
    eventually(async () => {
      expect(await store.client.hget(store.keys.wanted, group)).toBe(types);
      expect(types === '' || (await store.client.hexists(store.keys.handlers, group)) === 1).toBe(true);
    });

  async function end(): Promise<string> {
    const id = await open();
    await store.scripts.delete(id);
    return id;
  }

  it.each<[string, Type[], string]>([
    ['no handlers', [], ''],
    ['a handler of creations', [Creations], 'created'],
    ['a handler of expiries', [Expiries], 'expired'],
  ])('keeps nothing of a deleted session where there is only %s', async (_, providers, types) => {
    await start(providers);
    await hasTold('default', types);
    expect(await hasData(await end())).toBe(false);
  });

  it.each<[string, Type]>([
    ['a handler', Ends],
    ['a broadcast handler', Broadcast],
  ])('%s gets the data of each session that ends once its application has started', async (_, provider) => {
    await start([], { group: 'web' });
    await hasTold('web', '');
    await start([provider]);
    await end();
    await eventually(() => expect(heard).toEqual(['deleted apple']));
  });

  it('a listener of the EventEmitter gets the data', async () => {
    await start([Listeners]);
    await hasTold('default', 'deleted');
    await end();
    await eventually(() => expect(heard).toEqual(['deleted apple']));
  });

  it('while a deployment adds a handler, it gets the data of each session that ends, and so it does while one removes it', async () => {
    await start([Creations]);
    await hasTold('default', 'created');
    const added = await start([Creations, Ends]);
    await start([Creations]);
    await eventually(() => expect(EventInstance.log.matching(/has other handlers/)).not.toEqual([]));
    for (let i = 0; i < 10; i++) expect(await hasData(await end())).toBe(true);
    await added.stop();
    instances = instances.filter((instance) => instance !== added);
    // The others tell what they want again and again, until they know of no other handlers.
    await hasTold('default', 'created');
    expect(await hasData(await end())).toBe(false);
  });

  it('a group that is added later hears of the ends before it without their data, and then with it', async () => {
    const groups = (await start([], { group: 'web' })).module.get(SessionEventGroups);
    await hasTold('web', '');
    await end();
    await groups.create('later');
    await end();
    await start([Ends], { group: 'later', concurrency: 1 });
    await end();
    await eventually(() => expect(heard).toHaveLength(3));
    expect(heard).toEqual(['deleted without data', 'deleted apple', 'deleted apple']);
  });
});
