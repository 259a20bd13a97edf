// Spring Boot and two instances of NestJS share sessions: random operations from both sides. Prints TAP; ends by itself if nothing
// is left open.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { SessionAttributeError } from '@nest-session/core';
import {
  SpringApplication,
  type SpringApplicationOptions,
  StartedParts,
} from '@nest-session/test-infrastructure/spring';
import { eventually, RedisServer } from '@nest-session/testing';
import { Redis } from 'ioredis';
import { type NestSide, startNest } from './nest.js';
import { Player } from './player.js';
import { Random } from './random.js';

const EXPIRATIONS = process.env['EXPIRATIONS'] as SpringApplicationOptions['expirations'];
const SERIALIZER = process.env['SERIALIZER'] as 'plain' | 'typed' | 'security';
const OPERATIONS = Number(process.env['OPERATIONS'] ?? 5000);
const SEED = Number(process.env['SEED'] ?? Date.now() % 2 ** 31);

const parts = new StartedParts();
let redis: RedisServer;
let client: Redis;
let spring: SpringApplication;
let sides: NestSide[];
let player: Player;

before(async () => {
  redis = parts.add(await RedisServer.start(), (started) => started.stop());
  client = parts.add(new Redis(redis.url), (started) => started.disconnect());
  const where = { namespace: 'spring:session', redisUrl: redis.url };
  const how = { repository: 'indexed', serializer: SERIALIZER, expirations: EXPIRATIONS } as const;
  spring = parts.add(await SpringApplication.start({ ...how, ...where }), (started) => started.stop());
  const side = async () => parts.add(await startNest(redis.url, SERIALIZER), ({ context }) => context.close());
  sides = [await side(), await side()];
  player = new Player(new Random(SEED), sides, spring);
});

after(() => parts.stop());

test('each session can be read by both after each step, and no write of NestJS makes a request of Spring fail', async () => {
  console.log(`# seed ${SEED}`);
  for (let i = 0; i < OPERATIONS; i++) {
    await player.step().catch(async (error: unknown) => {
      const stored = JSON.stringify(await client.hgetall(`spring:session:sessions:${player.lastId}`));
      const { message } = error as Error;
      throw new Error(`Operation ${i}, seed ${SEED}: ${message}\nRedis has: ${stored}`, { cause: error });
    });
  }
  assert.ok(player.ended.length > OPERATIONS / 50 && player.refused > 0, 'It has ended sessions and refused values');
});

test('each side hears of the beginning and the end of each session once', async () => {
  const all = [...player.live, ...player.ended];
  const ended = player.ended.map(({ id }) => id);
  const created = all.map(({ ids }) => ids[0]!);
  const changed = all.flatMap(({ ids }) => ids.slice(1));
  const here = () => sides.flatMap(({ events }) => events.all()).map(({ type, sessionId: id }) => ({ type, id }));
  await eventually(() => {
    hears(here(), { created, deleted: ended, 'id-changed': changed, expired: [] });
  });
  const lost = sides.flatMap(({ events }) => events.all()).filter(({ dataLost }) => dataLost);
  assert.equal(lost.length, 0);
  await eventually(async () => {
    const java = (await spring.events()).map(({ type, session: { id } }) => ({ type, id }));
    hears(java, { created, deleted: ended, expired: [] });
  });
});

/** Each of these ids once for its type. */
function hears(events: readonly { type: string; id: string }[], expected: Record<string, readonly string[]>): void {
  for (const [type, ids] of Object.entries(expected)) {
    const left = events.filter((event) => event.type === type).map(({ id }) => id);
    const missing = ids.filter((id) => {
      const at = left.indexOf(id);
      if (at >= 0) left.splice(at, 1);
      return at < 0;
    });
    assert.deepEqual({ type, missing, tooMany: left }, { type, missing: [], tooMany: [] });
  }
}

test('Java reads the deepest value and the longest key that NestJS writes, and no more is written', async () => {
  const nested = (levels: number, list: boolean) => {
    let value: unknown = 1;
    for (let i = 0; i < levels; i++) value = list ? [value] : { a: value };
    return value;
  };
  const session = sides[0]!.sessions.createSession();
  session.setAttribute('list', nested(100, true));
  session.setAttribute('object', nested(100, false));
  session.setAttribute('key', { ['k'.repeat(50_000)]: 1 });
  for (const value of [nested(101, true), nested(101, false), { ['k'.repeat(50_001)]: 1 }]) {
    assert.throws(() => session.setAttribute('more', value), SessionAttributeError);
  }
  await session.save();
  const { attributes } = (await spring.load(session.id))!;
  for (const [name, value] of Object.entries(attributes)) assert.deepEqual(value, session.getAttribute(name));
  assert.deepEqual(Object.keys(attributes).toSorted(), ['key', 'list', 'object']);
});

test('a session of either side expires for both, with one event here and one in Java', async () => {
  const mine = sides[0]!.sessions.createSession();
  mine.setAttribute('of', 'NestJS');
  mine.maxInactiveInterval = 2;
  await mine.save();
  const ofSpring = await spring.create({ attributes: { of: 'Spring' }, maxInactiveInterval: 2 });
  const ids = [mine.id, ofSpring.id].toSorted();
  await eventually(async () => {
    const here = sides.flatMap(({ events }) => events.all()).filter(({ type }) => type === 'expired');
    assert.deepEqual(here.map(({ sessionId }) => sessionId).toSorted(), ids);
    assert.deepEqual(here.map(({ session }) => `${session.getAttribute<string>('of')}`).toSorted(), [
      'NestJS',
      'Spring',
    ]);
    const java = (await spring.events()).filter(({ type }) => type === 'expired');
    assert.deepEqual(java.map(({ session }) => session.id).toSorted(), ids);
  });
  for (const id of ids) assert.deepEqual([await spring.load(id), await sides[1]!.sessions.findById(id)], [null, null]);
});
