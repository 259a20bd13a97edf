import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually, HttpAgent, TestSessionModule } from '@nest-session/testing';
import { Sdk } from '../support/sdk.js';
import { closeShops, ShopApp } from '../support/shop.app.js';

LeakGuard.install();

let sdk: Sdk;
let shop: ShopApp;
beforeEach(() => {
  sdk = Sdk.register();
});
afterEach(async () => {
  await closeShops();
  await sdk.stop();
});

async function start(mode: 'report' | 'enforce'): Promise<HttpAgent> {
  const session = { deviceBound: { mode, exclude: ['/cart/excluded'] } };
  shop = await ShopApp.start({ session, store: [TestSessionModule.forRoot()], trustProxy: true });
  return HttpAgent.for(shop.nest, { bindsSessions: true });
}

async function counted(what: string): Promise<Record<string, number>> {
  const series = await sdk.series(`nest_session.device.${what}`);
  return Object.fromEntries(
    series.map(({ attributes: { 'nest_session.outcome': outcome, ...others }, value }) => {
      expect(others).toEqual({ 'nest_session.namespace': '' });
      return [String(outcome), value];
    }),
  );
}

it.each(['report', 'enforce'] as const)('counts what browsers do and what requests prove: mode %s', async (mode) => {
  const browser = await start(mode);
  await browser.get('/cart');
  expect(await counted('requests')).toEqual({});
  await browser.post('/sign-in/ann');
  await browser.get('/cart');
  await shop.clock.advance('11m');
  const thief = browser.fork();
  await browser.get('/cart');
  await thief.get('/cart');
  await thief.get('/cart', { headers: { 'sec-fetch-site': 'cross-site' } });
  // Needs no proof, so it says nothing.
  await thief.post('/cart/excluded');
  await eventually(async () => expect(await counted('registrations')).toEqual({ offered: 1, accepted: 1 }));
  expect(await counted('refreshes')).toEqual({ challenged: 1, accepted: 1 });
  expect(await counted('requests')).toEqual({ proven: 2, missing: 1, 'cross-site': 1 });
});

it('counts signed-in users of browsers that cannot bind', async () => {
  await start('enforce');
  const agent = shop.agent();
  await agent.post('/sign-in/ann');
  await agent.get('/cart');
  await agent.get('/cart');
  expect(await counted('requests')).toEqual({ unbound: 2 });
  expect(await counted('registrations')).toEqual({});
});

it('counts refused registrations and proofs by their reason, and the end of a binding', async () => {
  const browser = await start('enforce');
  const path = `/session/device/register/${'x'.repeat(43)}.${'y'.repeat(43)}`;
  await browser.post(path);
  await browser.post('/session/device/refresh');
  await browser.post('/session/device/refresh', undefined, { headers: { 'sec-secure-session-id': 'z'.repeat(43) } });
  expect(await counted('registrations')).toEqual({ 'unknown-handle': 1 });
  expect(await counted('refreshes')).toEqual({ failed: 1, over: 1 });
  expect(await sdk.page()).not.toMatch(/[\w-]{43}/);
});
