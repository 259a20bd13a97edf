import { Controller, Param, Post, Req, Session as NestSession } from '@nestjs/common';
import {
  ConnectedSocket,
  MessageBody,
  type OnGatewayConnection,
  SubscribeMessage,
  WebSocketGateway,
} from '@nestjs/websockets';
import { Session, SessionAttribute, SessionId, Sessions } from '@nest-session/core';
import { ExpressSessionModule } from '@nest-session/express-session';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually, type HttpAgent, RedisServer, sessionOf } from '@nest-session/testing';
import { closeApps, PLATFORMS, type Platform, reply, SocketApp, type SocketAppOptions } from '../support/socket.app.js';
import { closeClients, connect } from '../support/socket.client.js';

LeakGuard.install();

let redis: RedisServer;
beforeAll(async () => {
  redis = await RedisServer.start();
});
afterAll(() => redis.stop());
afterEach(async () => {
  closeClients();
  await closeApps();
});

const called = (call: (done: (error?: Error) => void) => unknown) =>
  new Promise<string | undefined>((resolve) => call((error) => resolve(error?.message)));

/** The pages of an application with the API of express-session. */
@Controller('cart')
class CartController {
  @Post(':item')
  add(@Req() { session }: any, @Param('item') item: string) {
    session.cart = [...((session.cart as string[] | undefined) ?? []), item];
  }
}

@WebSocketGateway({ path: '/sockets' })
class CartGateway implements OnGatewayConnection {
  readonly connected: unknown[] = [];
  readonly clients: any[] = [];

  handleConnection(client: any) {
    this.clients.push(client);
    this.connected.push(client.request.session?.cart, client.request.sessionID);
  }

  @SubscribeMessage('add')
  add(@ConnectedSocket() { request }: any) {
    request.session.cart.push('by message');
    return reply('add', request.session.cart);
  }

  @SubscribeMessage('given')
  given(
    @Session() core: any,
    @NestSession() nest: any,
    @SessionId() id: string,
    @SessionAttribute('cart') cart: unknown,
    @ConnectedSocket() { request }: any,
  ) {
    const same = core === request.session && nest === request.session && id === request.sessionID;
    const others = this.clients.map((client) => client.request.session === request.session);
    return reply('given', { same, cart, properties: Object.keys(core ?? {}), others });
  }

  @SubscribeMessage('methods')
  async methods(@Session() session: any, @ConnectedSocket() { request }: any) {
    session.saved = true;
    const outcomes = [await called((done) => session.save(done))];
    session.cart = 'lost';
    outcomes.push(await called((done) => session.reload(done)));
    const { cart, saved } = request.session;
    outcomes.push(await called((done) => request.session.regenerate(done)));
    return reply('methods', { outcomes, cart, saved, isOther: session !== request.session });
  }

  @SubscribeMessage('destroy')
  async destroy(@ConnectedSocket() { request }: any) {
    await called((done) => request.session.destroy(done));
    return reply('destroy', typeof request.session);
  }

  @SubscribeMessage('start')
  start(@Session() session: any) {
    session.cart = [];
  }
}

let app: SocketApp;
let agent: HttpAgent;

async function start(platform: Platform, options: Partial<SocketAppOptions> = {}) {
  const imports = [ExpressSessionModule.forRoot()];
  const common = { platform, url: redis.url, providers: [CartGateway], controllers: [CartController] };
  app = await SocketApp.start({ imports, ...common, ...options });
  agent = app.agent();
  await agent.post('/cart/book');
}

const stored = async () => (await sessionOf(app.nest, agent))!;

describe.each(PLATFORMS)('client.request.session of %s', (platform) => {
  it('is the property bag that the parameters of a message have', async () => {
    await start(platform);
    const client = await connect(platform, agent);
    const other = await connect(platform, agent);
    await eventually(() => expect(app.nest.get(CartGateway).clients).toHaveLength(2));
    const given = { same: true, cart: ['book'], properties: ['cookie', 'cart'] };
    expect(await client.ask('given')).toEqual({ ...given, others: [true, false] });
    expect(await other.ask('given')).toEqual({ ...given, others: [false, true] });
  });

  it('is fresh in each message, and saved before the reply', async () => {
    await start(platform);
    const client = await connect(platform, agent);
    await agent.post('/cart/pen');
    expect(await client.ask('add')).toEqual(['book', 'pen', 'by message']);
    expect((await stored()).getAttribute('cart')).toEqual(['book', 'pen', 'by message']);
    await agent.post('/cart/ink');
    expect(await client.ask('given')).toMatchObject({ cart: ['book', 'pen', 'by message', 'ink'] });
  });

  it('is there in handleConnection(), and for listeners of the socket, which load it again and save it', async () => {
    await start(platform);
    await connect(platform, agent);
    const gateway = app.nest.get(CartGateway);
    await eventually(() => expect(gateway.connected).toHaveLength(2));
    expect(gateway.connected).toEqual([['book'], (await stored()).id]);
    const { request } = gateway.clients[0];
    await agent.post('/cart/pen');
    expect(request.session.cart).toEqual(['book']);
    expect(await called((done) => request.session.reload(done))).toBeUndefined();
    request.session.cart.push('ink');
    expect(await called((done) => request.session.save(done))).toBeUndefined();
    expect((await stored()).getAttribute('cart')).toEqual(['book', 'pen', 'ink']);
    await agent.post('/logout');
    await eventually(async () =>
      expect(await called((done) => request.session.reload(done))).toBe('failed to load session'),
    );
  });

  it('can be saved and loaded again in a message, and says why it cannot be regenerated', async () => {
    await start(platform);
    const client = await connect(platform, agent);
    expect(await client.ask('methods')).toEqual({
      outcomes: [null, null, expect.stringContaining('over an open connection, because no cookie can be sent')],
      cart: ['book'],
      saved: true,
      isOther: true,
    });
    expect((await stored()).getAttribute('cart')).toEqual(['book']);
  });

  it('can be destroyed, which closes the sockets of the session', async () => {
    await start(platform);
    const [client, other] = [await connect(platform, agent), await connect(platform, agent)];
    client.tell('destroy');
    const reason = platform === 'ws' ? '4401 session ended' : 'io server disconnect';
    expect(await Promise.all([client.closed, other.closed])).toEqual([reason, reason]);
    expect(await sessionOf(app.nest, agent)).toBeNull();
  });

  it('of a client without a session is empty, and cannot be started', async () => {
    await start(platform, { imports: [ExpressSessionModule.forRoot({ saveUninitialized: true })] });
    const client = await connect(platform, app.agent());
    expect(await client.ask('given')).toMatchObject({ same: true, properties: ['cookie'] });
    await expect(client.ask('start')).rejects.toThrow('Internal server error');
    expect(app.log.lines.join('\n')).toContain('over an open connection, because no cookie can be sent');
  });

  it('is undefined in an excluded client', async () => {
    await start(platform, { session: { exclude: ({ url }) => url?.startsWith('/sockets') === true } });
    const gateway = app.nest.get(CartGateway);
    await connect(platform, agent);
    await eventually(() => expect(gateway.clients).toHaveLength(1));
    expect(gateway.clients[0].request.session).toBeUndefined();
  });
});

@WebSocketGateway({ path: '/sockets' })
class CoreGateway {
  @SubscribeMessage('core')
  core(@Session() session: Session, @NestSession() nest: Session, @ConnectedSocket() client: any) {
    const attribute = session.getAttribute('cart');
    return reply('core', { attribute, same: nest === session, session: typeof client.request?.session });
  }
}

@Controller('cart')
class CoreController {
  @Post(':item')
  add(@Session() session: Session, @Param('item') item: string) {
    session.setAttribute('cart', [item]);
  }
}

it.each(PLATFORMS)(
  'without ExpressSessionModule, a message of %s has the session of the core alone',
  async (platform) => {
    await start(platform, { imports: [], providers: [CoreGateway], controllers: [CoreController] });
    const client = await connect(platform, agent);
    expect(await client.ask('core')).toEqual({ attribute: ['book'], same: true, session: 'undefined' });
  },
);

@WebSocketGateway({ path: '/sockets' })
class SignInGateway {
  constructor(private readonly sessions: Sessions) {}

  @SubscribeMessage('property')
  async property(@ConnectedSocket() { request }: any, @MessageBody() body: object) {
    Object.assign(request.session, body);
    return reply('property', await called((done) => request.session.save(done)));
  }

  @SubscribeMessage('attribute')
  async attribute(@Session() session: Session, @MessageBody() body: object) {
    for (const [name, value] of Object.entries(body)) session.setAttribute(name, value);
    return reply(
      'attribute',
      await session.save().then(
        () => null,
        ({ message }: Error) => message,
      ),
    );
  }

  @SubscribeMessage('load')
  async load(@ConnectedSocket() client: any, @MessageBody() body: object) {
    const session = (await this.sessions.load(client))!;
    for (const [name, value] of Object.entries(body)) session.setAttribute(name, value);
    return reply(
      'load',
      await session.save().then(
        () => null,
        ({ message }: Error) => message,
      ),
    );
  }
}

describe.each(['property', 'attribute', 'load'])('a message that sets what a client has named, by %s', (message) => {
  const providers = [SignInGateway];

  it('signs nobody in by a function as the option `principal`', async () => {
    const principal = (session: any) => session.account as string;
    await start('socket.io', { providers, imports: [ExpressSessionModule.forRoot({ principal })] });
    const client = await connect('socket.io', agent);
    // The save after the handler fails as well, where it is of the session of the message.
    const outcome: unknown = await client.ask(message, { account: 'ann' }).catch((error: Error) => error.message);
    expect(outcome).toMatch(/over an open connection|Internal server error/);
    const session = await stored();
    expect([session.getAttribute('account'), session.principalName]).toEqual([undefined, undefined]);
  });

  it('signs nobody in where Passport keeps its users', async () => {
    await start('socket.io', { providers, imports: [ExpressSessionModule.forRoot({ principal: 'passport' })] });
    const client = await connect('socket.io', agent);
    await client.ask(message, { passport: { user: 'ann' }, theme: 'dark' });
    const session = await stored();
    expect([session.getAttribute('passport'), session.getAttribute('theme')]).toEqual([undefined, 'dark']);
  });
});
