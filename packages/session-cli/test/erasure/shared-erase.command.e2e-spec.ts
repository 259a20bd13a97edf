import { Injectable } from '@nestjs/common';
import { OnSessionEvent, SessionDestroyedEvent } from '@nest-session/core';
import { SessionEventGroups } from '@nest-session/redis';
import { SpringJsonSerializer } from '@nest-session/spring';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually, RedisServer } from '@nest-session/testing';
import { Redis } from 'ioredis';
import { SPRING_PRINCIPAL_NAME } from '../../../session-spring/src/values/spring-principal.js';
import type { App } from '../../../session-redis/test/support/app.fixture.js';
import { startWithSpring } from '../../../session-spring/test/support/spring.app.js';
import { jsonOf, runCommand } from '../support/command.process.js';
import { documentedLines } from '../../../session-redis/test/support/documented.rights.js';
import { everything } from '../../../session-redis/test/support/everything.js';
import { SpringWriter } from '../../../session-spring/test/support/spring-writer.js';

LeakGuard.install();

const NAME = 'erika.mustermann@example.org';
const VALUE = 'planted-value-of-erika';

@Injectable()
class Handlers {
  readonly lost: string[] = [];

  @OnSessionEvent(SessionDestroyedEvent)
  handle({ dataLost, sessionId, session }: SessionDestroyedEvent) {
    if (dataLost) this.lost.push(sessionId);
    throw new Error(`The user ${session.principalName} cannot be mailed`);
  }
}

let server: RedisServer;
let client: Redis;
let spring: SpringWriter;
let app: App;
beforeEach(async () => {
  server = await RedisServer.start();
  client = new Redis(server.url);
  spring = new SpringWriter(client);
  app = await startWithSpring(
    {
      url: server.url,
      mode: 'shared',
      serializer: new SpringJsonSerializer('plain'),
      events: { attempts: 1 },
    },
    { providers: [Handlers], handlers: false },
  );
});
afterEach(async () => {
  await app.stop();
  client.disconnect();
  await server.stop();
});

const ofUser = (name: string, value: string) => spring.create({ [SPRING_PRINCIPAL_NAME]: name, address: value });

/** The ids of the ends in the stream, each with its data. */
async function ends(): Promise<string[]> {
  const entries = await client.xrange('spring:session:nest:events', '-', '+');
  const fields = entries.map(([, list]) => new Map(list.flatMap((name, i) => (i % 2 ? [] : [[name, list[i + 1]!]]))));
  const ended = fields.filter((entry) => entry.get('type') === 'deleted');
  return ended.map((entry) => `${entry.get('session')} ${entry.get('data')}`);
}

it('erases what is kept of a user beside Spring and in its keys, and tells of each end', async () => {
  const groups = app.nest.get(SessionEventGroups, { strict: false });
  // Nobody acknowledges its events, so that they stay.
  await groups.create('absent', { from: 'oldest' });
  const agent = app.agent();
  await agent.post('/set/address', { value: VALUE });
  await agent.post(`/login/${NAME}`);
  const [mine] = (await client.smembers(spring.index(NAME))).map((id) => JSON.parse(id) as string);
  const [theirs, ended] = [await ofUser(NAME, VALUE), await ofUser(NAME, VALUE)];
  const other = await ofUser('otto', 'value of otto');
  await spring.invalidate(ended);
  await eventually(async () => expect(await groups.deadLetters()).toHaveLength(1));
  for (const planted of [NAME, VALUE]) expect(await everything(client)).toContain(planted);

  for (const line of documentedLines(['spring shared', 'handlers', 'groups']))
    await client.acl('SETUSER', 'app', ...line);
  const env = { REDIS_URL: server.url.replace('//', '//app:a-long-secret@') };
  const command = `erase --namespace spring:session:nest --user ${NAME}`;
  const { json } = await jsonOf<Record<string, unknown>>(command, env);
  expect(json).toMatchObject({ live: 2, ended: 1, deadLetters: 1, erased: false });
  for (const id of [mine!, theirs]) expect(await client.hget(spring.session(id), 'maxInactiveInterval')).toBe('1800');
  expect(await everything(client)).toContain(VALUE);

  const { code, stderr } = await runCommand(`${command} --yes`, env);
  expect([code, stderr]).toEqual([0, '']);
  const { lost } = app.nest.get(Handlers, { strict: false });
  await eventually(() => expect(lost.toSorted()).toEqual([mine!, theirs].toSorted()));
  const left = await everything(client);
  expect([NAME, VALUE].filter((planted) => left.includes(planted))).toEqual([]);
  expect(left).toContain('value of otto');
  expect((await ends()).toSorted()).toEqual([`${mine} {}`, `${theirs} {}`].toSorted());
  expect(await client.hget(spring.session(other), 'maxInactiveInterval')).toBe('1800');
  expect((await runCommand(command, env)).code).toBe(0);
});
