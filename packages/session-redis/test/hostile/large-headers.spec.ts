import { fileURLToPath } from 'node:url';
import { generateSessionKey } from '@nest-session/core';
import { LeakGuard, RedisServer, TcpProxy } from '@nest-session/testing';
import { WorkerProcess } from '../support/worker.process.js';
import { sendRaw } from './raw.request.js';

LeakGuard.install();

const PROGRAM = fileURLToPath(new URL('large-headers.mjs', import.meta.url));
const SIZE = 64 * 1024;

describe.each(['express', 'fastify'])('an application that takes headers of 128 KB, on %s,', (adapter) => {
  let server: RedisServer;
  let proxy: TcpProxy;
  let program: WorkerProcess;
  let url: string;
  beforeAll(async () => {
    server = await RedisServer.start();
    proxy = await TcpProxy.start({ port: server.port });
    const environment = { REDIS_URL: proxy.url, ADAPTER: adapter };
    program = await WorkerProcess.start(environment, {
      program: PROGRAM,
      ready: /^listening /,
      nodeArguments: ['--max-http-header-size=131072'],
    });
    url = program.lines.find((line) => line.startsWith('listening '))!.split(' ')[1]!;
    proxy.countFlights((burst) => burst.includes(':sessions:'));
  });
  afterAll(async () => {
    await program.end();
    await proxy.stop();
    await server.stop();
  });

  const tokens = (count: number) => Array.from({ length: count }, () => generateSessionKey().token.reveal());

  it.each([
    ['one cookie of 64 KB', () => `SESSION=${'a'.repeat(SIZE)}`, 0],
    [
      '64 KB of other cookies',
      () =>
        tokens(1300)
          .map((token, i) => `s${i}=${token}`)
          .join('; '),
      0,
    ],
    ['64 KB of semicolons', () => ';'.repeat(SIZE), 0],
    ['64 KB of names without values', () => 'SESSION;'.repeat(SIZE / 8), 0],
    ['64 KB of empty cookies of the name', () => 'SESSION=;'.repeat(SIZE / 9), 0],
    [
      '64 KB of unknown tokens',
      () =>
        tokens(1200)
          .map((token) => `SESSION=${token}`)
          .join('; '),
      1,
    ],
  ])('answers, with so few round trips: %s', async (_, cookie, roundTrips) => {
    const flights = await proxy.flightsDuring(async () => {
      const answer = await sendRaw(url, 'GET /read', [`Cookie: ${cookie()}`]);
      expect([answer.status, answer.setCookies, answer.body]).toEqual([
        200,
        [],
        expect.stringContaining('"isNew":true'),
      ]);
    });
    expect(flights).toBe(roundTrips);
    expect(program.lines).toEqual([`listening ${url}`]);
  });
});
