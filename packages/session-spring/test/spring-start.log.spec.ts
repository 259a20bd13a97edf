import { readFileSync } from 'node:fs';
import type { SpringSessionModuleOptions } from '@nest-session/spring';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually, RedisServer } from '@nest-session/testing';
import { LineRecorder } from '../../session-redis/test/support/line.recorder.js';
import { withAllRights } from '../../session-redis/test/support/with-all-rights.js';
import { startWithSpring } from './support/spring.app.js';

LeakGuard.install();

const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as {
  version: string;
};

let server: RedisServer;
beforeAll(async () => {
  server = await RedisServer.start();
});
afterAll(() => server.stop());

/** The two lines of the start. */
async function linesOf(options: SpringSessionModuleOptions): Promise<string[]> {
  const log = new LineRecorder();
  const app = await startWithSpring(options, { configure: () => void log.install() });
  try {
    await eventually(() => expect(log.matching(/Options that are in effect/)).toHaveLength(1));
  } finally {
    await app.stop();
  }
  return log.matching(/^(nest-session|Options that)/).map((line) => line.replace(/ RedisSession$/, ''));
}

it('the log says that sessions of Spring are read, and by which options', async () => {
  const [line, details] = await linesOf({ url: withAllRights(server.url), mode: 'read', commandTimeout: '5s' });
  expect(line).toMatch(`nest-session ${version} reads the sessions of Spring Session in `);
  expect(line).toMatch(/: 127\.0\.0\.1:\d+; namespace "spring:session"; mode read; security standard$/);
  expect(details).toMatch(/; commandTimeout 5 s; requireAtStart false$/);
});

it('and that they are shared', async () => {
  const [line, details] = await linesOf({ url: withAllRights(server.url), mode: 'shared', namespace: 'shop' });
  expect(line).toMatch(`nest-session ${version} shares sessions with Spring Session in `);
  expect(line).toMatch(
    /: 127\.0\.0\.1:\d+; namespace "shop"; mode shared; group "default"; serializer SpringJsonSerializer; security standard$/,
  );
  expect(details).toMatch(/; replicas 0; .*; cleanup\.batchSize 50; events\.retention 3600 s; /);
  expect(details).not.toMatch(/grace|encryption/);
});
