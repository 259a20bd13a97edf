import { once } from 'node:events';
import { HeaderSessionIdResolver } from '@nest-session/core';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { type HttpAgent, RedisServer } from '@nest-session/testing';
import { WebSocket } from 'ws';
import { closeApps, SocketApp, type SocketAppOptions, VisitsGateway } from '../support/socket.app.js';
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

let app: SocketApp;
let ann: HttpAgent;

async function start(options: Partial<SocketAppOptions> = {}): Promise<void> {
  app = await SocketApp.start({ platform: 'socket.io', url: redis.url, providers: [VisitsGateway], ...options });
  ann = app.agent();
  await ann.post('/login/ann');
}

type Headers = Record<string, string>;

const PATH = '/sockets/?EIO=4&transport=polling';

/** A client that polls, step by step. */
class Poller {
  #query = '';

  private constructor(private readonly headers: () => Headers) {}

  /** Shakes hands, and connects to the namespace `/`. `headers`: those of each of its requests. */
  static async open(headers: () => Headers): Promise<Poller> {
    const poller = new Poller(headers);
    const { sid } = JSON.parse((await poller.poll()).slice(1)) as { sid: string };
    poller.#query = `&sid=${sid}`;
    expect(await poller.post('40')).toBe(200);
    expect(await poller.poll()).toMatch(/^40/);
    return poller;
  }

  async poll(): Promise<string> {
    return (await this.#get()).text();
  }

  async post(body: string): Promise<number> {
    return (await this.#fetch({ method: 'POST', body })).status;
  }

  /** Somebody with these headers who knows the `sid`. */
  as(headers: Headers): Poller {
    const other = new Poller(() => headers);
    other.#query = this.#query;
    return other;
  }

  /** The status of a post, and of an upgrade, that somebody makes who knows the `sid`. */
  async asked(headers: Headers): Promise<(number | undefined)[]> {
    const other = this.as(headers);
    return [await other.post('42["visit"]'), await other.upgrade()];
  }

  /** The status of an upgrade to a WebSocket. */
  async upgrade(): Promise<number | undefined> {
    const url = app.origin.replace('http:', 'ws:') + PATH.replace('polling', 'websocket') + this.#query;
    const socket = new WebSocket(url, { headers: this.headers() });
    socket.on('error', () => undefined);
    const [, response] = (await Promise.race([
      once(socket, 'open').then(() => [undefined, { statusCode: 101 }]),
      once(socket, 'unexpected-response'),
    ])) as [unknown, { statusCode?: number }];
    socket.terminate();
    return response.statusCode;
  }

  #get(): Promise<Response> {
    return this.#fetch({});
  }

  #fetch(init: RequestInit): Promise<Response> {
    return fetch(app.origin + PATH + this.#query, { ...init, headers: this.headers() });
  }
}

const cookieOf = (agent: HttpAgent): Headers => {
  const { cookie } = agent.headersFor('/');
  return { cookie: String(cookie) };
};

describe('a connection of socket.io that is polled', () => {
  it('is not that of somebody who only knows its sid', async () => {
    await start();
    const bob = app.agent();
    await bob.post('/login/bob');
    const poller = await Poller.open(() => cookieOf(ann));
    for (const headers of [{}, cookieOf(bob)]) expect(await poller.asked(headers)).toEqual([403, 400]);
    expect(JSON.parse(await poller.as({}).poll())).toEqual({ code: 4, message: 'foreign-connection' });
    expect(app.nest.get(VisitsGateway).visits).toBe(0);
    // Whoever was refused has not closed it.
    expect(await poller.post('42["visit"]')).toBe(200);
    expect(await poller.upgrade()).toBe(101);
  });

  it('is not that of a page of another origin, which sends the cookie', async () => {
    await start();
    const poller = await Poller.open(() => cookieOf(ann));
    const headers = { ...cookieOf(ann), origin: 'http://evil.example' };
    expect(await poller.asked(headers)).toEqual([403, 403]);
    const handshake = await fetch(app.origin + PATH, { headers });
    expect(await handshake.json()).toEqual({ code: 4, message: 'cross-origin' });
    expect(await poller.asked({ ...cookieOf(ann), origin: app.origin })).toEqual([200, 101]);
  });

  it('tells a browser that its session has got another id, although that has another cookie by then', async () => {
    await start();
    const poller = await Poller.open(() => cookieOf(ann));
    const client = await connect('socket.io', ann, { transports: ['polling'] });
    const before = cookieOf(ann);
    await ann.post('/login/ann');
    expect(cookieOf(ann)).not.toEqual(before);
    // The instance has heard of it.
    await client.closed;
    expect(await poller.poll()).toBe('41');
  });

  it('gives a stranger who knows its sid nothing that waits for its user, also once the session has ended', async () => {
    await start();
    const connections = [await Poller.open(() => cookieOf(ann)), await Poller.open(() => cookieOf(ann))];
    const known = connections.map((each) => each.as({}));
    app.nest.get(VisitsGateway).server.emit('news', 'for ann');
    for (const each of known) expect(await each.poll()).not.toContain('for ann');
    expect(await connections[0]!.poll()).toContain('for ann');
    const client = await connect('socket.io', ann, { transports: ['polling'] });
    await ann.post('/logout');
    await client.closed;
    expect(await known[1]!.poll()).toBe('41');
  });

  it('goes on for a visitor without a session who begins one', async () => {
    await start();
    const visitor = app.agent();
    const poller = await Poller.open(() => (visitor.cookies['SESSION'] === undefined ? {} : cookieOf(visitor)));
    await visitor.post('/login/bob');
    expect(await poller.post('421["read"]')).toBe(200);
    expect(await poller.poll()).toContain('"user":null');
  });

  it('stays with polls where an upgrade cannot bring the header with the token, as in a browser', async () => {
    await start({ session: { sessionIdResolver: HeaderSessionIdResolver.xAuthToken() } });
    const { headers } = await fetch(`${app.origin}/login/ann`, { method: 'POST' });
    const token = headers.get('x-auth-token') ?? '';
    const poller = await Poller.open(() => ({ 'x-auth-token': token }));
    expect(await poller.asked({})).toEqual([403, 400]);
    expect(await poller.asked({ 'x-auth-token': token })).toEqual([200, 101]);
    expect(await poller.asked({ origin: 'http://evil.example' })).toEqual([403, 403]);
  });
});
