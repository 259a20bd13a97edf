import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Test } from '@nestjs/testing';
import { SessionModule, SessionRepository } from '@nest-session/core';
import { RedisSessionModule } from '@nest-session/redis';
import { LeakGuard, LogRecorder } from '@nest-session/test-infrastructure';
import { RedisServer } from '@nest-session/testing';
import { ROOT } from './support/compiler.js';

LeakGuard.install();

const page = await readFile(join(ROOT, 'docs/securing-redis.md'), 'utf8');
const [command = ''] = /(?<=^\$ )(?:.*\\\n)*.*/m.exec(page.slice(page.indexOf('### Rotate the keys'))) ?? [];

/** In the shell of a reader whose Redis has this port. */
async function printed(line: string, port: number): Promise<{ stdout: string; stderr: string }> {
  // `grep -c` fails when it counts nothing.
  return promisify(execFile)('/bin/sh', ['-c', `${line.replaceAll('redis-cli', `redis-cli -p ${port}`)} || true`]);
}

it.each([1, 4])('the command counts the sessions that need a key, in %i partitions', async (partitions) => {
  const server = await RedisServer.start();
  const keys = [{ id: '2026-10', key: randomBytes(32).toString('base64') }];
  const imports = [
    SessionModule.forRoot(),
    RedisSessionModule.forRoot({ url: server.url, partitions, encryption: { keys } }),
  ];
  const app = await Test.createTestingModule({ imports }).setLogger(new LogRecorder()).compile();
  try {
    await app.init();
    for (const name of ['ann', 'bob', 'eve']) {
      const session = app.get(SessionRepository).createSession();
      session.signIn(name);
      await session.save();
    }
    expect(await printed(command, server.port)).toEqual({ stdout: '3\n', stderr: '' });
    const other = command.replace('2026-10', '2026-11');
    expect(await printed(other, server.port)).toEqual({ stdout: '0\n', stderr: '' });
  } finally {
    await app.close();
    await server.stop();
  }
});
