import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Injectable } from '@nestjs/common';
import { Test, type TestingModule } from '@nestjs/testing';
import { OnSessionEvent, SessionEvent, SessionModule, SessionRepository } from '@nest-session/core';
import { RedisSessionModule } from '@nest-session/redis';
import { LeakGuard, LogRecorder } from '@nest-session/test-infrastructure';
import { eventually, RedisServer } from '@nest-session/testing';
import { Redis } from 'ioredis';
import { ROOT } from './support/compiler.js';
import { codeBlocks, section } from './support/markdown.js';

LeakGuard.install();

@Injectable()
class Handlers {
  static handled = 0;

  @OnSessionEvent(SessionEvent)
  handle() {
    Handlers.handled++;
  }
}

const text = section(await readFile(join(ROOT, 'docs/operating.md'), 'utf8'), 'The first hour after going live');
const steps = codeBlocks(text, 'console').flatMap((block) =>
  block
    .split(/^\$ redis-cli /m)
    .slice(1)
    .map((step) => {
      const [command = '', ...output] = step.trimEnd().split('\n');
      return { command, output: output.map(withoutPlace).join('\n') };
    }),
);

/** A line of `redis-cli` without the number that it has in its list, and in the list around that. */
function withoutPlace(line: string): string {
  return line.replace(/^(?: *\d+\) +)+/, '').trimStart();
}

/** As `redis-cli` prints a reply, without the numbers of the elements of a list. */
function printed(reply: unknown): string {
  if (Array.isArray(reply)) return reply.map(printed).join('\n');
  if (typeof reply === 'number') return `(integer) ${reply}`;
  if (typeof reply !== 'string') return '(nil)';
  // The reply to INFO.
  return reply.includes('\r\n') ? reply.replaceAll('\r\n', '\n').trimEnd() : JSON.stringify(reply);
}

function pattern(output: string): RegExp {
  const parts = output.split('...').map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`));
  return new RegExp(`^${parts.join('[^]*')}$`);
}

describe('in the first hour after going live', () => {
  let server: RedisServer;
  let client: Redis;
  let app: TestingModule;

  beforeAll(async () => {
    server = await RedisServer.start({ args: ['--appendonly', 'yes'] });
    client = new Redis(server.url);
    const imports = [SessionModule.forRoot(), RedisSessionModule.forRoot({ url: server.url })];
    app = await Test.createTestingModule({ imports, providers: [Handlers] })
      .setLogger(new LogRecorder())
      .compile();
    await app.init();
    const session = app.get(SessionRepository).createSession();
    session.signIn('ann');
    await session.save();
    await eventually(() => expect(Handlers.handled).toBe(2));
    await eventually(async () => expect((await client.config('GET', 'notify-keyspace-events'))[1]).not.toBe(''));
    await eventually(async () => expect((await client.xpending('nest:session:events', 'default'))[0]).toBe(0));
  });

  afterAll(async () => {
    await app.close();
    client.disconnect();
    await server.stop();
  });

  it('there are commands for what is in Redis', () => {
    expect(steps.length).toBeGreaterThan(8);
  });

  it.each(steps)('you see what the page says: redis-cli $command', async ({ command, output }) => {
    const [name = '', ...args] = command.split(' ');
    expect(printed(await client.call(name, ...args))).toMatch(pattern(output));
  });
});
