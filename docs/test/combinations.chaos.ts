import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import {
  Body,
  Controller,
  type DynamicModule,
  Get,
  type INestApplication,
  Injectable,
  Post,
  type Type,
} from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { WsAdapter } from '@nestjs/platform-ws';
import { SubscribeMessage, WebSocketGateway } from '@nestjs/websockets';
import { SessionAdminModule } from '@nest-session/admin';
import { MapSessionModule, OnSessionEvent, Session, SessionEvent, SessionModule } from '@nest-session/core';
import {
  deadline,
  DeadlineEvent,
  DeadlineModule,
  Deadlines,
  MapDeadlineModule,
  OnDeadline,
} from '@nest-session/deadlines';
import { SessionTelemetryModule } from '@nest-session/opentelemetry';
import { RedisSessionModule, type RedisSessionModuleOptions, SessionExpirationSweeper } from '@nest-session/redis';
import { BeanstalkdSessionTimer } from '@nest-session/timers/beanstalkd';
import { BullMqSessionTimer } from '@nest-session/timers/bullmq';
import { RedisDeadlineModule } from '@nest-session/deadlines/redis';
import { BeanstalkdServer, LeakGuard, LogRecorder, Sentinel } from '@nest-session/test-infrastructure';
import { eventually, HttpAgent, RedisCluster, RedisServer } from '@nest-session/testing';
import { SessionWebSocketModule } from '@nest-session/websockets';
import { Redis } from 'ioredis';
import { WebSocket } from 'ws';

LeakGuard.install();

const MINUTE = 60_000;
const TIMEOUT = { timeout: 30_000 };

const CHOICES = {
  place: ['single', 'cluster', 'sentinel', 'memory'],
  modules: ['sessions', 'deadlines', 'both sharing', 'both apart'],
  expirations: ['buckets', 'sorted-set', 'beanstalkd', 'bullmq'],
  encryption: ['plain', 'encrypted'],
  partitions: ['default', '4'],
  replicas: ['0', '1'],
  admin: ['no', 'yes'],
  telemetry: ['no', 'yes'],
  websockets: ['no', 'yes'],
} as const;
type Choices = typeof CHOICES;
type Row = { readonly [Name in keyof Choices]: Choices[Name][number] };
const NAMES = Object.keys(CHOICES) as (keyof Choices)[];

/** Options that nothing takes in a row would count as tried together. */
function isPossible({ place, modules, expirations, encryption, partitions, replicas, websockets }: Row): boolean {
  const ofRedis = encryption !== 'plain' || partitions !== 'default' || replicas !== '0' || expirations !== 'buckets';
  if (place === 'memory' && (ofRedis || modules === 'both sharing')) return false;
  const ofSessions = expirations !== 'buckets' || replicas !== '0' || websockets !== 'no';
  return modules !== 'deadlines' || !ofSessions;
}

function everyRow(names = NAMES): Row[] {
  const [name, ...others] = names;
  if (name === undefined) return [{} as Row];
  return everyRow(others).flatMap((row) => CHOICES[name].map((value) => ({ [name]: value, ...row }) as Row));
}

function pairsOf(row: Row): string[] {
  return NAMES.flatMap((one, i) => NAMES.slice(i + 1).map((two) => `${one} ${row[one]}, ${two} ${row[two]}`));
}

/** Few rows in which every pair of choices occurs that is possible: each row is the one with most pairs that are new. */
function pairwise(): Row[] {
  const possible = everyRow()
    .filter(isPossible)
    .map((row) => ({ row, pairs: pairsOf(row) }));
  const missing = new Set(possible.flatMap(({ pairs }) => pairs));
  const chosen: Row[] = [];
  while (missing.size > 0) {
    const gain = (pairs: string[]) => pairs.filter((pair) => missing.has(pair)).length;
    let [best, most] = [possible[0]!, 0];
    for (const each of possible) {
      const count = gain(each.pairs);
      if (count > most) [best, most] = [each, count];
    }
    for (const pair of best.pairs) missing.delete(pair);
    chosen.push(best.row);
  }
  return chosen;
}

const due = deadline<{ total: number }>('order.payment-due');

@Controller()
class CartController {
  @Post('cart')
  fill(@Session() session: Session, @Body() { item, seconds }: { item: string; seconds?: number }) {
    session.setAttribute('item', item);
    if (seconds !== undefined) session.maxInactiveInterval = seconds;
    return { id: session.id };
  }

  @Get('cart')
  read(@Session() session: Session) {
    return { item: session.getAttribute('item') };
  }

  @Post('leave')
  leave(@Session() session: Session) {
    session.invalidate();
    return {};
  }
}

@Injectable()
class Handlers {
  readonly ended: unknown[] = [];

  @OnSessionEvent(SessionEvent)
  end({ type, sessionId, session }: SessionEvent) {
    if (type !== 'created') this.ended.push([type, sessionId, session.getAttribute('item')]);
  }
}

@Injectable()
class Orders {
  readonly fired: unknown[] = [];

  @OnDeadline(due)
  unpaid({ key, data }: DeadlineEvent<typeof due>) {
    this.fired.push([key, data]);
  }
}

@WebSocketGateway({ path: '/sockets' })
class Gateway {
  @SubscribeMessage('item')
  item(@Session() session: Session) {
    return { event: 'item', data: session.getAttribute('item') };
  }
}

@Injectable()
class Everybody {
  canActivate() {
    return true;
  }
}

let server: RedisServer;
let replica: RedisServer;
let sentinel: Sentinel;
let cluster: RedisCluster;
let beanstalkd: BeanstalkdServer;
let queues: RedisServer;
beforeAll(async () => {
  server = await RedisServer.start({ args: ['--repl-diskless-sync-delay', '0'] });
  replica = await RedisServer.start({ args: ['--replicaof', `127.0.0.1 ${server.port}`] });
  queues = await RedisServer.start();
  beanstalkd = await BeanstalkdServer.start();
  cluster = await RedisCluster.start({ replicas: 1 });
  sentinel = await Sentinel.start('main', server);
}, 2 * MINUTE);
afterAll(async () => {
  await Promise.all([sentinel.stop(), beanstalkd.kill(), cluster.stop()]);
  await Promise.all([server, replica, queues].map((each) => each.stop()));
}, MINUTE);

type Store = Pick<RedisSessionModuleOptions, 'namespace' | 'partitions' | 'commandTimeout' | 'encryption'>;

function addressOf({ place }: Row): RedisSessionModuleOptions {
  if (place === 'single') return { url: server.url };
  if (place === 'cluster') return { cluster: { nodes: cluster.addresses } };
  return { sentinels: [{ host: '127.0.0.1', port: sentinel.port }], name: 'main' };
}

function expirationsOf({ expirations }: Row, name: string): RedisSessionModuleOptions['expirations'] {
  if (expirations === 'beanstalkd') {
    return new BeanstalkdSessionTimer({ host: '127.0.0.1', port: beanstalkd.port, tube: name });
  }
  if (expirations !== 'bullmq') return expirations;
  return new BullMqSessionTimer({ connection: { host: '127.0.0.1', port: queues.port }, queue: `{${name}}` });
}

function modulesOf(row: Row, name: string): DynamicModule['imports'] {
  const { place, modules, encryption, partitions, replicas, admin, telemetry, websockets } = row;
  const [hasSessions, hasDeadlines] = [modules !== 'deadlines', modules !== 'sessions'];
  const store: Store = {
    commandTimeout: '20s',
    ...(partitions === '4' && { partitions: 4 }),
    ...(encryption === 'encrypted' && {
      encryption: { keys: [{ id: 'a', key: randomBytes(32).toString('base64') }] },
    }),
  };
  const sessions: RedisSessionModuleOptions = {
    ...addressOf(row),
    ...store,
    namespace: `${name}:sessions`,
    replicas: Number(replicas),
    expirations: expirationsOf(row, name)!,
    requireAtStart: true,
  };
  const deadlines = {
    ...(modules !== 'both sharing' && addressOf(row)),
    ...store,
    namespace: `${name}:deadlines`,
    requireAtStart: true,
  };
  const inMemory = place === 'memory';
  return [
    ...(hasSessions
      ? [SessionModule.forRoot(), inMemory ? MapSessionModule.forRoot() : RedisSessionModule.forRoot(sessions)]
      : []),
    ...(hasDeadlines
      ? [DeadlineModule.forRoot(), inMemory ? MapDeadlineModule.forRoot() : RedisDeadlineModule.forRoot(deadlines)]
      : []),
    ...(admin === 'yes' ? [SessionAdminModule.forRoot({ path: 'admin', guards: [Everybody] })] : []),
    ...(telemetry === 'yes' ? [SessionTelemetryModule.forRoot()] : []),
    ...(websockets === 'yes' ? [SessionWebSocketModule.forRoot()] : []),
  ];
}

async function start(row: Row, name: string, log: LogRecorder): Promise<INestApplication> {
  const hasSessions = row.modules !== 'deadlines';
  const providers: Type[] = [Everybody];
  if (hasSessions) providers.push(Handlers);
  if (row.modules !== 'sessions') providers.push(Orders);
  if (row.websockets === 'yes') providers.push(Gateway);
  const module = {
    module: class {},
    imports: modulesOf(row, name)!,
    controllers: hasSessions ? [CartController] : [],
    providers,
  };
  const app = await NestFactory.create(module, { logger: log, abortOnError: false });
  app.useWebSocketAdapter(new WsAdapter(app));
  return app.listen(0, '127.0.0.1').then(() => app);
}

async function sessionsWork(app: INestApplication, row: Row): Promise<void> {
  const url = await app.getUrl();
  const { ended } = app.get(Handlers);
  const agent = new HttpAgent(url);
  const { id } = (await agent.post('/cart', { item: 'apple' })).json<{ id: string }>();
  expect((await agent.get('/cart')).json()).toEqual({ item: 'apple' });
  const socket = row.websockets === 'yes' ? await openSocket(url, agent) : undefined;
  expect((await agent.post('/leave')).status).toBe(201);
  await eventually(() => expect(ended).toContainEqual(['deleted', id, 'apple']), TIMEOUT);
  if (socket) await eventually(() => expect(socket.readyState).toBe(WebSocket.CLOSED), TIMEOUT);
  expect((await agent.get('/cart')).json()).toEqual({});
  // It expires.
  const short = (await new HttpAgent(url).post('/cart', { item: 'pear', seconds: 1 })).json<{ id: string }>();
  await eventually(async () => {
    if (row.place !== 'memory' && row.expirations === 'buckets')
      await app.get(SessionExpirationSweeper, { strict: false }).runOnce({ ahead: MINUTE });
    expect(ended).toContainEqual(['expired', short.id, 'pear']);
  }, TIMEOUT);
  expect(ended).toHaveLength(2);
}

async function openSocket(url: string, agent: HttpAgent): Promise<WebSocket> {
  const headers = { cookie: `SESSION=${agent.cookie('SESSION')}` };
  const socket = new WebSocket(`${url.replace('http', 'ws')}/sockets`, { headers });
  await once(socket, 'open');
  const reply = once(socket, 'message') as Promise<[Buffer]>;
  socket.send(JSON.stringify({ event: 'item' }));
  expect(JSON.parse(String((await reply)[0]))).toEqual({ event: 'item', data: 'apple' });
  return socket;
}

async function deadlinesWork(app: INestApplication): Promise<void> {
  const deadlines = app.get(Deadlines, { strict: false });
  expect(await deadlines.schedule(due, 'soon', { in: '100ms', data: { total: 5 } })).toBe('scheduled');
  expect(await deadlines.schedule(due, 'late', { in: '1h', data: { total: 6 } })).toBe('scheduled');
  const { fired } = app.get(Orders);
  await eventually(() => expect(fired).toEqual([['soon', { total: 5 }]]), TIMEOUT);
  expect((await deadlines.list(due)).map(({ key, data }) => [key, data])).toEqual([['late', { total: 6 }]]);
  expect(await deadlines.cancel(due, 'late')).toBe('cancelled');
}

/** The connections of an application, of all servers. */
async function connectionsOf(name: string): Promise<string[]> {
  const servers = [server, replica, ...cluster.nodes];
  const lists = await Promise.all(
    servers.map(async ({ url }) => {
      const client = new Redis(url);
      const list = String(await client.client('LIST'));
      client.disconnect();
      return list.split('\n');
    }),
  );
  return lists.flat().filter((line) => line.includes(` name=${name}:`));
}

const rows = pairwise();

it('the rows below have each pair of choices that is possible', () => {
  const tried = new Set(rows.flatMap(pairsOf));
  const possible = new Set(everyRow().filter(isPossible).flatMap(pairsOf));
  expect([...possible].filter((pair) => !tried.has(pair))).toEqual([]);
  expect(tried.size).toBe(possible.size);
  expect(tried).toContain('place cluster, modules both sharing');
  expect(rows.length).toBeLessThan(40);
});

it.each(
  rows.map(
    (row, i) =>
      [
        Object.entries(row)
          .map((each) => each.join(' '))
          .join(', '),
        row,
        `row-${i}`,
      ] as const,
  ),
)(
  'starts, works and ends with %s',
  async (_title, row, name) => {
    const log = new LogRecorder();
    const app = await start(row, name, log);
    try {
      if (row.modules !== 'deadlines') await sessionsWork(app, row);
      if (row.modules !== 'sessions') await deadlinesWork(app);
      if (row.admin === 'yes')
        expect((await new HttpAgent(await app.getUrl()).get('/admin/overview')).status).toBe(200);
    } finally {
      await app.close();
    }
    await eventually(async () => expect(await connectionsOf(name)).toEqual([]), TIMEOUT);
    expect(log.lines).toEqual([]);
  },
  2 * MINUTE,
);
