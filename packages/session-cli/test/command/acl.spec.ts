import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Injectable } from '@nestjs/common';
import { IndexedSessionRepository, OnSessionEvent, SessionDeletedEvent } from '@nest-session/core';
import { RedisDeadlineModule } from '@nest-session/deadlines/redis';
import { deadline, DeadlineModule, Deadlines, OnDeadline } from '@nest-session/deadlines';
import { SessionEventGroups } from '@nest-session/redis';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually, RedisServer } from '@nest-session/testing';
import { Redis } from 'ioredis';
import { parse } from 'yaml';
import { EventInstance } from '../../../session-redis/test/support/event-instance.fixture.js';
import { calledCommand, toldByCommand } from '../support/called.command.js';

LeakGuard.install();

const COMPOSE = new URL('../../../session-core/schematics/files/compose.yaml.template', import.meta.url);
const due = deadline('order-due');

@Injectable()
class Handlers {
  readonly heard: string[] = [];

  @OnSessionEvent(SessionDeletedEvent)
  ended() {
    this.heard.push('session');
  }

  @OnDeadline(due)
  due({ key }: { readonly key: string }) {
    this.heard.push(key);
  }
}

let folder: string;
let server: RedisServer;
let admin: Redis;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'acl-'));
  await writeFile(join(folder, 'users'), '');
  server = await RedisServer.start({ args: ['--aclfile', join(folder, 'users'), '--notify-keyspace-events', 'Kx'] });
  admin = new Redis(server.url);
});
beforeEach(() => admin.flushall());
afterAll(async () => {
  admin.disconnect();
  await server.stop();
  await rm(folder, { recursive: true });
});

/** The words behind `ACL SETUSER app` that it prints. */
async function printed(...args: string[]): Promise<string[]> {
  const text = (await toldByCommand(['acl', ...args])).split('\n{')[0]!;
  return text
    .split('\n')
    .flatMap((line) => line.replace(/^ACL SETUSER \w+ /, '').split(/ (?![^(]*\))/))
    .filter(Boolean);
}

async function rulesOf(...args: string[]): Promise<string[]> {
  return (JSON.parse(await calledCommand(['acl', ...args])) as { rules: string[] }).rules;
}

/** Lets the server read the user from its file. */
async function grant(words: readonly string[]): Promise<void> {
  await writeFile(join(folder, 'users'), `user app ${words.join(' ')}\n`);
  await admin.acl('LOAD');
  await admin.acl('LOG', 'RESET');
}

/** What is denied, but for the name of the client and a look at a setting that is right: both are not needed. */
async function denied(): Promise<string[]> {
  const entries = (await admin.acl('LOG')) as string[][];
  return entries
    .map((entry) => entry[entry.indexOf('object') + 1]!)
    .filter((each) => !/^(?:client\|setinfo|config\|get)$/.test(each));
}

it.each([
  ['a Redis', []],
  ['ElastiCache', ['--format', 'elasticache']],
  ['the second database of a Redis', ['--database', '1']],
])(
  'lets an application with sessions, deadlines and the admin page log in to %s, and denies nothing',
  async (_, args) => {
    const words = await printed('--for', 'sessions,deadlines,admin', ...args);
    await grant(args.includes('elasticache') ? [...words, '>a-long-secret'] : words);
    const url = `redis://app:a-long-secret@127.0.0.1:${server.port}/${args[0] === '--database' ? 1 : 0}`;
    const imports = [DeadlineModule.forRoot(), RedisDeadlineModule.forRoot({ url })];
    const instance = await EventInstance.start({ redis: { url }, imports, providers: [Handlers] });
    try {
      const session = instance.module.get(IndexedSessionRepository, { strict: false }).createSession();
      session.signIn('ada');
      await session.save();
      session.invalidate();
      await session.save();
      await instance.module.get(Deadlines, { strict: false }).schedule(due, 'order-1', { in: '1ms' });
      const { heard } = instance.module.get(Handlers);
      await eventually(() => expect(heard.toSorted()).toEqual(['order-1', 'session']));
      expect(await instance.module.get(SessionEventGroups, { strict: false }).list()).toHaveLength(1);
      expect(await denied()).toEqual([]);
    } finally {
      await instance.stop();
    }
  },
);

it('confines a user to a database, where the server can', async () => {
  const words = await printed('--format', 'valkey', '--database', '1');
  const version = /valkey_version:(\d+)\.(\d+)/
    .exec(await admin.info('server'))
    ?.slice(1)
    .map(Number);
  if (!version || version[0]! < 9 || (version[0] === 9 && version[1]! < 1)) {
    await expect(admin.acl('SETUSER', 'app', ...words)).rejects.toThrow(`'db=1'`);
    return;
  }
  await grant(words);
  const client = new Redis(`redis://app:a-long-secret@127.0.0.1:${server.port}/1`);
  expect(await client.get('nest:session:a')).toBeNull();
  await expect(client.select(0)).rejects.toThrow('NOPERM');
  client.disconnect();
});

it('gives partitions their channels, a namespace its keys, and a user for deadlines none of sessions', async () => {
  const partitioned = await rulesOf('--for', 'sessions,partitions', '--namespace', 'shop', '--database', '2');
  expect(partitioned.filter((rule) => !rule.startsWith('+'))).toEqual([
    '~shop:*',
    '&__keyspace@2__:shop:{*}:sessions:expires:*',
    '&shop:*',
  ]);
  const [keys, channels] = await rulesOf('--for', 'deadlines');
  expect([keys, channels]).toEqual(['~nest:deadlines:*', '&nest:deadlines:*']);
});

it('is what nest add writes into compose.yaml', async () => {
  const { services } = parse(await readFile(COMPOSE, 'utf8')) as { services: { redis: { command: string[] } } };
  const [user] = services.redis.command.filter((line) => line.startsWith('--user app'));
  const [, , on, password, ...rules] = user!.split(' ');
  expect([on, password]).toEqual(['on', '>${REDIS_PASSWORD:?}']);
  expect(rules.toSorted()).toEqual((await rulesOf('--for', 'sessions,deadlines')).toSorted());
});

it.each([
  [['--for', 'sessions,passwords'], '--for has "passwords", but may have sessions, requests'],
  [['--format', 'json'], '--format must be redis, valkey, elasticache'],
  [['--database', 'first'], '--database must be the number of a database'],
])('refuses %j', async (args, message) => {
  expect(await toldByCommand(['acl', ...args])).toContain(message);
});
