import { basename } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { Logger } from '@nestjs/common';
import { type Session, SessionStoreError } from '@nest-session/core';
import { RedisSessionRepository } from '@nest-session/redis';
import { LeakGuard, TcpProxy } from '@nest-session/test-infrastructure';
import { eventually, type HttpAgent, type HttpResponse } from '@nest-session/testing';
import type { Redis } from 'ioredis';
import { createConnections } from '../../../redis-events/src/connection/redis-connections.js';
import { RequestConnection } from '../../../redis-events/src/connection/request.connection.js';
import { SingleNode } from '../../../redis-events/src/connection/redis-nodes.js';
import { ALL_SCRIPTS } from '../../../redis-events/test/support/all.scripts.js';
import { resolveRedisSessionOptions } from '../../src/configuration/redis-session.options.js';
import { App } from '../support/app.fixture.js';
import { CALLS_OF_REQUESTS, CALLS_OF_SERVICES, type ScriptCall } from '../support/script.calls.js';
import { dump } from '../support/store.dump.js';
import { type SteppableStore, Store } from '../support/store.fixture.js';

LeakGuard.install();
Logger.overrideLogger(false);

let store: SteppableStore;
let proxy: TcpProxy;
/** The connections of requests and background services without timeouts, so that only the lost reply fails a call. */
let request: RequestConnection;
let requestClient: Redis;
let serviceClient: Redis;
beforeAll(async () => {
  store = await Store.openSteppable();
  // The repeated calls belong to the same minute as the rehearsal.
  await store.server.stopClock();
  proxy = await TcpProxy.start({ port: store.server.port });
  const made = createConnections(resolveRedisSessionOptions({ url: proxy.url }));
  const patient = { lazyConnect: false, commandTimeout: undefined, socketTimeout: undefined, disconnectTimeout: 10 };
  requestClient = made.request
    .of(undefined)!
    .duplicate(patient)
    .on('error', () => undefined);
  serviceClient = made.background.duplicate(patient).on('error', () => undefined);
  request = new RequestConnection(new SingleNode(requestClient), { commandTimeout: 60_000 });
});
afterAll(async () => {
  requestClient.disconnect();
  serviceClient.disconnect();
  await proxy.stop();
  await store.close();
});

it('the calls of this test cover every script', () => {
  const sent = [...CALLS_OF_REQUESTS, ...CALLS_OF_SERVICES].map(({ script }) => script);
  // Each call of record-event adds an event: its caller gets the error, and nothing sends it again.
  expect(new Set([...sent, 'record-event'])).toEqual(new Set(ALL_SCRIPTS.map((name) => basename(name))));
});

/** Puts the store into the state before a call; resolves to this state and to that after an undisturbed call. */
async function rehearse({
  prepare,
  send,
  reply,
  reads = false,
}: ScriptCall): Promise<{ before: string[]; executed: string[] }> {
  await store.client.flushall();
  await prepare(store);
  const before = await dump(store.client);
  expect(await send(store.client, store)).toEqual(reply);
  const executed = await dump(store.client);
  await store.client.flushall();
  await prepare(store);
  expect(await dump(store.client)).toEqual(before);
  expect(isDeepStrictEqual(executed, before)).toBe(reads);
  return { before, executed };
}

type Outcome = { value: unknown } | { error: unknown };
const outcomeOf = (promise: Promise<unknown>): Promise<Outcome> =>
  promise.then(
    (value) => ({ value }),
    (error: unknown) => ({ error }),
  );

const FAULTS = [
  {
    fault: 'the connection is cut before Redis gets the call',
    isExecuted: false,
    suffer: async (send: () => Promise<unknown>) => {
      proxy.hold('request', 'nest:session');
      const outcome = outcomeOf(send());
      await proxy.untilHeld('request');
      proxy.cut();
      proxy.release();
      return outcome;
    },
  },
  {
    fault: 'the connection is cut after Redis has executed the call',
    isExecuted: true,
    suffer: async (send: () => Promise<unknown>) => {
      proxy.hold('reply', 'nest:session');
      const outcome = outcomeOf(send());
      await proxy.untilHeld('reply');
      proxy.cut();
      proxy.release();
      return outcome;
    },
  },
  {
    fault: 'the reply is lost',
    isExecuted: true,
    suffer: async (send: () => Promise<unknown>) => {
      const dropped = proxy.dropNextReply('nest:session');
      const outcome = outcomeOf(send());
      await dropped;
      return outcome;
    },
  },
];

/** Waits until the connection works again: commands that it sends again come before the ping. */
async function isBack(client: Redis): Promise<void> {
  await eventually(() => client.status === 'ready');
  await client.ping();
}

describe.each(FAULTS)('when $fault', ({ isExecuted, suffer }) => {
  beforeEach(async () => {
    await Promise.all([requestClient, serviceClient].map(isBack));
  });

  it.each(CALLS_OF_REQUESTS)('a request gets an error, $script: $what', async (call) => {
    const { before, executed } = await rehearse(call);
    const outcome = await suffer(() => request.run((client) => call.send(client, store)));
    expect(outcome).toEqual({ error: expect.any(SessionStoreError) });
    expect(await dump(store.client)).toEqual(isExecuted ? executed : before);
    // The call is not sent after the reconnection either.
    await isBack(requestClient);
    expect(await dump(store.client)).toEqual(isExecuted ? executed : before);
  });

  it.each(CALLS_OF_SERVICES)('a background call gets its reply and has one effect, $script: $what', async (call) => {
    const { executed } = await rehearse(call);
    const outcome = await suffer(() => call.send(serviceClient, store));
    expect(outcome).toEqual({ value: call.reply });
    expect(await dump(store.client)).toEqual(executed);
  });
});

it('a script missing from the cache of Redis is sent in full, and not again when that has no reply', async () => {
  const call = CALLS_OF_REQUESTS.find(({ what }) => what === 'a new id')!;
  const { executed } = await rehearse(call);
  await isBack(requestClient);
  await store.client.script('FLUSH');
  const dropped = proxy.dropNextReply('#!lua');
  const outcome = await outcomeOf(request.run((client) => call.send(client, store)));
  await dropped;
  expect(outcome).toEqual({ error: expect.any(SessionStoreError) });
  await isBack(requestClient);
  expect(await dump(store.client)).toEqual(executed);
});

describe('an application whose save has no reply', () => {
  let app: App;
  let other: App;
  beforeAll(async () => {
    await store.client.flushall();
    // Shorter than the wait of LeakGuard: ioredis keeps the timer of a command that fails with its connection.
    const redis = { url: proxy.url, notifications: 'off', commandTimeout: '3s' } as const;
    app = await App.start({ redis, handlers: false });
    other = await App.start({ redis: { url: store.server.url, notifications: 'off' }, handlers: false });
  });
  afterAll(async () => {
    await app.stop();
    await other.stop();
  });

  /** Somebody wants all events: the applications have no handlers, and say so again after each lost connection. */
  async function emptyStore(): Promise<void> {
    await store.client.flushall();
    await store.client.hset(store.keys.wanted, 'somebody', 'created id-changed deleted');
  }

  /** Sends a request whose script Redis executes, and drops the reply. */
  async function withoutReply(agent: HttpAgent, path: string, body?: object): Promise<HttpResponse> {
    // Of the commands of a request, only scripts contain the name of the events stream.
    const { events, prefix } = store.keys;
    const dropped = proxy.dropNextReply((burst) => burst.includes(events) && burst.includes(`${prefix}sessions:`));
    const response = agent.post(path, body);
    await dropped;
    return response;
  }

  it('responds 503 and does not overwrite a later save of another instance', async () => {
    const agent = app.agent();
    const { id: sessionId } = (await agent.post('/set/a', { value: 'first' })).json() as { id: string };
    const failed = await withoutReply(agent, '/set/a', { value: 'second' });
    expect([failed.status, failed.setCookies]).toEqual([503, []]);
    expect((await store.session(sessionId))['sessionAttr:a']).toBe('"second"');

    const cookie = `SESSION=${agent.cookie('SESSION')}`;
    const third = await other.agent().post('/set/a', { value: 'third' }, { headers: { cookie } });
    expect(third.status).toBe(201);
    // The connection that lost the reply is back, and has sent any command that it kept.
    expect((await agent.post('/set/b', { value: 1 })).status).toBe(201);
    expect((await agent.get('/read')).json()).toMatchObject({ attributes: { a: 'third', b: 1 } });
  });

  describe('and that saves again in the same request', () => {
    const repository = () => app.nest.get(RedisSessionRepository, { strict: false });
    /** The request does not learn whether Redis executed its first save. */
    const failToSave = async (session: Session, isExecuted: boolean) => {
      const direction = isExecuted ? 'reply' : 'request';
      proxy.hold(direction, `${store.keys.prefix}sessions:`);
      const failed = expect(session.save()).rejects.toBeInstanceOf(SessionStoreError);
      await proxy.untilHeld(direction);
      proxy.cut();
      proxy.release();
      await failed;
    };

    it.each([true, false])('stores a new session once with all attributes, first save executed: %p', async (had) => {
      await emptyStore();
      const session = repository().createSession();
      session.setAttribute('a', 1);
      await failToSave(session, had);
      session.setAttribute('b', 2);
      expect(await session.save()).toBe('saved');
      expect(await store.session(session.id)).toMatchObject({ 'sessionAttr:a': '1', 'sessionAttr:b': '2' });
      expect(await store.eventTypes(session.id)).toEqual(['created']);
      expect(await store.client.xlen(store.keys.events)).toBe(1);
    });

    it.each([true, false])('changes the id once and stores all attributes, first save executed: %p', async (had) => {
      await emptyStore();
      const session = repository().createSession();
      session.setAttribute('a', 1);
      await session.save();
      session.changeSessionId();
      await failToSave(session, had);
      session.setAttribute('b', 2);
      expect(await session.save()).toBe('saved');
      expect(await store.session(session.id)).toMatchObject({ 'sessionAttr:a': '1', 'sessionAttr:b': '2' });
      expect(await store.eventTypes(session.id)).toEqual(['id-changed']);
      expect(await store.client.xlen(store.keys.events)).toBe(2);
    });
  });

  it.each([
    ['a new session', '/set/a', { value: 1 }, ['created']],
    ['a logout', '/logout', undefined, ['created', 'deleted']],
    ['a counter', '/count', undefined, ['created']],
  ])('responds 503 without a cookie to %s, and records it once', async (_, path, body, recorded) => {
    await emptyStore();
    const agent = app.agent();
    if (path !== '/set/a') await agent.post('/set/count', { value: 0 });
    const response = await withoutReply(agent, path, body);
    expect([response.status, response.setCookies]).toEqual([503, []]);
    await eventually(async () => expect((await app.agent().post('/set/marker', { value: 1 })).status).toBe(201));
    const [[, [, , , first]]] = (await store.client.xrange(store.keys.events, '-', '+', 'COUNT', 1)) as [
      [string, string[]],
    ];
    expect(await store.eventTypes(first!)).toEqual(recorded);
  });
});
