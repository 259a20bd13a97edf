import { SessionRepository } from '@nest-session/core';
import { RedisSessionModule, type RedisSessionModuleOptions, SessionExpirationSweeper } from '@nest-session/redis';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually, RedisServer } from '@nest-session/testing';
import { type Attributes, context, trace } from '@opentelemetry/api';
import { Sdk, textOf } from '../support/sdk.js';
import { closeShops, Mails, ShopApp } from '../support/shop.app.js';

LeakGuard.install();

let server: RedisServer;
let sdk: Sdk;
beforeAll(async () => {
  server = await RedisServer.start();
});
afterAll(() => server.stop());
beforeEach(() => {
  sdk = Sdk.register();
});
afterEach(async () => {
  await closeShops();
  await sdk.stop();
});

let shops = 0;

/** An application whose namespace is new, unless it is given. */
async function start(
  redis: RedisSessionModuleOptions = {},
  session = {},
): Promise<{ shop: ShopApp; namespace: string }> {
  const namespace = redis.namespace ?? `shop${++shops}`;
  const cleanup = { cron: '0 0 0 29 2 *' };
  const module = RedisSessionModule.forRoot({ url: server.url, commandTimeout: '30s', cleanup, ...redis, namespace });
  return { shop: await ShopApp.start({ store: [module], session }), namespace };
}

async function expectValue(name: string, attributes: Attributes, value: number): Promise<void> {
  await eventually(async () => expect([name, await sdk.value(name, attributes)]).toEqual([name, value]), {
    timeout: 20_000,
  });
}

it('two applications in one process do not count what the other does', async () => {
  const [books, music] = [await start(), await start()];
  for (let i = 0; i < 3; i++) await (await books.shop.visit()).post('/sign-out');
  await music.shop.visit();
  const of = ({ namespace }: { namespace: string }) => ({ 'nest_session.namespace': namespace });
  await expectValue('nest_session.sessions.created', of(books), 3);
  await expectValue('nest_session.sessions.created', of(music), 1);
  await expectValue('nest_session.sessions.ended', { ...of(books), 'nest_session.end.reason': 'sign_out' }, 3);
  const creates = sdk
    .named('nest_session.create')
    .map(({ attributes }) => textOf(attributes, 'nest_session.namespace'));
  expect(creates.sort()).toEqual([...Array<string>(3).fill(books.namespace), music.namespace]);
  await eventually(async () => {
    const calls = (await sdk.series('nest_session.event.process.duration')).filter(
      ({ attributes }) => attributes['nest_session.handler'] === 'Mails.onCreated',
    );
    expect(
      calls.map(({ attributes, value }) => `${textOf(attributes, 'nest_session.namespace')} ${value}`).sort(),
    ).toEqual([`${books.namespace} 3`, `${music.namespace} 1`]);
  });
});

it('the span of a handler links to the span that caused its event', async () => {
  const { shop } = await start();
  const repository = shop.nest.get<SessionRepository>(SessionRepository, { strict: false });
  const cause = trace.getTracer('test').startSpan('request');
  const session = repository.createSession();
  session.setAttribute('a', 1);
  await context.with(trace.setSpan(context.active(), cause), () => session.save());
  cause.end();
  await repository.deleteById(session.id);
  const linksOf = (name: string) => sdk.named(name).map(({ links }) => links.map(({ context: { spanId } }) => spanId));
  const { spanId } = cause.spanContext();
  await eventually(() => expect(linksOf('process session.created')).toEqual([[spanId], [spanId]]));
  await eventually(() => expect(linksOf('process session.deleted')).toEqual([[]]));
});

it('nest_session.events.retried and .dead_lettered count what fails', async () => {
  const { shop, namespace } = await start({ events: { attempts: 2, group: 'mailers' } });
  shop.nest.get(Mails).failures = 2;
  await shop.visit();
  const attributes = {
    'nest_session.namespace': namespace,
    'messaging.consumer.group.name': 'mailers',
    'nest_session.handler': 'Mails.onCreated',
  };
  await expectValue('nest_session.events.retried', attributes, 1);
  await expectValue('nest_session.events.dead_lettered', attributes, 1);
  const failed = { ...attributes, 'nest_session.event.type': 'created', 'error.type': 'HttpException' };
  await expectValue('nest_session.event.process.duration', failed, 2);
  const [span] = sdk.named('process session.created').filter(({ status }) => status.code !== 0);
  expect(span?.attributes).toMatchObject({
    'messaging.consumer.group.name': 'mailers',
    'messaging.destination.name': `${namespace}:events`,
  });
});

it('nest_session.request.outages counts requests while Redis does not reply, and the calls have a type of error', async () => {
  const { shop, namespace } = await start({ commandTimeout: '200ms' });
  const agent = await shop.visit();
  server.freeze();
  try {
    expect((await agent.get('/cart')).status).toBe(503);
  } finally {
    server.thaw();
  }
  const ofStore = { 'nest_session.namespace': namespace };
  await expectValue('nest_session.request.outages', { ...ofStore, 'nest_session.outage.policy': 'on-use' }, 1);
  const failed = (await sdk.series('nest_session.operation.duration')).filter(
    ({ attributes }) => attributes['error.type'],
  );
  expect(failed.map(({ attributes, value }) => [attributes, value])).toEqual([
    [{ ...ofStore, 'nest_session.operation': 'load', 'error.type': expect.stringMatching(/^[A-Z]\w+Error$/) }, 1],
  ]);
});

it('nest_session.expiration.delay says how late an end was noticed, and its search has a span', async () => {
  const { shop, namespace } = await start({ notifications: 'off' }, { timeout: '1s' });
  await shop.visit();
  const sweeper = shop.nest.get(SessionExpirationSweeper, { strict: false });
  await eventually(async () => expect((await sweeper.runOnce({ ahead: 60_000 })).claimed).toBe(1), { timeout: 20_000 });
  const attributes = { 'nest_session.namespace': namespace, 'nest_session.noticed_by': 'sweep' };
  await expectValue('nest_session.expiration.delay', attributes, 1);
  expect(sdk.named('nest_session.sweep').map((span) => span.attributes)).toEqual([attributes]);
  await expectValue(
    'nest_session.sessions.ended',
    { 'nest_session.namespace': namespace, 'nest_session.end.reason': 'idle' },
    1,
  );
});
