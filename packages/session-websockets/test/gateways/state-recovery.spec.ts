import { Inject } from '@nestjs/common';
import { SubscribeMessage, WebSocketGateway, WebSocketServer } from '@nestjs/websockets';
import { InvalidSessionOptionsError, Session, SessionContext, Sessions } from '@nest-session/core';
import type { RedisSessionModuleOptions } from '@nest-session/redis';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually, type HttpAgent, RedisServer, signIn } from '@nest-session/testing';
import { io, type Socket } from 'socket.io-client';
import type { IoNamespace } from '../../src/gateways/platforms.js';
import { beforeRecovery } from '../../src/gateways/state-recovery.js';
import { closeApps, SocketApp } from '../support/socket.app.js';

LeakGuard.install();

/** What the test needs of a socket of socket.io, on the side of the server. */
interface ServerSocket {
  readonly recovered: boolean;
  readonly rooms: ReadonlySet<string>;
  join(room: string): void;
  emit(event: string, ...args: unknown[]): void;
}

interface Namespace {
  readonly sockets: ReadonlyMap<string, ServerSocket>;
  to(room: string): { emit(event: string, ...args: unknown[]): void };
}

class Rooms {
  @WebSocketServer() readonly server!: unknown;
  readonly connected: string[] = [];

  constructor(@Inject(SessionContext) private readonly context: SessionContext) {}

  handleConnection(client: ServerSocket) {
    const user = this.context.session.principalName ?? 'nobody';
    const rooms = [...client.rooms].filter((room) => room.startsWith('room:'));
    this.connected.push(`${user} ${client.recovered ? 'again' : 'anew'} in ${rooms.join() || 'no room'}`);
    if (user !== 'nobody') client.join(`room:${user}`);
    // Gives the client the offset from which it recovers.
    client.emit('hello');
  }

  @SubscribeMessage('user')
  user(@Session() session: Session) {
    return session.principalName ?? 'nobody';
  }
}

const OPTIONS = { path: '/sockets', connectionStateRecovery: {} };

@WebSocketGateway(OPTIONS)
class MainRooms extends Rooms {}

@WebSocketGateway({ ...OPTIONS, namespace: 'admin' })
class AdminRooms extends Rooms {}

@WebSocketGateway({ ...OPTIONS, namespace: /^\/shop-\d$/ })
class ShopRooms extends Rooms {}

let redis: RedisServer;
let app: SocketApp;
const clients: Socket[] = [];

async function start(options: RedisSessionModuleOptions = {}): Promise<void> {
  const providers = [MainRooms, AdminRooms, ShopRooms];
  app = await SocketApp.start({ platform: 'socket.io', url: redis.url, providers, redis: options });
}

beforeAll(async () => {
  redis = await RedisServer.start();
});
beforeEach(() => start());
afterEach(async () => {
  for (const client of clients.splice(0)) client.disconnect();
  await closeApps();
});
afterAll(() => redis.stop());

const cookieOf = (agent: HttpAgent) => agent.headersFor('/');

/** A page, which sends the cookies that its browser has whenever it connects. */
class Page {
  readonly heard: unknown[] = [];

  private constructor(
    private readonly client: Socket,
    private readonly gateway: Rooms,
    private readonly name: string,
  ) {
    client.on('private', (text: unknown) => this.heard.push(text));
  }

  static async open(agent: HttpAgent, gateway: Rooms = app.nest.get(MainRooms), name = '/'): Promise<Page> {
    const client = io(app.origin + name, {
      path: '/sockets',
      transports: ['websocket'],
      extraHeaders: cookieOf(agent),
      forceNew: true,
      reconnection: false,
    });
    clients.push(client);
    await new Promise((resolve) => client.once('hello', resolve));
    return new Page(client, gateway, name);
  }

  get namespace(): Namespace {
    const server = this.gateway.server as { server?: { of(name: string): Namespace }; of?(name: string): Namespace };
    return (server.of ? (server as { of(name: string): Namespace }) : server.server!).of(this.name);
  }

  /** Loses its connection. Resolves when the server knows. */
  async lose(): Promise<void> {
    this.client.io.engine.close();
    await eventually(() => expect(this.namespace.sockets.size).toBe(0));
  }

  /** Resolves when the server has closed it. */
  closed(): Promise<unknown> {
    return new Promise((resolve) => this.client.once('disconnect', resolve));
  }

  /** Comes back, without a cookie where there is no agent. Rejects when it is refused. */
  async comeBack(agent?: HttpAgent): Promise<void> {
    Object.assign(this.client.io.opts, { extraHeaders: agent ? cookieOf(agent) : {} });
    const connected = new Promise<void>((resolve, reject) => {
      this.client.once('connect', resolve).once('connect_error', reject);
    });
    this.client.connect();
    await connected;
  }

  /** What it has heard when it has everything that was sent until now. */
  async hears(): Promise<unknown[]> {
    await this.client.emitWithAck('user');
    return this.heard;
  }
}

const tell = (page: Page, text: string) => page.namespace.to('room:ada').emit('private', text);

describe('a client of socket.io that was interrupted', () => {
  it.each([
    ['the namespace /', () => app.nest.get(MainRooms), '/'],
    ['a namespace', () => app.nest.get(AdminRooms), '/admin'],
    ['a namespace of a pattern', () => app.nest.get(ShopRooms), '/shop-1'],
  ])('has its rooms back with its session alone, in %s', async (_, gateway, name) => {
    const ada = await signIn(app.nest, { principalName: 'ada' });
    const page = await Page.open(ada, gateway(), name);
    await page.lose();
    tell(page, 'missed');
    await page.comeBack(ada);
    tell(page, 'live');
    expect(await page.hears()).toEqual(['missed', 'live']);
    await page.lose();
    tell(page, 'missed without a cookie');
    await page.comeBack();
    tell(page, 'live without a cookie');
    expect(await page.hears()).toEqual(['missed', 'live']);
    expect(gateway().connected).toEqual(['ada anew in no room', 'ada again in room:ada', 'nobody anew in no room']);
  });

  it('gets nothing more of a session that has ended, with its cookie and without', async () => {
    const ada = await signIn(app.nest, { principalName: 'ada' });
    const page = await Page.open(ada);
    const other = await Page.open(ada, app.nest.get(AdminRooms), '/admin');
    await page.lose();
    const closed = other.closed();
    await app.nest.get(Sessions).endAll('ada');
    // The instance has heard of the end. A client that comes during that is refused.
    await closed;
    for (const agent of [ada, undefined]) {
      tell(page, 'missed');
      await page.comeBack(agent);
      tell(page, 'live');
      expect(await page.hears()).toEqual([]);
      await page.lose();
    }
  });

  it('gets nothing of the user who has used its browser before', async () => {
    const agent = await signIn(app.nest, { principalName: 'ada' });
    const page = await Page.open(agent);
    await page.lose();
    await agent.post('/logout');
    await agent.post('/login/bob');
    tell(page, 'missed');
    await page.comeBack(agent);
    tell(page, 'live');
    expect(await page.hears()).toEqual([]);
    expect(app.nest.get(MainRooms).connected).toEqual(['ada anew in no room', 'bob anew in no room']);
  });

  it('has not its rooms back when its session has another id since', async () => {
    const agent = await signIn(app.nest, { principalName: 'ada' });
    const page = await Page.open(agent);
    await page.lose();
    await agent.post('/login/ada');
    tell(page, 'missed');
    await page.comeBack(agent);
    expect(await page.hears()).toEqual([]);
    expect(app.nest.get(MainRooms).connected.at(-1)).toBe('ada anew in no room');
  });

  it('is refused while the store is down', async () => {
    await start({ commandTimeout: '300ms' });
    const ada = await signIn(app.nest, { principalName: 'ada' });
    const page = await Page.open(ada);
    await page.lose();
    await redis.kill();
    await expect(page.comeBack(ada)).rejects.toThrow('Session store unavailable');
    expect(app.nest.get(MainRooms).connected).toEqual(['ada anew in no room']);
    await redis.restart();
  });

  it('without a session has its rooms back', async () => {
    const page = await Page.open(app.agent());
    await page.lose();
    await page.comeBack();
    await page.hears();
    expect(app.nest.get(MainRooms).connected).toEqual(['nobody anew in no room', 'nobody again in no room']);
  });
});

it('a version of socket.io that cannot be asked before a recovery is refused at start', () => {
  const decide = () => Promise.reject(new Error('Not called'));
  expect(() => beforeRecovery({} as IoNamespace, decide)).toThrow(InvalidSessionOptionsError);
});
