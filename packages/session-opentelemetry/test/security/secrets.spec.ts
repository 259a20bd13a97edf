import { inspect } from 'node:util';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually, RedisServer } from '@nest-session/testing';
import { Redis } from 'ioredis';
import { SECRETS, SecretsApplication } from '../../../session-redis/test/support/told.secrets.js';
import { SessionTelemetryModule } from '../../src/index.js';
import { Sdk } from '../support/sdk.js';

LeakGuard.install();

let server: RedisServer;
let client: Redis;
let sdk: Sdk;
beforeAll(async () => {
  server = await RedisServer.start();
  client = new Redis(server.url);
  sdk = Sdk.register();
});
afterAll(async () => {
  await sdk.stop();
  client.disconnect();
  await server.stop();
});

it.each(['hashed', 'plain'] as const)('no metric and no span has a secret or an id: %s ids', async (sessionIds) => {
  const telemetry = SessionTelemetryModule.forRoot({ semanticMetrics: true });
  const redis = { client, namespace: `secret-${sessionIds}` };
  const application = await SecretsApplication.start(sessionIds, redis, [telemetry]);
  let page: string;
  try {
    await application.useAll((key, text) => client.set(key, text, 'EX', 60));
    await application.fail(() => spoil(client));
    await eventually(() => expect(application.handlers.securityEvents).not.toEqual([]));
    page = await sdk.page();
  } finally {
    await application.stop();
  }
  const spans = sdk.spans.map(({ name, attributes, events, status, links }) =>
    inspect({ name, attributes, events, status, links }, { depth: 12 }),
  );
  const text = [page, ...spans].join('\n');
  for (const metric of ['operation_duration', 'sessions_created', 'sessions_ended', 'security_events']) {
    expect(page).toContain(`nest_session_${metric}`);
  }
  expect(page).toContain('messaging_process_duration_bucket');
  for (const name of [
    'process deadline.order',
    'nest_session.deadline.schedule',
    'process session.deleted',
    'nest_session.create',
    'nest_session.end_all',
    'nest_session.list',
  ]) {
    expect(text).toContain(name);
  }
  expect(text).toMatch(/'error.type': '\w+Error'/);
  for (const secret of [...Object.values(SECRETS), ...application.tokens, 'on purpose', 'WRONGTYPE']) {
    expect(text.split('\n').filter((line) => line.includes(secret))).toEqual([]);
  }
  const quoted = [...text.matchAll(/"([^"]*)"|'([^']*)'/g)].map(([, double, single]) => double ?? single);
  expect(quoted.length).toBeGreaterThan(100);
  // An id, and a fingerprint of one.
  expect(quoted.filter((value) => /[\w-]{43}|sha256:/.test(value!))).toEqual([]);
});

/** Lets every write to a session fail. */
async function spoil(redis: Redis): Promise<void> {
  for (const key of await redis.keys('*:sessions:expires:*')) {
    await redis.del(key);
    await redis.rpush(key, 'foreign');
    // Without a time to live, it would be no session.
    await redis.expire(key, 3600);
  }
}
