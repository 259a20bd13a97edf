import { LeakGuard } from '@nest-session/test-infrastructure';
import { RedisServer } from '@nest-session/testing';
import ioredis from 'ioredis';
import ioredis5 from 'ioredis-5';
import { describeTelemetry } from '../support/telemetry.suite.js';

LeakGuard.install();

let server: RedisServer;
beforeAll(async () => {
  server = await RedisServer.start();
});
afterAll(() => server.stop());

describeTelemetry('ioredis 6', {
  ioredis,
  namespace: 'six',
  sessionIds: 'hashed',
  open: ({ Redis }) => new Redis(server.url),
});
describeTelemetry('ioredis 5, four partitions', {
  ioredis: ioredis5 as never,
  namespace: 'five',
  sessionIds: 'plain',
  partitions: 4,
  open: ({ Redis }) => new Redis(server.url),
});
