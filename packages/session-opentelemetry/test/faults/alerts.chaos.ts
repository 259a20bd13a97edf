import { createServer, type Server } from 'node:http';
import { type AddressInfo } from 'node:net';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { RedisSessionModule, SessionEventGroups } from '@nest-session/redis';
import { PrometheusServer, TcpProxy } from '@nest-session/test-infrastructure';
import { eventually, type HttpAgent, RedisServer } from '@nest-session/testing';
import { Redis } from 'ioredis';
import { Sdk } from '../support/sdk.js';
import { closeShops, Mails, ShopApp } from '../support/shop.app.js';

const RULES = new URL('../../../../docs/monitoring/alerts.yaml', import.meta.url);
const NAMESPACE = 'shop';
// Ages below this would need no scaling: those are counts, ratios and durations of calls.
const SHORTEST_AGE = 100;

/** The rules with a second for each minute, so that the test need not last hours. */
function sixtyTimesFaster(rules: string): string {
  const seconds = (count: string, unit: string) => `${Number(count) * (unit === 'h' ? 60 : 1)}s`;
  return rules
    .replaceAll(/(\[|offset |for: )(\d+)([mh])/g, (_, begin: string, count: string, unit: string) => {
      return `${begin}${seconds(count, unit)}`;
    })
    .replaceAll(/> (\d+)$/gm, (text, age: string) => (Number(age) < SHORTEST_AGE ? text : `> ${Number(age) / 60}`));
}

const describeWithPrometheus = PrometheusServer.isInstalled ? describe : describe.skip;

describeWithPrometheus('under faults, an alert fires and clears:', () => {
  let folder: string;
  let redis: RedisServer;
  let client: Redis;
  let proxy: TcpProxy;
  let sdk: Sdk;
  let shop: ShopApp;
  let agent: HttpAgent;
  let page: Server;
  let prometheus: PrometheusServer;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'nest-session-alerts-'));
    redis = await RedisServer.start();
    const admin = new Redis(redis.url);
    await admin.call('ACL', 'SETUSER', 'admin', 'on', 'nopass', '~*', '&*', '+@all');
    admin.disconnect();
    client = new Redis(redis.url, { username: 'admin', password: 'any' });
    proxy = await TcpProxy.start(redis);
    sdk = Sdk.register();
    const store = RedisSessionModule.forRoot({
      url: proxy.url,
      namespace: NAMESPACE,
      commandTimeout: '300ms',
      cleanup: { cron: '* * * * * *' },
      events: { attempts: 1, group: 'mailers', maxLength: 20 },
    });
    shop = await ShopApp.start({ store: [store] });
    agent = await shop.visit();
    page = createServer((_, response) => void sdk.page().then((text) => response.end(text))).listen(0, '127.0.0.1');
    const rules = join(folder, 'alerts.yaml');
    await writeFile(rules, sixtyTimesFaster(await readFile(RULES, 'utf8')));
    prometheus = await PrometheusServer.start({
      // A page waits for Redis as long as a command does.
      global: { scrape_interval: '1s', scrape_timeout: '1s', evaluation_interval: '500ms' },
      rule_files: [rules],
      scrape_configs: [
        { job_name: 'shop', static_configs: [{ targets: [`127.0.0.1:${(page.address() as AddressInfo).port}`] }] },
      ],
    });
  });
  afterAll(async () => {
    await prometheus.stop();
    page.close();
    await closeShops();
    await sdk.stop();
    await proxy.stop();
    client.disconnect();
    await redis.stop();
    await rm(folder, { recursive: true });
  });

  const groups = () => shop.nest.get(SessionEventGroups, { strict: false });
  const firing = async () =>
    (await prometheus.query('ALERTS{alertstate="firing"}')).map(({ metric }) => metric['alertname']);

  /** Waits until the alert fires, or until it does not. `act` is repeated meanwhile. */
  async function until(alert: string, fires: boolean, act: () => Promise<unknown> = async () => undefined) {
    await eventually(
      async () => {
        await act();
        if (fires) expect(await firing()).toContain(alert);
        else expect(await firing()).not.toContain(alert);
      },
      { timeout: 200_000, interval: 100 },
    );
  }

  const read = () => agent.get('/cart');

  it('none while all is well', async () => {
    await eventually(async () => {
      await read();
      const [up] = await prometheus.query('sum(nest_session_operation_duration_count)');
      expect(Number(up?.value[1])).toBeGreaterThan(50);
    });
    // Longer than a process that has just started counts as not listening.
    await until('NestSessionNotifications', false, read);
    expect(await firing()).toEqual([]);
  });

  it('NestSessionOutage and NestSessionErrors while Redis is frozen', async () => {
    redis.freeze();
    try {
      await until('NestSessionOutage', true, read);
      await until('NestSessionErrors', true, read);
    } finally {
      redis.thaw();
    }
    await until('NestSessionOutage', false, read);
    await until('NestSessionErrors', false, read);
  });

  it('NestSessionCleanupLate while the cleanup cannot finish', async () => {
    redis.freeze();
    try {
      await until('NestSessionCleanupLate', true);
    } finally {
      redis.thaw();
    }
    await until('NestSessionCleanupLate', false);
  });

  it('NestSessionSlow while the network is slow', async () => {
    proxy.delayReplies(150);
    await until('NestSessionSlow', true, read);
    proxy.delayReplies(0);
    await until('NestSessionSlow', false, read);
  });

  it('NestSessionEndsOverdue while Redis refuses what a sweep needs', async () => {
    await client.call('ACL', 'SETUSER', 'default', '-sscan');
    const minute = `${(Math.floor(Date.now() / 60_000) - 10) * 60_000}`;
    await client
      .multi()
      .sadd(`${NAMESPACE}:expirations:${minute}`, 'expires:gone')
      .zadd(`${NAMESPACE}:expirations`, minute, minute)
      .exec();
    await until('NestSessionEndsOverdue', true);
    await client.call('ACL', 'SETUSER', 'default', '+sscan');
    await until('NestSessionEndsOverdue', false);
  });

  it('NestSessionNotifications while they are off', async () => {
    // An instance that may would switch them on again.
    await client.call('ACL', 'SETUSER', 'default', '-config');
    await client.config('SET', 'notify-keyspace-events', '');
    await until('NestSessionNotifications', true);
    await client.config('SET', 'notify-keyspace-events', 'KEA');
    await until('NestSessionNotifications', false);
  });

  it('NestSessionEventsUnread and NestSessionEventsDropped while nobody reads for a group', async () => {
    await groups().create('nobody', { from: 'now' });
    await shop.visit();
    await until('NestSessionEventsUnread', true);
    // The cleanup keeps about as many events as the option says.
    await until('NestSessionEventsDropped', true, () => Promise.all(Array.from({ length: 20 }, () => shop.visit())));
    await groups().remove('nobody');
    await until('NestSessionEventsUnread', false);
    await until('NestSessionEventsDropped', false);
  });

  it('NestSessionDeadLetters until somebody has dealt with them', async () => {
    shop.nest.get(Mails).failures = 1;
    await shop.visit();
    await until('NestSessionDeadLetters', true);
    await groups().replayAll();
    await until('NestSessionDeadLetters', false);
  });
});
