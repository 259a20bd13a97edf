import { tracingChannel } from 'node:diagnostics_channel';
import { Global, Injectable, Logger, Module } from '@nestjs/common';
import { jest } from '@jest/globals';
import { Test } from '@nestjs/testing';
import { MapSessionRepository, OnSessionEvent, SessionCreatedEvent, SessionStoreError } from '../../src/index.js';
import { SESSION_TELEMETRY, SessionIds, type SessionTelemetry } from '../../src/internal.js';
import { SessionEventDispatcher } from '../../src/store.js';
import { SessionEventModule } from '../../src/events/session-event.module.js';
import { JsonAttributeSerializer } from '../../src/session/json-attribute.serializer.js';
import { SessionSnapshot } from '../../src/session/session-snapshot.js';
import { loadChannel, saveChannel, type SessionChannels } from '../../src/telemetry.js';

type Name = keyof SessionChannels;

/** What the channels tell while somebody listens: each context as it was at the end, and the stages of its call. */
async function toldBy<N extends Name>(
  name: N,
  step: () => Promise<unknown>,
): Promise<(SessionChannels[N] & { stages: string[] })[]> {
  const told = new Map<object, string[]>();
  const stage = (what: string) => (context: object) => void told.set(context, [...(told.get(context) ?? []), what]);
  const [start, end, error] = [stage('start'), stage('end'), stage('error')];
  const subscribers = { start, end, asyncStart: stage('asyncStart'), asyncEnd: stage('asyncEnd'), error };
  const channel = tracingChannel<N, SessionChannels[N]>(name);
  channel.subscribe(subscribers);
  try {
    await step();
  } finally {
    channel.unsubscribe(subscribers);
  }
  return [...told].map(([context, stages]) => ({ ...(context as SessionChannels[N]), stages }));
}

const STAGES = ['start', 'end', 'asyncStart', 'asyncEnd'];

describe('the channels of a repository', () => {
  const repository = new MapSessionRepository({ namespace: 'shop' });

  async function stored(name = 'ann') {
    const session = repository.createSession();
    session.setAttribute('cart', ['apple']);
    session.signIn(name);
    await session.save();
    return session;
  }

  it('tell of each load, with the id and the size, and no value', async () => {
    const { id } = await stored();
    const told = await toldBy('nest-session:load', async () => {
      await repository.findById(id);
      await repository.findById('x'.repeat(43));
      await repository.findByIds([id, 'x'.repeat(43)]);
    });
    const load = { operation: 'load', namespace: 'shop', stages: STAGES };
    expect(told).toMatchObject([
      { ...load, sessionId: id, found: 1, size: expect.any(Number) },
      { ...load, sessionId: 'x'.repeat(43), found: 0, size: 0 },
      { ...load, sessionId: undefined, found: 1 },
    ]);
    expect(told[0]!.size).toBeGreaterThan('cart["apple"]'.length);
    expect(JSON.stringify(told)).not.toMatch(/apple|ann/);
  });

  it('tell of what indexes list and count', async () => {
    await stored('bob');
    const told = await toldBy('nest-session:load', async () => {
      await repository.findByPrincipalName('bob');
      for await (const _ of repository.listByIndex('nobody', 'x')) throw new Error('Nobody is listed there');
      for await (const _ of repository.listByIndex(PRINCIPAL, 'bob')) break;
      await repository.countByIndex(PRINCIPAL, 'bob');
    });
    expect(told.map(({ operation, found }) => [operation, found])).toEqual([
      ['list', 1],
      ['list', 0],
      ['list', 1],
      ['count', 1],
    ]);
    expect(JSON.stringify(told)).not.toContain('bob');
  });

  it('tell of each kind of save, with its outcome', async () => {
    const told = await toldBy('nest-session:save', async () => {
      const session = await stored();
      session.setAttribute('cart', ['pear']);
      await session.save();
      await session.updateAttribute<string[]>('cart', (cart = []) => [...cart, 'fig']);
      session.changeSessionId();
      await session.save();
      await repository.touch(session);
      await repository.deleteById(session.id);
      await repository.deleteById(session.id);
      await repository.deleteByIndex(PRINCIPAL, 'ann');
      await repository.endEverySession();
    });
    expect(told.map(({ operation, outcome }) => `${operation} ${outcome}`)).toEqual([
      'create created',
      'save saved',
      'update saved',
      'change_id saved',
      'touch touched',
      'delete deleted',
      'delete gone',
      'end_all ended',
      'end_all ended',
    ]);
    for (const { namespace, stages } of told) expect([namespace, stages]).toEqual(['shop', STAGES]);
    expect(JSON.stringify(told)).not.toMatch(/pear|fig|ann/);
  });

  it('tell of a failure as the SessionStoreError that the caller gets', async () => {
    const failing = new (class extends MapSessionRepository {
      protected override async load(): Promise<never> {
        throw new Error('quotes a secret');
      }
    })();
    const errors: unknown[] = [];
    const told = await toldBy('nest-session:load', () =>
      failing.findById('x'.repeat(43)).catch((error: unknown) => errors.push(error)),
    );
    expect(errors).toEqual([expect.any(SessionStoreError)]);
    expect(told).toMatchObject([{ error: errors[0], stages: ['start', 'end', 'error', 'asyncStart', 'asyncEnd'] }]);
  });

  it('show a fingerprint of an id that is a token', async () => {
    const ids = new SessionIds(undefined, 'plain');
    const plain = new MapSessionRepository({ ids });
    const session = plain.createSession();
    session.setAttribute('a', 1);
    const told = await toldBy('nest-session:save', () => session.save());
    expect(told).toMatchObject([{ sessionId: expect.stringMatching(/^sha256:/), namespace: '' }]);
    expect(JSON.stringify(told)).not.toContain(session.id);
  });

  it('are not told of a call without a subscriber', async () => {
    const traces = [loadChannel, saveChannel].map((channel) => jest.spyOn(channel, 'tracePromise'));
    const visit = async () => repository.findById((await stored()).id);
    await visit();
    for (const trace of traces) expect(trace).not.toHaveBeenCalled();
    await toldBy('nest-session:load', () => toldBy('nest-session:save', visit));
    for (const trace of traces) expect(trace).toHaveBeenCalledTimes(1);
  });
});

describe('the channel of event handlers', () => {
  jest.spyOn(Logger.prototype, 'error').mockImplementation(() => undefined);
  afterAll(() => jest.restoreAllMocks());

  @Injectable()
  class Carts {
    fails = false;

    @OnSessionEvent(SessionCreatedEvent)
    async onCreated() {
      calls.push('handler');
      if (this.fails) throw new Error('on purpose');
    }
  }

  const calls: string[] = [];
  const session = SessionSnapshot.empty('s', new JsonAttributeSerializer());
  const created = new SessionCreatedEvent({ sessionId: 's', at: 7, session, attempt: 2 });
  beforeEach(() => void (calls.length = 0));

  async function dispatch(runHandler?: SessionTelemetry['runHandler'], fails = false) {
    const telemetry = runHandler && { runHandler };
    @Global()
    @Module({ providers: [{ provide: SESSION_TELEMETRY, useValue: telemetry }], exports: [SESSION_TELEMETRY] })
    class TelemetryModule {}
    const imports = telemetry ? [TelemetryModule, SessionEventModule] : [SessionEventModule];
    const module = await Test.createTestingModule({ imports, providers: [Carts] }).compile();
    await module.init();
    module.get(Carts).fails = fails;
    try {
      await module.get(SessionEventDispatcher).dispatch(created);
    } finally {
      await module.close();
    }
  }

  it('tells of each call of a handler, with the name of the event and the attempt', async () => {
    const told = await toldBy('nest-session:event', () => dispatch());
    const event = { type: 'created', eventId: 'created-s', at: 7, attempt: 2, broadcast: false };
    expect(told).toEqual([{ handler: 'Carts.onCreated', ...event, result: undefined, stages: STAGES }]);
  });

  it('tells what a handler threw', async () => {
    const told = await toldBy('nest-session:event', () => dispatch(undefined, true).catch(() => undefined));
    expect(told).toMatchObject([{ error: new Error('on purpose'), attempt: 2 }]);
  });

  it('lets the telemetry set the context of the call', async () => {
    await dispatch(async (run, context) => {
      calls.push('before', context.handler);
      await run();
      calls.push('after');
    });
    expect(calls).toEqual(['before', 'Carts.onCreated', 'handler', 'after']);
  });
});

const PRINCIPAL = 'principal';
