import { loadChannel, saveChannel, sweepChannel } from '@nest-session/core/telemetry';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually } from '@nest-session/testing';
import { type MeterProvider, metrics, trace, type TracerProvider } from '@opentelemetry/api';
import { Sdk } from '../support/sdk.js';
import { closeShops, Mails, ShopApp } from '../support/shop.app.js';

LeakGuard.install();

afterEach(closeShops);

const CREATED = 'nest_session.sessions.created';

async function expectWholeVisit(shop: ShopApp): Promise<void> {
  const agent = await shop.visit();
  expect((await agent.get('/cart')).json()).toEqual({ items: ['apple'] });
  expect((await agent.post('/sign-out')).status).toBe(201);
  await eventually(() => expect(shop.nest.get(Mails).heard).toEqual(['created', 'deleted']));
}

it('without an SDK everything works as without the module', async () => {
  const shop = await ShopApp.start();
  await expectWholeVisit(shop);
  expect(shop.log.lines).not.toContainEqual(expect.stringContaining('OpenTelemetry'));
});

it('an SDK that is registered after the start measures and traces from then on, and so does the next one', async () => {
  const shop = await ShopApp.start();
  await shop.visit();
  for (let i = 0; i < 2; i++) {
    const sdk = Sdk.register();
    await shop.visit();
    expect(await sdk.value(CREATED, { 'nest_session.namespace': '' })).toBe(1);
    expect(sdk.named('nest_session.create').length).toBe(1);
    await sdk.stop();
  }
});

it('an SDK that throws harms nothing, and is logged once', async () => {
  const fail = () => {
    throw new Error('The SDK fails on purpose');
  };
  const thrown = new Proxy({}, { get: () => fail });
  trace.setGlobalTracerProvider({ getTracer: fail } as TracerProvider);
  metrics.setGlobalMeterProvider({ getMeter: () => thrown } as unknown as MeterProvider);
  try {
    const shop = await ShopApp.start();
    await expectWholeVisit(shop);
    const lines = shop.log.lines.filter((line) => line.includes('OpenTelemetry'));
    expect(lines).toEqual([expect.stringContaining('Error: "The SDK fails on purpose"')]);
  } finally {
    trace.disable();
    metrics.disable();
  }
});

it('an application that has shut down listens no more', async () => {
  const shop = await ShopApp.start();
  const channels = [loadChannel, saveChannel, sweepChannel];
  expect(channels.map(({ hasSubscribers }) => hasSubscribers)).toEqual([true, true, true]);
  await shop.nest.close();
  expect(channels.map(({ hasSubscribers }) => hasSubscribers)).toEqual([false, false, false]);
});

it('options that do not exist are refused', async () => {
  const options = { semanticMetric: true, semanticMetrics: 1 } as never;
  await expect(ShopApp.start({ telemetry: options })).rejects.toThrow(
    'SessionTelemetryModule: Option `semanticMetrics` must be true or false. Unknown option `semanticMetric`: known are semanticMetrics.',
  );
});
