import { Injectable, type INestApplicationContext } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { deadline, DeadlineModule, Deadlines, OnDeadline } from '@nest-session/deadlines';
import { RedisDeadlineModule } from '@nest-session/deadlines/redis';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually, RedisServer, TestClock, TestDeadlineModule } from '@nest-session/testing';
import { type Attributes, context, SpanKind, trace } from '@opentelemetry/api';
import { SessionTelemetryModule } from '../../src/index.js';
import { Sdk } from '../support/sdk.js';

LeakGuard.install();

const order = deadline<string>('order');

@Injectable()
class Orders {
  failures = 0;

  @OnDeadline(order)
  async unpaid() {
    await trace.getTracer('orders').startActiveSpan('cancel order', async (span) => span.end());
    if (this.failures-- > 0) throw new TypeError('secret-of-the-handler');
  }

  @OnDeadline(order, { broadcast: true })
  hear() {
    // It has only to be called.
  }
}

let server: RedisServer;
let sdk: Sdk;
let app: INestApplicationContext | undefined;
beforeAll(async () => {
  server = await RedisServer.start();
});
afterAll(() => server.stop());
beforeEach(() => {
  sdk = Sdk.register();
});
afterEach(async () => {
  server.thaw();
  await app?.close();
  await sdk.stop();
});

/** An application with deadlines alone, in memory or in Redis. */
async function start(store: 'memory' | { readonly namespace: string; readonly attempts?: number }): Promise<Deadlines> {
  class AppModule {}
  const module =
    store === 'memory'
      ? TestDeadlineModule.forRoot()
      : RedisDeadlineModule.forRoot({
          url: server.url,
          namespace: store.namespace,
          commandTimeout: '1s',
          events: { group: 'billing', attempts: store.attempts ?? 2 },
        });
  app = await NestFactory.createApplicationContext(
    {
      module: AppModule,
      imports: [DeadlineModule.forRoot({ maxScheduled: 3 }), module, SessionTelemetryModule.forRoot()],
      providers: [Orders],
    },
    { logger: false, abortOnError: false },
  );
  return app.get(Deadlines);
}

async function expectValue(name: string, attributes: Attributes, value: number): Promise<void> {
  await eventually(async () => expect([name, await sdk.value(name, attributes)]).toEqual([name, value]), {
    timeout: 20_000,
  });
}

const NAMED = { 'nest_session.namespace': '', 'nest_session.deadline.name': 'order' };

it('nest_session.deadline.operation.duration has each call with its outcome', async () => {
  const deadlines = await start('memory');
  const soon = { in: '1h', data: 'a' } as const;
  await deadlines.schedule(order, 'a', soon);
  await deadlines.schedule(order, 'a', soon);
  await deadlines.schedule(order, 'a', { ...soon, ifExists: 'keep' });
  await deadlines.reschedule(order, 'a', { in: '2h' });
  await deadlines.get(order, 'a');
  await deadlines.count(order);
  await deadlines.list(order);
  await deadlines.cancel(order, 'a');
  await deadlines.cancel(order, 'a');
  await deadlines.scheduleMany(order, [
    { key: 'b', ...soon },
    { key: 'c', ...soon },
    { key: 'd', ...soon },
  ]);
  await expect(deadlines.schedule(order, 'e', soon)).rejects.toThrow('maxScheduled');
  const series = await sdk.series('nest_session.deadline.operation.duration');
  const shown = series.map(({ attributes, value }) => {
    const { 'nest_session.operation': operation, 'nest_session.outcome': outcome = '', ...rest } = attributes;
    expect(rest).toEqual(NAMED);
    return `${String(operation)} ${String(outcome)} ${value}`;
  });
  expect(shown.toSorted()).toEqual([
    'cancel cancelled 1',
    'cancel none 1',
    'count  1',
    'get  1',
    'list  1',
    'reschedule moved 1',
    'schedule full 1',
    'schedule kept 1',
    'schedule replaced 1',
    'schedule scheduled 2',
  ]);
  await expectValue(
    'nest_session.security.events',
    { 'nest_session.namespace': '', 'nest_session.security.kind': 'limit-reached' },
    1,
  );
});

it('calls and handlers have spans: a call below the active one, a handler in a trace that links to it', async () => {
  const deadlines = await start({ namespace: 'spans', attempts: 1 });
  app!.get(Orders).failures = 1;
  const request = trace.getTracer('test').startSpan('request');
  await context.with(trace.setSpan(context.active(), request), () =>
    deadlines.schedule(order, 'a', { in: 0, data: 'secret' }),
  );
  request.end();
  await eventually(() => expect(sdk.named('process deadline.order')).toHaveLength(2), { timeout: 20_000 });
  const [call] = sdk.named('nest_session.deadline.schedule');
  const { spanId } = request.spanContext();
  expect(call?.parentSpanContext?.spanId).toBe(spanId);
  const ofBoth = sdk.named('process deadline.order');
  expect(ofBoth.map(({ links }) => links.map(({ context: linked }) => linked.spanId))).toEqual([[spanId], [spanId]]);
  const handler = ofBoth.find(({ attributes }) => attributes['nest_session.handler'] === 'Orders.unpaid')!;
  expect([handler.kind, handler.parentSpanContext]).toEqual([SpanKind.CONSUMER, undefined]);
  expect(handler.attributes).toEqual({
    'nest_session.namespace': 'spans',
    'nest_session.event.type': 'deadline',
    'nest_session.deadline.name': 'order',
    'nest_session.handler': 'Orders.unpaid',
    'messaging.consumer.group.name': 'billing',
    'messaging.operation.name': 'process',
    'messaging.operation.type': 'process',
    'messaging.system': 'nest_session',
    'messaging.destination.name': 'spans:events',
    'error.type': 'TypeError',
  });
  const [child] = sdk.named('cancel order');
  expect(child?.parentSpanContext?.spanId).toBe(handler.spanContext().spanId);
  const all = JSON.stringify(
    sdk.spans.map(({ name, attributes, events, status }) => [name, attributes, events, status]),
  );
  expect(all).not.toMatch(/secret/);
});

it('handlers are measured by the names of their deadlines, with retries and dead letters', async () => {
  const deadlines = await start({ namespace: 'handlers' });
  app!.get(Orders).failures = 2;
  await deadlines.schedule(order, 'a', { in: 0, data: 'a' });
  const ofGroup = { 'nest_session.namespace': 'handlers', 'messaging.consumer.group.name': 'billing' };
  const ofType = { 'nest_session.event.type': 'deadline', 'nest_session.deadline.name': 'order' };
  const ofHandler = { ...ofGroup, 'nest_session.handler': 'Orders.unpaid' };
  await expectValue('nest_session.events.dead_lettered', ofHandler, 1);
  await expectValue('nest_session.events.retried', ofHandler, 1);
  await expectValue('nest_session.event.process.duration', { ...ofHandler, ...ofType, 'error.type': 'TypeError' }, 2);
  await expectValue('nest_session.event.delay', { ...ofGroup, ...ofType }, 1);
  const ofBroadcast = { 'nest_session.namespace': 'handlers', ...ofType };
  await expectValue('nest_session.event.delay', ofBroadcast, 1);
  await expectValue(
    'nest_session.event.process.duration',
    { ...ofBroadcast, 'nest_session.handler': 'Orders.hear' },
    1,
  );
  await expectValue('nest_session.dead_letter.count', ofGroup, 1);
});

it('in memory, handlers are measured, too', async () => {
  const deadlines = await start('memory');
  app!.get(Orders).failures = 10;
  await deadlines.schedule(order, 'a', { in: 0, data: 'a' });
  await app!.get(TestClock, { strict: false }).advance('1h');
  const ofHandler = { 'nest_session.namespace': '', 'nest_session.handler': 'Orders.unpaid' };
  await expectValue('nest_session.events.retried', ofHandler, 9);
  await expectValue('nest_session.events.dead_lettered', ofHandler, 1);
  const ofType = { 'nest_session.event.type': 'deadline', 'nest_session.deadline.name': 'order' };
  await expectValue('nest_session.event.process.duration', { ...ofHandler, ...ofType, 'error.type': 'TypeError' }, 10);
});

it('nest_session.deadline.delay says how late a deadline was noticed, and .count what waits', async () => {
  const deadlines = await start({ namespace: 'late' });
  await deadlines.schedule(order, 'a', { at: Date.now() - 60_000, data: 'a' });
  await deadlines.schedule(order, 'b', { in: '1h', data: 'b' });
  const ofStore = { 'nest_session.namespace': 'late' };
  await expectValue('nest_session.deadline.delay', { ...ofStore, 'nest_session.noticed_by': 'poll' }, 1);
  const [delay] = await sdk.series('nest_session.deadline.delay');
  expect(delay!.sum).toBeGreaterThanOrEqual(0);
  await expectValue('nest_session.deadline.count', { ...ofStore, 'nest_session.deadline.name': 'order' }, 1);
  expect(await sdk.series('nest_session.expiration.delay')).toEqual([]);
  const [sweep] = sdk.named('nest_session.sweep');
  expect(sweep?.attributes).toEqual({ ...ofStore, 'nest_session.noticed_by': 'poll' });
});

it('a call that fails has the class of its error', async () => {
  const deadlines = await start({ namespace: 'frozen' });
  server.freeze();
  await expect(deadlines.cancel(order, 'a')).rejects.toThrow('Redis did not reply');
  server.thaw();
  const attributes = { ...NAMED, 'nest_session.namespace': 'frozen', 'nest_session.operation': 'cancel' };
  await expectValue(
    'nest_session.deadline.operation.duration',
    { ...attributes, 'error.type': 'SessionStoreError' },
    1,
  );
});
