import { Injectable, Module } from '@nestjs/common';
import { deadline, DeadlineModule, Deadlines, OnDeadline } from '@nest-session/deadlines';
import { RedisSessionModule } from '@nest-session/redis';
import { RedisDeadlineModule } from '@nest-session/deadlines/redis';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually, HttpAgent, RedisServer } from '@nest-session/testing';
import { COUNTERS, GAUGES, HISTOGRAMS, OBSERVED_COUNTERS, STATES } from '../../src/metrics/instrument-table.js';
import { Sdk } from '../support/sdk.js';
import { closeShops, Mails, ShopApp } from '../support/shop.app.js';

LeakGuard.install();

const underscored = (names: readonly { readonly name: string }[]) => names.map(({ name }) => name.replaceAll('.', '_'));
const SERIES = [
  ...underscored(Object.values(HISTOGRAMS)).map((name) => `${name}_bucket`),
  ...underscored([...Object.values(COUNTERS), ...Object.values(OBSERVED_COUNTERS)]).map((name) => `${name}_total`),
  ...underscored([...Object.values(GAUGES), ...Object.values(STATES)]),
];

const order = deadline('order');

@Injectable()
class Orders {
  @OnDeadline(order)
  unpaid() {
    // It has only to be called.
  }
}

@Module({ imports: [DeadlineModule, RedisDeadlineModule.forRoot()], providers: [Orders] })
class OrdersModule {}

it('the exporter for Prometheus shows every instrument', async () => {
  const sdk = Sdk.register();
  const server = await RedisServer.start();
  const store = RedisSessionModule.forRoot({
    url: server.url,
    namespace: 'seen',
    commandTimeout: '1s',
    cleanup: { cron: '0 0 0 29 2 *' },
    events: { attempts: 2, group: 'mailers' },
  });
  const shop = await ShopApp.start({
    session: { deviceBound: true },
    store: [store],
    imports: [OrdersModule],
    telemetry: { semanticMetrics: true },
    trustProxy: true,
  });
  try {
    shop.nest.get(Mails).failures = 100;
    const browser = await HttpAgent.for(shop.nest, { bindsSessions: true });
    await browser.post('/sign-in/ann');
    await browser.get('/cart');
    await browser.post('/session/device/refresh');
    const agent = await shop.visit();
    await agent.get('/cart');
    await (await shop.visit()).post('/sign-out');
    await (await shop.visit()).post('/leave');
    const deadlines = shop.nest.get(Deadlines, { strict: false });
    await deadlines.schedule(order, '42', { in: 0 });
    await deadlines.schedule(order, '43', { in: '1h' });
    await shop.agent().get('/cart', { headers: { cookie: 'SESSION=short' } });
    server.freeze();
    expect((await agent.get('/cart')).status).toBe(503);
    server.thaw();
    await eventually(
      async () => {
        const page = await sdk.page();
        const shown = new Set([...page.matchAll(/^(\w+)\{(.*)\} /gm)].map(([, name]) => name));
        expect(SERIES.filter((name) => !shown.has(name))).toEqual([]);
      },
      { timeout: 30_000 },
    );
    expect(await sdk.page()).toMatch(
      /^nest_session_operation_duration_bucket\{nest_session_namespace="seen",nest_session_operation="load",nest_session_outcome="found",.*le="0.001"\} /m,
    );
  } finally {
    server.thaw();
    await closeShops();
    await sdk.stop();
    await server.stop();
  }
});
