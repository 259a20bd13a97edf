import { readdir, readFile } from 'node:fs/promises';
import { Injectable } from '@nestjs/common';
import { deadline, DeadlineEvent, DeadlineModule, Deadlines, OnDeadline } from '@nest-session/deadlines';
import { Sessions } from '@nest-session/core';
import { sendOwnCommands } from '../../src/connection/own-commands.js';
import { internalsOf } from '../../src/connection/login.js';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually, RedisCluster, RedisServer } from '@nest-session/testing';
import { Command, Redis } from 'ioredis';
import { resolveRedisSessionOptions } from '../../../session-redis/src/configuration/redis-session.options.js';
import { closeConnections, createConnections } from '../../src/connection/redis-connections.js';
import { RedisDeadlineModule } from '../../../deadlines/src/redis/redis-deadline.module.js';
import type { RedisSessionModuleOptions } from '../../../session-redis/src/configuration/redis-session.options.js';
import { App } from '../../../session-redis/test/support/app.fixture.js';
import { calledCommand } from '../../../session-cli/test/support/called.command.js';
import { ALL_RIGHTS } from '../../../session-redis/test/support/with-all-rights.js';

LeakGuard.install();

type Transform = (value: unknown) => unknown;
const { argument, reply } = (
  Command as unknown as { readonly _transformer: Record<'argument' | 'reply', Record<string, Transform>> }
)._transformer;
const before = { argument: { ...argument }, reply: { ...reply } };

/** What other code of the process may do: every command of every client of ioredis is another one from now on. */
function transformEverything(): void {
  const client = new Redis({ lazyConnect: true });
  for (const name of [...client.getBuiltinCommands(), 'eval', 'evalsha'].flatMap((each) => [
    each,
    each.toUpperCase(),
  ])) {
    Command.setReplyTransformer(name, () => 'transformed');
    Command.setArgumentTransformer(name, () => ['transformed']);
  }
}

function transformAsBefore(): void {
  for (const [transformers, known] of [
    [argument, before.argument],
    [reply, before.reply],
  ] as const) {
    for (const name of Object.keys(transformers)) delete transformers[name];
    Object.assign(transformers, known);
  }
}

const due = deadline<{ holder: string }>('seat.hold-ends');

@Injectable()
class Seats {
  readonly freed: unknown[] = [];

  @OnDeadline(due)
  free({ key, data }: DeadlineEvent<typeof due>) {
    this.freed.push([key, data]);
  }
}

let server: RedisServer;
let cluster: RedisCluster;
beforeAll(async () => {
  [server, cluster] = await Promise.all([RedisServer.start(), RedisCluster.start()]);
});
afterEach(transformAsBefore);
afterAll(() => Promise.all([server.stop(), cluster.stop()]));

const PLACES: readonly (readonly [string, () => RedisSessionModuleOptions, () => string])[] = [
  ['one server', () => ({ url: server.url }), () => `--url ${server.url}`],
  [
    'a Cluster',
    () => ({ cluster: { nodes: cluster.addresses }, ...ALL_RIGHTS }),
    () => `--cluster 127.0.0.1:${cluster.addresses[0]!.port}`,
  ],
];

/** What a command prints as JSON, without times. */
async function printed(words: string): Promise<string> {
  // What goes on meanwhile.
  return (await calledCommand(words.split(' '))).replaceAll(/"(?:timeToLive|keptFor|looked)":\d+,?/g, '');
}

it.each(PLACES)(
  'transformers of every command change nothing that sessions, events, deadlines and commands do on %s',
  async (_name, address, flags) => {
    transformEverything();
    const app = await App.start({
      redis: { ...address(), requireAtStart: true },
      imports: [DeadlineModule.forRoot(), RedisDeadlineModule.forRoot({ requireAtStart: true })],
      providers: [Seats],
    });
    try {
      const agent = app.agent();
      await agent.post('/set/cart', { value: ['apple'] });
      const { id } = (await agent.post('/login/ada')).json<{ id: string }>();
      expect((await agent.get('/read')).json()).toMatchObject({ id, attributes: { cart: ['apple'], user: 'ada' } });
      const sessions = app.nest.get(Sessions, { strict: false });
      expect(await sessions.count('ada')).toBe(1);

      const deadlines = app.nest.get(Deadlines, { strict: false });
      await deadlines.schedule(due, '12a', { in: '10m', data: { holder: 'ada' } });
      await deadlines.schedule(due, '12b', { in: 0, data: { holder: 'bob' } });
      expect(await deadlines.get(due, '12a')).toMatchObject({ data: { holder: 'ada' } });
      const { freed } = app.nest.get(Seats, { strict: false });
      await eventually(() => expect(freed).toEqual([['12b', { holder: 'bob' }]]));
      expect(await deadlines.list(due)).toMatchObject([{ key: '12a', data: { holder: 'ada' } }]);

      const show = `show ${id} ${flags()}`;
      const reads = [show, `list --user ada ${flags()}`, `verify ${flags()}`, `groups ${flags()}`];
      const told = await Promise.all(reads.map(printed));
      const findings = async () => {
        const { checks } = JSON.parse(await printed(`doctor --ignore cleanup ${flags()}`)) as {
          checks: { check: string; status: string }[];
        };
        return checks.map(({ check, status }) => `${check} ${status}`).filter((each) => !each.startsWith('latency'));
      };
      const examined = await findings();
      transformAsBefore();
      expect(told).toEqual(await Promise.all(reads.map(printed)));
      expect(examined).toEqual(await findings());
      transformEverything();

      await agent.post('/logout');
      await eventually(() => expect(app.events.all().map(({ type }) => type)).toContain('deleted'));
      const ended = app.events.all().find(({ type }) => type === 'deleted')!;
      expect([ended.dataLost, ended.session.getAttribute('cart')]).toEqual([false, ['apple']]);
    } finally {
      await app.stop();
    }
  },
  60_000,
);

it("the scripts of the application's client do not replace commands", async () => {
  const scripts = { hgetall: { lua: "return {'of', 'theirs'}", numberOfKeys: 1 } };
  const client = new Redis(server.url, { lazyConnect: true, scripts, ...ALL_RIGHTS });
  const { background, ...others } = createConnections(resolveRedisSessionOptions({ client }));
  try {
    await background.hset('hash', { field: 'ours', __proto__: null, more: 1 });
    await background.hset('hash', new Map([['of a map', '2']]));
    expect(await background.hgetall('hash')).toEqual({ field: 'ours', more: '1', 'of a map': '2' });
    expect(await background.hgetallBuffer('hash')).toMatchObject({ field: Buffer.from('ours') });
    expect(await background.call('hgetall', 'hash')).toHaveLength(6);
  } finally {
    await closeConnections({ background, ...others });
  }
});

it('a version of ioredis that connects or sends in another way is refused, with what to do', () => {
  const client = new Redis({ lazyConnect: true });
  const without = (member: 'connector' | 'sendCommand') => Object.create(client, { [member]: { value: {} } }) as Redis;
  const problem = (what: string) =>
    `This version of ioredis has no ${what}, which the connections of nest-session need: install ioredis 5.11 or 6.0`;
  expect(() => internalsOf(without('connector'))).toThrow(problem('`connector.connect()` of a client'));
  expect(() => sendOwnCommands(without('sendCommand'))).toThrow(problem('`sendCommand()` of a client'));
});

it('every connection of the library is opened in one file, which lets it send commands of its own', async () => {
  const packages = new URL('../../../', import.meta.url);
  const files = (await readdir(packages, { recursive: true })).filter((path) => /^[\w-]+\/src\/.*\.ts$/.test(path));
  const opens = await Promise.all(
    files.map(async (path) => {
      const source = await readFile(new URL(path, packages), 'utf8');
      return /new (?:Redis|Cluster)\(|\.duplicate\(/.test(source) ? path : undefined;
    }),
  );
  // The second one only reads a url.
  expect(opens.filter((path) => path !== undefined).toSorted()).toEqual([
    'redis-events/src/connection/open-redis.ts',
    'redis-events/src/connection/shown-server.ts',
  ]);
});
