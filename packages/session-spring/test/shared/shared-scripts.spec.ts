import { LeakGuard, SteppableRedisServer } from '@nest-session/test-infrastructure';
import { Redis } from 'ioredis';
import { SessionKeys } from '../../../session-redis/src/keys/session-keys.js';
import { type Heard, SharedScripts } from '../../src/scripts/shared/shared.scripts.js';
import { SharedKeys } from '../../src/keys/spring-keys.js';
import { SPRING_PRINCIPAL_NAME } from '../../src/values/spring-principal.js';
import { SpringWriter } from '../support/spring-writer.js';

LeakGuard.install();

const keys = new SharedKeys('spring:session', new SessionKeys('spring:session:nest'), 0);

let server: SteppableRedisServer;
let client: Redis;
let spring: SpringWriter;
let scripts: SharedScripts;
beforeAll(async () => {
  server = await SteppableRedisServer.start();
  client = new Redis(server.url);
  spring = new SpringWriter(client);
  scripts = new SharedScripts(client, keys);
});
beforeEach(async () => {
  await client.flushall();
  await server.stopClock();
});
afterAll(async () => {
  client.disconnect();
  await server.stop();
});

async function look(...heard: Heard[]): Promise<readonly string[]> {
  return (await scripts.lookAt(heard, 0)).named;
}

/** The types and ids of what was recorded. */
async function recorded(): Promise<string[]> {
  const entries = await client.xrange(keys.own.events, '-', '+');
  return entries.map(([, fields]) => `${fields[1]} ${fields[3]}`);
}

it('records a creation once, whoever looks, and later an end once', async () => {
  const id = await spring.create({ a: 1 });
  expect(await look({ id, what: 'created' }, { id, what: 'created' })).toEqual(['created', 'alive']);
  await spring.invalidate(id);
  expect(await look({ id, what: 'over' }, { id, what: 'over' }, { id, what: 'created' })).toEqual([
    'claimed',
    'already',
    'already',
  ]);
  expect(await recorded()).toEqual([`created ${id}`, `deleted ${id}`]);
});

it('waits while Spring is ending a session: it deletes the shadow key first', async () => {
  const id = await spring.create();
  await look({ id, what: 'created' });
  await client.del(spring.shadow(id));
  expect(await look({ id, what: 'over' })).toEqual(['unknown']);
  await client.hset(spring.session(id), 'maxInactiveInterval', 0);
  expect(await look({ id, what: 'over' })).toEqual(['claimed']);
});

it('records the creation of a session that has another id by now, and then the new id', async () => {
  const id = await spring.create();
  const one = await spring.changeId(id);
  const three = await spring.changeId(one);
  // Alone, nothing of it can be found.
  expect(await look({ id, what: 'created' }, { id: three, what: `was ${one}` })).toEqual(['unknown', 'unknown']);
  const heard: Heard[] = [
    { id, what: 'created', laterId: three },
    { id: one, what: `was ${id}`, laterId: three },
    { id: three, what: `was ${one}` },
  ];
  expect(await look(...heard)).toEqual(['created', 'id-changed', 'id-changed']);
  expect(await look(...heard)).toEqual(['already', 'already', 'alive']);
  expect(await recorded()).toEqual([`created ${id}`, `id-changed ${one}`, `id-changed ${three}`]);
});

it('records a new id also when the session is over, and others look for ends, before it is heard of', async () => {
  const id = await spring.create();
  const newId = await spring.changeId(id);
  await spring.invalidate(newId);
  expect(await look({ id, what: 'created', laterId: newId })).toEqual(['created']);
  await scripts.lookAt([], 10);
  expect(await look({ id: newId, what: `was ${id}` }, { id: newId, what: 'over' })).toEqual(['claimed', 'already']);
  expect(await recorded()).toEqual([`created ${id}`, `id-changed ${newId}`, `deleted ${newId}`]);
});

it('records a creation also after an end of ours that was faster', async () => {
  const id = await spring.create();
  expect(await scripts.delete({ kind: 'delete', id })).toEqual({ outcome: 'deleted' });
  expect(await look({ id, what: 'over' }, { id, what: 'created' }, { id, what: 'created' })).toEqual([
    'already',
    'created',
    'already',
  ]);
  expect(await recorded()).toEqual([`deleted ${id}`, `created ${id}`]);
});

it('records a creation of which nobody tells after a while, also when it has another id of ours by then', async () => {
  const [one, two] = [await spring.create({ a: 1 }), await spring.create({ a: 2 })];
  await scripts.delete({ kind: 'delete', id: one });
  const change = { kind: 'update', id: two, newId: 'n'.repeat(43), attributes: new Map(), indexes: new Map() } as const;
  await scripts.change(change, { before: undefined, after: undefined });
  const { next } = await scripts.lookAt([], 10);
  expect([next, await recorded()]).toEqual([5000, [`deleted ${one}`, `id-changed ${'n'.repeat(43)}`]]);
  await server.stepClock(5000);
  await scripts.lookAt([], 10);
  expect((await recorded()).slice(2).toSorted()).toEqual([`created ${one}`, `created ${two}`].toSorted());
  expect(await look({ id: one, what: 'created' }, { id: two, what: 'created' })).toEqual(['already', 'already']);
});

it('says nothing of the creation of an old session that it meets, and reports its end', async () => {
  const id = await spring.create();
  await server.stepClock(121_000);
  expect(await look({ id, what: '' })).toEqual(['alive']);
  await server.stepClock(1_800_000);
  expect((await scripts.lookAt([], 10)).due).toEqual(new Map([[id, 'claimed']]));
  expect(await recorded()).toEqual([`expired ${id}`]);
});

it('reports an end whose data is gone once it is due long ago, and nothing before', async () => {
  const id = await spring.create();
  await look({ id, what: 'created' });
  await client.del(spring.session(id), spring.shadow(id));
  expect(await look({ id, what: 'over' })).toEqual(['already']);
  await server.stepClock(1_800_000 + 300_001);
  expect((await scripts.lookAt([], 10)).due).toEqual(new Map([[id, 'claimed']]));
  expect(await recorded()).toEqual([`created ${id}`, `expired ${id}`]);
});

it('lets the clock of an application of Spring that is behind have its say, by the shadow key', async () => {
  const id = await spring.create({}, 60);
  await look({ id, what: 'created' });
  await client.hincrby(spring.session(id), 'lastAccessedTime', -30_000);
  await server.stepClock(31_000);
  expect((await scripts.lookAt([], 10)).due).toEqual(new Map());
  expect(await look({ id, what: '' })).toEqual(['alive']);
  await server.stepClock(30_000);
  expect((await scripts.lookAt([], 10)).due).toEqual(new Map([[id, 'claimed']]));
});

it('leaves a former id nowhere in the keys of Spring', async () => {
  const id = await spring.create({ [SPRING_PRINCIPAL_NAME]: 'ann' });
  const newId = 'n'.repeat(43);
  const change = { kind: 'update', id, newId, attributes: new Map(), indexes: new Map() } as const;
  expect(await scripts.change(change, { before: undefined, after: undefined })).toEqual({ outcome: 'saved' });
  const keysOfSpring = (await client.keys('spring:session:*')).filter((key) => !key.includes(':nest:'));
  expect(keysOfSpring.filter((key) => key.includes(id))).toEqual([]);
  expect(await client.smembers(spring.index('ann'))).toEqual([`"${newId}"`]);
  const [bucket] = keysOfSpring.filter((key) => key.includes(':expirations:'));
  expect(await client.smembers(bucket!)).toEqual([`"expires:${newId}"`]);
});

it('takes what is no JSON for no session, and looks at the others', async () => {
  const [id, other] = [await spring.create(), await spring.create()];
  await client.hset(spring.session(id), 'lastAccessedTime', Buffer.from('rO0ABXQAAWE=', 'base64'));
  expect(await look({ id, what: 'created' }, { id: other, what: 'created' })).toEqual(['unknown', 'created']);
  await expect(scripts.delete({ kind: 'delete', id })).rejects.toThrow('is not stored as JSON');
});

it('updates an attribute that Spring has removed, which leaves its field empty', async () => {
  const id = await spring.create({ n: 1 });
  await client.hset(spring.session(id), 'sessionAttr:n', '');
  const attributes = new Map([['n', '2']]);
  const change = {
    kind: 'update',
    id,
    attributes,
    indexes: new Map(),
    expected: { name: 'n', text: undefined },
  } as const;
  const nobody = { before: undefined, after: undefined };
  expect(await scripts.change(change, nobody)).toEqual({ outcome: 'saved' });
  expect(await scripts.change(change, nobody)).toEqual({ outcome: 'conflict', current: '2' });
  await client.hset(spring.session(id), 'sessionAttr:n', '');
  const stale = { ...change, expected: { name: 'n', text: '2' } };
  expect(await scripts.change(stale, nobody)).toEqual({ outcome: 'conflict', current: undefined });
});

it('erases no session that somebody else has signed in to since it was found', async () => {
  const [id, own] = [await spring.create({ [SPRING_PRINCIPAL_NAME]: 'bob' }), await spring.create({})];
  expect([await scripts.erase(id, 'ann'), await scripts.erase(id, 'bob')]).toEqual([
    { outcome: 'gone' },
    { outcome: 'deleted' },
  ]);
  // Somebody whom nothing but a context of Spring Security names.
  expect(await scripts.erase(own, 'ann')).toEqual({ outcome: 'deleted' });
});

it('ends no session that Spring lists under a former name, because another request has set that', async () => {
  const id = await spring.create({ [SPRING_PRINCIPAL_NAME]: 'bob' });
  await client.sadd(spring.index('ann'), `"${id}"`);
  const endOf = (value: string) => scripts.delete({ kind: 'delete', id, listed: { indexName: 'principal', value } });
  expect([await endOf('ann'), await endOf('bob')]).toEqual([{ outcome: 'gone' }, { outcome: 'deleted' }]);
});
