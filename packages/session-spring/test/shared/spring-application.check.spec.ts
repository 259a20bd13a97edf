import { InvalidSessionOptionsError } from '@nest-session/core';
import { type SharedSpringSessionOptions, SpringJsonSerializer } from '@nest-session/spring';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually, RedisServer } from '@nest-session/testing';
import { Redis } from 'ioredis';
import { SessionKeys } from '../../../session-redis/src/keys/session-keys.js';
import { SharedKeys } from '../../src/keys/spring-keys.js';
import { SpringApplicationCheck } from '../../src/shared/spring-application.check.js';
import { startWithSpring } from '../support/spring.app.js';
import { LineRecorder } from '../../../session-redis/test/support/line.recorder.js';
import { SpringWriter } from '../support/spring-writer.js';

LeakGuard.install();

const JAVA_TEXT = Buffer.from('rO0ABXQAAWE=', 'base64');

let server: RedisServer;
let client: Redis;
let spring: SpringWriter;
beforeAll(async () => {
  server = await RedisServer.start();
  client = new Redis(server.url);
  spring = new SpringWriter(client);
});
beforeEach(() => client.flushall());
afterAll(async () => {
  client.disconnect();
  await server.stop();
});

/** Starts an application, lets it do the work, and resolves to the lines of its log but for those of each start. */
async function linesOf(
  spring: Partial<SharedSpringSessionOptions> = {},
  work?: (log: LineRecorder) => Promise<void>,
): Promise<string[]> {
  const log = new LineRecorder();
  const app = await startWithSpring(
    { url: server.url, mode: 'shared', commandTimeout: '30s', ...spring },
    { configure: () => void log.install(), handlers: false },
  );
  try {
    await work?.(log);
  } finally {
    await app.stop();
  }
  return log.lines.filter(
    (line) => line.endsWith(' RedisSession') && !/^(nest-session|Options that|Listening to)/.test(line),
  );
}

/** A session as RedisSessionRepository keeps it. */
async function createSimple(): Promise<string> {
  const id = await spring.create({ color: 'red' });
  const [key, now] = [spring.session(id), await spring.now()];
  await client.hset(key, 'lastAccessedTime', now);
  await client.pexpireat(key, now + 1_800_000);
  await client.del(spring.shadow(id));
  return id;
}

it('says nothing about live sessions of the indexed repository, in JSON', async () => {
  await spring.create({ color: 'red' });
  await spring.create({ color: 'red' }, -1);
  expect(await linesOf()).toEqual([]);
});

describe('a session of Java serialization', () => {
  it('is refused at the start, also beside sessions in JSON, which may be those of NestJS', async () => {
    const [id] = [await spring.create({ a: 1 }), await spring.create({ a: { b: 1 } })];
    await client.hset(spring.session(id), 'sessionAttr:a', JAVA_TEXT);
    const refusal = linesOf();
    await expect(refusal).rejects.toThrow(InvalidSessionOptionsError);
    await expect(refusal).rejects.toThrow(/needs JSON.*"One Redis with Spring Boot".*another namespace/);
  });

  it('that has ended is nothing to refuse', async () => {
    const id = await spring.create({ a: 1 });
    await client.hset(spring.session(id), 'sessionAttr:a', JAVA_TEXT);
    await spring.invalidate(id);
    expect(await linesOf()).toEqual([]);
  });

  it('that Spring creates later is one error in the log', async () => {
    const message = Buffer.concat([JAVA_TEXT.subarray(0, 4), Buffer.from('sr')]);
    const lines = await linesOf({}, async ({ lines: all }) => {
      await eventually(async () => {
        await client.publish('spring:session:event:0:created:an-id', message);
        expect(all.filter((line) => line.includes('needs JSON'))).not.toEqual([]);
      });
      await client.publish('spring:session:event:0:created:another-id', message);
    });
    expect(lines).toEqual([expect.stringContaining('"One Redis with Spring Boot"')]);
  });
});

describe('RedisSessionRepository', () => {
  it('is refused at the start, with the property to set', async () => {
    await createSimple();
    const refusal = linesOf();
    await expect(refusal).rejects.toThrow(InvalidSessionOptionsError);
    await expect(refusal).rejects.toThrow(/RedisSessionRepository.*repository-type=indexed/);
  });

  it('is a warning while there are sessions of the indexed one, too', async () => {
    await createSimple();
    await spring.create();
    expect(await linesOf()).toEqual([expect.stringMatching(/^1 of 2 sessions.*repository-type=indexed/)]);
  });

  it('is not taken for that of a session whose shadow key has the new id a moment later', async () => {
    const id = await spring.create();
    await client.del(spring.shadow(id));
    expect(await linesOf()).toEqual([]);
  });
});

it('warns of plain JSON that is stated where Spring writes classes', async () => {
  const id = await spring.create();
  await client.hset(spring.session(id), 'sessionAttr:map', '{"@class":"java.util.LinkedHashMap","a":1}');
  const lines = await linesOf({ serializer: new SpringJsonSerializer('plain') });
  expect(lines).toEqual([expect.stringMatching(/name classes of Java.*new SpringJsonSerializer\('typed'\)/)]);
  expect(await linesOf({ serializer: new SpringJsonSerializer('typed') })).toEqual([]);
});

it('tells later what it would have refused when Redis is late', async () => {
  const id = await spring.create();
  await client.hset(spring.session(id), 'sessionAttr:a', JAVA_TEXT);
  const keys = new SharedKeys('spring:session', new SessionKeys('spring:session:nest'), 0);
  const { lines } = new LineRecorder().install();
  await client.client('PAUSE', 2200, 'ALL');
  await new SpringApplicationCheck(client, keys, { serializer: new SpringJsonSerializer() }).start();
  expect(lines).toEqual([]);
  await eventually(() => expect(lines).toEqual([expect.stringContaining('needs JSON')]));
});
