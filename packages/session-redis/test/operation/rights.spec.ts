import { readdirSync, readFileSync } from 'node:fs';
import { Injectable, type Type } from '@nestjs/common';
import {
  IndexedSessionRepository,
  OnSessionEvent,
  PRINCIPAL_NAME_INDEX_NAME,
  SessionDeletedEvent,
  SessionEvent,
  SessionExpiredEvent,
} from '@nest-session/core';
import { SessionEventGroups, SessionExpirationSweeper } from '@nest-session/redis';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually, RedisServer } from '@nest-session/testing';
import { Redis } from 'ioredis';
import { SessionEventTrimmer } from '../../src/delivery/session-event.trimmer.js';
import { commandStats } from '../support/command.stats.js';
import { EventInstance } from '../support/event-instance.fixture.js';

LeakGuard.install();

const DOCUMENT = new URL('../../../../docs/redis-data-model.md', import.meta.url);

/** The rights that the documentation asks operators to give. */
const DOCUMENTED = /```text acl\n([^`]+)```/.exec(readFileSync(DOCUMENT, 'utf8'))?.[1]?.trim().split(/\s+/) ?? [];

@Injectable()
class Handlers {
  fails = true;
  readonly heard: string[] = [];

  @OnSessionEvent(SessionDeletedEvent)
  handle({ id }: SessionDeletedEvent) {
    if (this.fails) throw new Error('on purpose');
    this.heard.push(id);
  }

  @OnSessionEvent(SessionExpiredEvent)
  remind({ id }: SessionExpiredEvent) {
    this.heard.push(id);
  }

  @OnSessionEvent(SessionEvent, { broadcast: true })
  hear() {}
}

/** Commands without a right of their own. */
const ALWAYS = ['auth', 'client|setinfo', 'hello', 'quit'];
/** The commands of the test itself, as another user. */
const OWN = ['acl|log', 'config|resetstat'];

const NEVER = { cron: '0 0 0 29 2 *' };

let server: RedisServer;
let admin: Redis;
beforeAll(async () => {
  server = await RedisServer.start();
  admin = new Redis(server.url);
});
afterAll(async () => {
  admin.disconnect();
  await server.stop();
});

/** Everything that an instance does with Redis, from its start to its shutdown. */
async function live(): Promise<void> {
  const url = `redis://app:secret@127.0.0.1:${server.port}`;
  const redis = { url, cleanup: NEVER, events: { attempts: 2 } };
  const instance = await EventInstance.start({ redis, providers: [Handlers] });
  const get = <T>(token: { readonly prototype: T }) => instance.module.get<T>(token as Type<T>, { strict: false });
  const repository = get(IndexedSessionRepository);
  const groups = get(SessionEventGroups);
  const handlers = get(Handlers);

  const session = repository.createSession();
  session.setAttribute('cart', ['apple']);
  session.setAttribute('visits', 1);
  session.principalName = 'ann';
  await session.save();
  session.changeSessionId();
  session.removeAttribute('visits');
  session.maxInactiveInterval = 'never';
  await session.save();
  await session.updateAttribute<string[]>('cart', (cart = []) => [...cart, 'pear']);
  session.principalName = 'bob';
  session.maxInactiveInterval = 60;
  session.absoluteTimeout = 3600;
  await session.save();
  const [found] = await repository.findByPrincipalName('bob');
  expect(await repository.countByIndex(PRINCIPAL_NAME_INDEX_NAME, 'bob')).toBe(1);
  for await (const { id } of repository.listByIndex(PRINCIPAL_NAME_INDEX_NAME, 'bob')) expect(id).toBe(session.id);
  expect(await repository.deleteByIndex(PRINCIPAL_NAME_INDEX_NAME, 'bob', [session.id])).toBe(0);
  expect(found!.getAttribute('cart')).toEqual(['apple', 'pear']);
  session.absoluteTimeout = 'never';
  await session.save();
  await repository.touch(found!);

  found!.invalidate();
  await found!.save();
  await eventually(async () => expect(await groups.deadLetters()).toHaveLength(1));
  handlers.fails = false;
  expect(await groups.replayAll()).toBe(1);
  await eventually(() => handlers.heard.length === 1);
  await groups.create('another');
  expect((await groups.list()).map(({ name }) => name)).toEqual(['another', 'default']);
  await groups.remove('another');
  await groups.discardAll();

  const brief = repository.createSession();
  brief.setAttribute('cart', ['plum']);
  brief.maxInactiveInterval = 1;
  await brief.save();
  await eventually(() => handlers.heard.includes(`expired:${brief.id}`));
  const lasting = repository.createSession();
  lasting.setAttribute('cart', ['fig']);
  await lasting.save();
  const [minute] = await admin.zrange('nest:session:expirations', '0', '0');
  await admin.set(`nest:session:expirations:${minute}`, 'foreign');
  await get(SessionExpirationSweeper).runOnce({ ahead: 3_600_000 });
  await get(SessionEventTrimmer).runOnce();
  await instance.stop();
}

/** The commands that the scripts call, as Redis names them. */
function calledByScripts(): string[] {
  const folder = new URL('../../src/scripts/', import.meta.url);
  const paths = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((path) => path.endsWith('.lua'));
  const calls = paths.flatMap((path) => [
    ...readFileSync(new URL(path, folder), 'utf8').matchAll(
      /redis\.call\('(XGROUP|XINFO)', '(\w+)'|redis\.call\('(\w+)'/g,
    ),
  ]);
  return calls.map(([, container, sub, name]) => (name ?? `${container}|${sub}`).toLowerCase());
}

it('an instance needs all documented rights and no others', async () => {
  await admin.acl('SETUSER', 'app', 'reset', 'on', '>secret', ...DOCUMENTED);
  await admin.config('RESETSTAT');
  await live();
  // From Redis 7.2 on, ioredis sends its name, and works without the right to do so.
  const denied = ((await admin.acl('LOG')) as unknown[][]).filter((entry) => !entry.includes('client|setinfo'));
  expect(denied).toEqual([]);
  const asked = [...(await commandStats(admin)).keys()].filter((name) => ![...ALWAYS, ...OWN].includes(name));
  const commands = new Set([...asked, ...calledByScripts()]);
  const granted = DOCUMENTED.filter((right) => right.startsWith('+')).map((right) => right.slice(1));
  expect([...commands].toSorted()).toEqual(granted.toSorted());
});
