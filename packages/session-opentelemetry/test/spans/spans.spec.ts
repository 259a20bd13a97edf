import { SessionRepository } from '@nest-session/core';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually } from '@nest-session/testing';
import { context, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import { Sdk, textOf } from '../support/sdk.js';
import { closeShops, Mails, ShopApp } from '../support/shop.app.js';

LeakGuard.install();

let sdk: Sdk;
beforeEach(() => {
  sdk = Sdk.register();
});
afterEach(async () => {
  await closeShops();
  await sdk.stop();
});

it('a load and a save are children of the span that is active', async () => {
  const { nest } = await ShopApp.start();
  const repository = nest.get<SessionRepository>(SessionRepository, { strict: false });
  const parent = trace.getTracer('test').startSpan('request');
  await context.with(trace.setSpan(context.active(), parent), async () => {
    const session = repository.createSession();
    session.setAttribute('a', 1);
    await session.save();
    await repository.findById(session.id);
  });
  parent.end();
  const own = sdk.spans.filter(({ name }) => name.startsWith('nest_session.'));
  expect(own.map(({ name, kind, attributes }) => [name, kind, attributes['nest_session.outcome']])).toEqual([
    ['nest_session.create', SpanKind.INTERNAL, 'saved'],
    ['nest_session.load', SpanKind.INTERNAL, 'found'],
  ]);
  for (const { parentSpanContext } of own) expect(parentSpanContext?.spanId).toBe(parent.spanContext().spanId);
});

it('the span of a handler begins a trace, and is the parent of what the handler does', async () => {
  const shop = await ShopApp.start();
  shop.nest.get(Mails).failures = 1;
  await shop.visit();
  await eventually(() => expect(sdk.named('process session.created').length).toBe(2));
  const spans = sdk.named('process session.created');
  const span = spans.find(({ attributes }) => attributes['nest_session.handler'] === 'Mails.onCreated')!;
  expect([span.kind, span.parentSpanContext, span.links]).toEqual([SpanKind.CONSUMER, undefined, []]);
  expect(span.attributes).toEqual({
    'nest_session.namespace': '',
    'nest_session.event.type': 'created',
    'nest_session.handler': 'Mails.onCreated',
    'messaging.operation.name': 'process',
    'messaging.operation.type': 'process',
    'messaging.system': 'nest_session',
    'messaging.destination.name': 'events',
    'error.type': 'HttpException',
  });
  const [child] = sdk.named('send mail');
  expect(child?.parentSpanContext?.spanId).toBe(span.spanContext().spanId);
  expect(child?.spanContext().traceId).toBe(span.spanContext().traceId);
  // What a handler throws may quote anything.
  expect([span.status, span.events]).toEqual([{ code: SpanStatusCode.ERROR }, []]);
});

it('the handler that counts ends has no span', async () => {
  const shop = await ShopApp.start();
  await (await shop.visit()).post('/sign-out');
  await eventually(() => expect(sdk.named('process session.deleted').length).toBe(1));
  const handlers = sdk.spans.map(({ attributes }) => textOf(attributes, 'nest_session.handler'));
  expect([...new Set(handlers)].sort()).toEqual(['Mails.hear', 'Mails.onCreated', 'none']);
});
