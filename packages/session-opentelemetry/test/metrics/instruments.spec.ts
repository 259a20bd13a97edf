import { randomBytes } from 'node:crypto';
import type { Abstract } from '@nestjs/common';
import { Sessions, SessionRepository } from '@nest-session/core';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually, TestSessionModule } from '@nest-session/testing';
import { Sdk } from '../support/sdk.js';
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

const OF_STORE = { 'nest_session.namespace': '' };
const NOBODY = 'x'.repeat(43);

/** Waits until exactly these series of a metric have these values. */
async function expectSeries(name: string, wanted: readonly (readonly [object, number])[]): Promise<void> {
  await eventually(async () => {
    const series = await sdk.series(name);
    const sorted = (all: readonly (readonly [object, number])[]) => all.map((each) => JSON.stringify(each)).sort();
    const told = series.map(({ attributes, value }) => [attributes, value] as const);
    expect({ name, series: sorted(told) }).toEqual({
      name,
      series: sorted(wanted.map(([attributes, value]) => [{ ...OF_STORE, ...attributes }, value] as const)),
    });
  });
}

const operation = (name: string, outcome: string) => ({
  'nest_session.operation': name,
  'nest_session.outcome': outcome,
});

it('nest_session.operation.duration has each operation with its outcome', async () => {
  const shop = await ShopApp.start({ store: [TestSessionModule.forRoot()] });
  const [sessions, repository] = [of(shop, Sessions), of(shop, SessionRepository)];
  const agent = await shop.visit();
  await agent.post('/cart/pear');
  await agent.post('/sign-in/ann');
  await shop.clock.advance('2m');
  await agent.get('/cart');
  await sessions.count('ann');
  for await (const { id } of sessions.ofPrincipal('ann')) expect(id).toHaveLength(43);
  await repository.deleteById(NOBODY);
  await sessions.endAll('nobody');
  await agent.post('/sign-out');
  await repository.findById(NOBODY);
  await expectSeries('nest_session.operation.duration', [
    [operation('load', 'found'), 4],
    [operation('load', 'none'), 1],
    [operation('create', 'saved'), 1],
    [operation('update', 'saved'), 1],
    [operation('change_id', 'saved'), 1],
    [operation('touch', 'saved'), 1],
    [operation('count', 'found'), 1],
    [operation('list', 'found'), 1],
    [operation('end_all', 'saved'), 1],
    [operation('delete', 'gone'), 1],
    [operation('delete', 'saved'), 1],
  ]);
  for (const { sum } of await sdk.series('nest_session.operation.duration')) {
    expect(sum).toBeGreaterThan(0);
    expect(sum).toBeLessThan(60);
  }
});

it('nest_session.sessions.created counts new sessions, and nest_session.session.size measures loaded ones', async () => {
  const shop = await ShopApp.start();
  await expectSeries('nest_session.sessions.created', []);
  const agent = await shop.visit('a'.repeat(300));
  await shop.visit();
  await expectSeries('nest_session.sessions.created', [[{}, 2]]);
  await agent.get('/cart');
  const [size] = await sdk.series('nest_session.session.size');
  expect(size).toEqual({ attributes: OF_STORE, value: 1, sum: `items["${'a'.repeat(300)}"]`.length });
});

it('nest_session.session.size measures bytes, also of a session that holds nothing any more', async () => {
  const repository = of(await ShopApp.start(), SessionRepository);
  const session = repository.createSession();
  session.setAttribute('items', '中中');
  await session.save();
  const found = (await repository.findById(session.id))!;
  found.removeAttribute('items');
  await found.save();
  expect((await repository.findById(session.id))!.attributeNames).toEqual([]);
  const [size] = await sdk.series('nest_session.session.size');
  expect(size).toEqual({ attributes: OF_STORE, value: 2, sum: Buffer.byteLength('items"中中"') });
});

it('nest_session.sessions.ended tells why sessions ended', async () => {
  const session = { maxSessions: { perPrincipal: 1 }, timeout: '30m' };
  const shop = await ShopApp.start({ session, store: [TestSessionModule.forRoot()], handlers: false });
  const sessions = of(shop, Sessions);
  const ended = async (reason: string) =>
    eventually(async () =>
      expect(await sdk.value('nest_session.sessions.ended', { ...OF_STORE, 'nest_session.end.reason': reason })).toBe(
        1,
      ),
    );
  await (await shop.visit()).post('/sign-out');
  await ended('sign_out');
  await (await shop.visit()).post('/invalidate');
  await ended('invalidated');
  await (await shop.visit()).post('/sign-in/bob');
  await sessions.endAll('bob');
  await ended('revoked');
  await (await shop.visit()).post('/sign-in/ann');
  const ann = await shop.visit();
  await ann.post('/sign-in/ann');
  await ended('limit');
  await sessions.endEverySession();
  await ended('epoch');
  await (await shop.visit()).post('/sign-in/carl', { seconds: 600 });
  await shop.clock.advance('11m');
  await ended('absolute');
  await (await shop.visit()).post('/sign-in/carl', { seconds: 86_400 });
  await shop.clock.advance('31m');
  await ended('idle');
  expect(await sdk.series('nest_session.sessions.ended')).toHaveLength(7);
});

it.each([
  { seconds: 600, idle: 1800, after: '11m', reason: 'absolute' },
  { seconds: 600, idle: 600, after: '11m', reason: 'absolute' },
  { seconds: 600, idle: -1, after: '11m', reason: 'absolute' },
  { seconds: 1800, idle: 600, after: '11m', reason: 'idle' },
  { seconds: -1, idle: 600, after: '11m', reason: 'idle' },
] as const)(
  'nest_session.sessions.ended tells which timeout ended a session: %j',
  async ({ after, reason, ...timeouts }) => {
    const shop = await ShopApp.start({ store: [TestSessionModule.forRoot()], handlers: false });
    await (await shop.visit()).post('/sign-in/carl', timeouts);
    await shop.clock.advance(after);
    await expectSeries('nest_session.sessions.ended', [[{ 'nest_session.end.reason': reason }, 1]]);
  },
);

it('nest_session.event.process.duration and .delay have each handler, but not the one that counts ends', async () => {
  const shop = await ShopApp.start();
  shop.nest.get(Mails).failures = 1;
  await (await shop.visit()).post('/sign-out');
  await shop.visit();
  const [onCreated, hear] = ['Mails.onCreated', 'Mails.hear'].map((name) => ({ 'nest_session.handler': name }));
  const [created, deleted] = ['created', 'deleted'].map((type) => ({ 'nest_session.event.type': type }));
  await expectSeries('nest_session.event.process.duration', [
    [{ ...created, ...onCreated, 'error.type': 'HttpException' }, 1],
    [{ ...created, ...onCreated }, 1],
    [{ ...created, ...hear }, 2],
    [{ ...deleted, ...hear }, 1],
  ]);
  // Each of its two handlers is called once with each of the two creations.
  await expectSeries('nest_session.event.delay', [
    [created!, 4],
    [deleted!, 1],
  ]);
  await expectSeries('nest_session.sessions.ended', [[{ 'nest_session.end.reason': 'sign_out' }, 1]]);
});

it('a security event that is counted is logged as without the module', async () => {
  const shop = await ShopApp.start({ session: { cookie: { signingKeys: [randomBytes(32).toString('base64url')] } } });
  await shop.agent().get('/cart', { headers: { cookie: `SESSION=${NOBODY}` } });
  await expectSeries('nest_session.security.events', [[{ 'nest_session.security.kind': 'badly-signed-token' }, 1]]);
  expect(shop.log.lines.filter((line) => line.includes('of a request was ignored'))).toHaveLength(1);
});

it('nest_session.security.events counts those that one event stands for', async () => {
  const shop = await ShopApp.start();
  const headers = { cookie: `SESSION=${NOBODY}` };
  for (let i = 0; i < 5; i++) await shop.agent().get('/cart', { headers });
  await shop.agent().get('/cart', { headers: { cookie: 'SESSION=short' } });
  await expectSeries('nest_session.security.events', [
    [{ 'nest_session.security.kind': 'unknown-token' }, 5],
    [{ 'nest_session.security.kind': 'malformed-token' }, 1],
  ]);
});

describe('the option semanticMetrics', () => {
  const names = ['messaging.process.duration', 'messaging.client.consumed.messages'];

  it('adds the metrics of messaging', async () => {
    const shop = await ShopApp.start({ telemetry: { semanticMetrics: true } });
    shop.nest.get(Mails).failures = 1;
    await shop.visit();
    const attributes = {
      'messaging.operation.name': 'process',
      'messaging.system': 'nest_session',
      'messaging.destination.name': 'events',
    };
    for (const name of names) {
      await eventually(async () =>
        expect((await sdk.series(name)).map((each) => [each.attributes, each.value])).toEqual([
          [attributes, 1],
          [{ ...attributes, 'error.type': 'HttpException' }, 1],
        ]),
      );
    }
  });

  it('adds none by default', async () => {
    const shop = await ShopApp.start();
    await shop.visit();
    await eventually(async () => expect(await sdk.series('nest_session.event.delay')).not.toEqual([]));
    for (const name of names) expect(await sdk.series(name)).toEqual([]);
  });
});

function of<T>(shop: ShopApp, token: Abstract<T>): T {
  return shop.nest.get<T>(token, { strict: false });
}
