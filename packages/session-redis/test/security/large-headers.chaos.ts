import { fileURLToPath } from 'node:url';
import { generateSessionKey } from '@nest-session/core/internal';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { RedisServer } from '@nest-session/testing';
import { Redis } from 'ioredis';
import { WorkerProcess } from '../support/worker.process.js';
import { sendRaw } from '../support/raw.request.js';

LeakGuard.install();

const PROGRAM = fileURLToPath(new URL('../support/large-headers.mjs', import.meta.url));
const SIZE = 64 * 1024;

describe.each(['express', 'fastify'])('an application that accepts headers of 128 KB, on %s,', (adapter) => {
  let server: RedisServer;
  let client: Redis;
  let program: WorkerProcess;
  let url: string;
  beforeAll(async () => {
    server = await RedisServer.start();
    client = new Redis(server.url);
    const environment = { REDIS_URL: server.url, ADAPTER: adapter };
    program = await WorkerProcess.start(environment, {
      program: PROGRAM,
      ready: /^listening /,
      nodeArguments: ['--max-http-header-size=131072'],
    });
    url = program.lines.find((line) => line.startsWith('listening '))!.split(' ')[1]!;
  });
  afterAll(async () => {
    await program.end();
    client.disconnect();
    await server.stop();
  });

  /** How many sessions were loaded. */
  async function lookups(): Promise<number> {
    return Number(/cmdstat_hgetall:calls=(\d+)/.exec(await client.info('commandstats'))?.[1] ?? 0);
  }

  const tokens = (count: number) => Array.from({ length: count }, () => generateSessionKey().token.reveal());

  it.each([
    ['one cookie of 64 KB', () => `Cookie: SESSION=${'a'.repeat(SIZE)}`],
    [
      '64 KB of other cookies',
      () =>
        `Cookie: ${tokens(1300)
          .map((token, i) => `s${i}=${token}`)
          .join('; ')}`,
    ],
    ['64 KB of semicolons', () => `Cookie: ${';'.repeat(SIZE)}`],
    ['64 KB of names without values', () => `Cookie: ${'SESSION;'.repeat(SIZE / 8)}`],
    ['64 KB of empty session cookies', () => `Cookie: ${'SESSION=;'.repeat(SIZE / 9)}`],
    [
      '64 KB of unknown tokens',
      () =>
        `Cookie: ${tokens(1200)
          .map((token) => `SESSION=${token}`)
          .join('; ')}`,
    ],
    ['a token of 64 KB in a header', () => `X-Auth-Token: ${'a'.repeat(SIZE)}`],
    ['64 KB of tokens in one header', () => `X-Auth-Token: ${tokens(1400).join(', ')}`],
  ])('responds and loads no session: %s', async (_, header) => {
    const before = await lookups();
    const response = await sendRaw(url, 'GET /read', [header()]);
    expect([response.status, response.setCookies, response.body]).toEqual([
      200,
      [],
      expect.stringContaining('"isNew":true'),
    ]);
    expect((await lookups()) - before).toBe(0);
    expect(program.lines).toEqual([`listening ${url}`]);
  });
});
