import { once } from 'node:events';
import { type IncomingMessage, request as send, type Server, ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { text } from 'node:stream/consumers';
import { Controller, Get, Inject, type INestApplication, Post, Req } from '@nestjs/common';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { type HttpAgent, ManualClock, sessionOf, signIn } from '@nest-session/testing';
import { WebSocket, WebSocketServer } from 'ws';
import { resolveSessionOptions } from '../../src/configuration/session.options.js';
import { UpgradeOrigins } from '../../src/http/upgrade-origins.js';
import { Session, Sessions } from '../../src/index.js';
import { GatedRepository } from '../support/gated.repository.js';
import { requestWith } from '../support/node.request.js';
import { closeApps, type SessionAppOptions, startApp } from '../support/session.app.js';

LeakGuard.install();
afterEach(closeApps);

type Handle = (sessions: Sessions, request: IncomingMessage, client: WebSocket) => unknown;

/** A server of ws, as applications have it beside Nest. */
function serveSockets(app: INestApplication, handle: Handle): void {
  const server = app.getHttpServer() as Server;
  const sockets = new WebSocketServer({ noServer: true });
  server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) =>
    sockets.handleUpgrade(request, socket, head, (client) => {
      void Promise.resolve(handle(app.get(Sessions), request, client)).then(
        (said) => client.send(JSON.stringify(said)),
        (error: Error) => client.send(JSON.stringify(error.message)),
      );
    }),
  );
}

/** What the server says first, after which the client leaves. */
async function firstMessage(app: INestApplication, agent: HttpAgent, headers: object = {}): Promise<unknown> {
  const url = (await app.getUrl()).replace('http:', 'ws:');
  const client = new WebSocket(url, { headers: { ...agent.headersFor('/'), ...headers } as Record<string, string> });
  const [data] = (await once(client, 'message')) as [Buffer];
  client.close();
  await once(client, 'close');
  return JSON.parse(data.toString());
}

async function startWith(handle: Handle, options: Partial<SessionAppOptions> = {}) {
  const started = await startApp({ ...options, configure: (app) => serveSockets(app, handle) });
  const client = await signIn(started.app, { principalName: 'ada', attributes: { visits: 1 } });
  started.store.calls.length = 0;
  return { ...started, client };
}

const visits: Handle = async (sessions, request) => {
  const session = await sessions.load(request);
  return session && { principal: session.principalName, visits: session.getAttribute('visits') };
};

const setVisits: Handle = async (sessions, request) => {
  const session = await sessions.load(request);
  session?.setAttribute('visits', 2);
  return session?.save();
};

describe.each(['express', 'fastify'] as const)('Sessions.load() on %s', (platform) => {
  it('gives the session of an upgrade, fresh at each call', async () => {
    const { app, client, store } = await startWith(visits, { platform });
    expect(await firstMessage(app, client)).toEqual({ principal: 'ada', visits: 1 });
    const session = await sessionOf(app, client);
    session!.setAttribute('visits', 2);
    await session!.save();
    store.calls.length = 0;
    expect(await firstMessage(app, client)).toEqual({ principal: 'ada', visits: 2 });
    expect(store.calls).toEqual(['load']);
  });

  it('gives a session that can be saved', async () => {
    const { app, client } = await startWith(setVisits, { platform });
    expect(await firstMessage(app, client)).toBe('saved');
    expect((await sessionOf(app, client))?.getAttribute('visits')).toBe(2);
  });

  it('gives an HTTP request its own session', async () => {
    @Controller()
    class Visits {
      constructor(@Inject(Sessions) private readonly sessions: Sessions) {}

      @Post('visits')
      async set(@Session() session: Session, @Req() request: object) {
        session.setAttribute('visits', 3);
        return (await this.sessions.load(request)) === session;
      }

      @Get('nobody')
      async nobody(@Req() request: object) {
        return { loaded: await this.sessions.load(request) };
      }

      /** Something has looked whether there is a session, and then starts one. */
      @Get('visitor')
      async visitor(@Session() session: Session, @Req() request: object) {
        const before = await this.sessions.load(request);
        session.setAttribute('visits', 1);
        return { before, isOwn: (await this.sessions.load(request)) === session };
      }
    }
    const { client, agent, store } = await startWith(visits, { platform, controllers: [Visits] });
    expect((await client.post('/visits')).text).toBe('true');
    expect(store.calls).toEqual(['load', 'update']);
    store.calls.length = 0;
    const nobody = await agent().get('/nobody');
    expect(nobody.json()).toEqual({ loaded: null });
    expect(nobody.headers).toMatchObject({ vary: 'Cookie', 'cache-control': 'private' });
    expect(store.calls).toEqual([]);
    expect((await agent().get('/visitor')).json()).toEqual({ before: null, isOwn: true });
  });
});

describe('Sessions.load()', () => {
  it('gives null for an excluded request, without asking the store', async () => {
    @Controller()
    class Excluded {
      constructor(@Inject(Sessions) private readonly sessions: Sessions) {}

      @Get('excluded')
      async load(@Req() request: object) {
        return { loaded: await this.sessions.load(request) };
      }
    }
    const { app, client, store } = await startWith(visits, {
      controllers: [Excluded],
      session: { exclude: () => true },
    });
    expect((await client.get('/excluded')).json()).toEqual({ loaded: null });
    expect(await firstMessage(app, client)).toBeNull();
    expect(store.calls).toEqual([]);
  });

  it('gives null without asking the store if there is no token, and null for a token that opens no session', async () => {
    const { app, client, agent, store } = await startWith(visits);
    expect(await firstMessage(app, agent())).toBeNull();
    expect(store.calls).toEqual([]);
    await store.deleteById((await sessionOf(app, client))!.id);
    expect(await firstMessage(app, client)).toBeNull();
  });

  it('renews the idle timeout when a touch is due', async () => {
    const clock = new ManualClock();
    const store = new GatedRepository({ clock, timeout: 1800 });
    const { app, client } = await startWith(visits, { store });
    clock.advance(59_000);
    await firstMessage(app, client);
    expect(store.calls).toEqual(['load']);
    clock.advance(1_000);
    await firstMessage(app, client);
    expect(store.calls).toEqual(['load', 'load', 'touch']);
  });

  it('throws when the store failed', async () => {
    const { app, client, store } = await startWith(visits);
    store.break('load');
    expect(await firstMessage(app, client)).toBe('The test has broken the store');
  });

  it('gives a session whose id cannot be changed, because no cookie can be sent', async () => {
    const { app, client } = await startWith(async (sessions, request) => {
      const session = await sessions.load(request);
      return session?.changeSessionId();
    });
    expect(await firstMessage(app, client)).toMatch(/over an open connection, because no cookie can be sent/);
  });

  it('gives null for a WebSocket that a page of another origin opens, and says so once', async () => {
    const { app, client, origin, log } = await startWith(visits);
    const { host } = new URL(origin);
    expect(await firstMessage(app, client, { origin })).not.toBeNull();
    for (const foreign of ['https://evil.example', `http://evil.${host}`, 'null', `ftp://${host}`]) {
      expect(await firstMessage(app, client, { origin: foreign })).toBeNull();
    }
    expect(log.lines.filter((line) => line.includes('from a page of another origin'))).toHaveLength(1);
  });

  it('refuses what is no request', async () => {
    const { app } = await startApp({});
    await expect(app.get(Sessions).load({})).rejects.toThrow(TypeError);
  });
});

/** Passes upgrades to the platform as requests, as @fastify/websocket and express-ws do. */
function routeUpgrades(app: INestApplication): void {
  const platform = app.getHttpAdapter().getInstance() as { routing?: Route } & Route;
  const route = platform.routing ?? platform;
  (app.getHttpServer() as Server).on('upgrade', (request: IncomingMessage, socket: Socket) => {
    const response = new ServerResponse(request);
    response.assignSocket(socket);
    response.on('finish', () => socket.destroySoon());
    route(request, response);
  });
}

type Route = (request: IncomingMessage, response: ServerResponse) => void;

@Controller()
class Chat {
  @Get('chat')
  chat(@Session() { principalName = 'nobody' }: Session) {
    return principalName;
  }
}

const UPGRADE = { Connection: 'Upgrade', Upgrade: 'websocket' };

describe.each(['express', 'fastify'] as const)('an upgrade that is routed as a request on %s', (platform) => {
  it('has the session only for a page of this origin', async () => {
    const { app, origin, log } = await startApp({ platform, controllers: [Chat], configure: routeUpgrades });
    const client = await signIn(app, { principalName: 'ada' });
    const userFor = async (page: object) => {
      const headers = { ...UPGRADE, ...client.headersFor('/'), ...page };
      const sent = send(`${origin}/chat`, { headers, agent: false }).end();
      const [response] = (await once(sent, 'response')) as [IncomingMessage];
      const user = await text(response);
      sent.destroy();
      return user;
    };
    expect(await userFor({})).toBe('ada');
    expect(await userFor({ origin })).toBe('ada');
    for (const foreign of ['https://evil.example', 'null', origin.replace('127.0.0.1', 'evil.127.0.0.1.nip.io')]) {
      expect(await userFor({ origin: foreign })).toBe('nobody');
    }
    expect(await userFor({ 'sec-fetch-site': 'cross-site' })).toBe('nobody');
    expect(log.lines.filter((line) => line.includes('from a page of another origin'))).toHaveLength(1);
  });
});

describe('a client that resets its connection', () => {
  type Serve = (app: INestApplication) => void;

  const loads: Serve = (app) => {
    (app.getHttpServer() as Server).on('upgrade', (request: IncomingMessage, socket: Duplex) => {
      void app
        .get(Sessions)
        .load(request)
        .then((session) => session ?? socket.end('HTTP/1.1 401 Unauthorized\r\n\r\n'));
    });
  };

  /** An error of the socket to which nobody listens would end the process, and fails the test. */
  async function upgrade(serve: Serve) {
    const { app, origin, store } = await startApp({ controllers: [Chat], configure: serve });
    const closed = new Promise((resolve) => {
      (app.getHttpServer() as Server).prependListener('upgrade', (_, socket) => socket.on('close', resolve));
    });
    const client = await signIn(app, { principalName: 'ada' });
    const socket = connect(Number(new URL(origin).port), '127.0.0.1');
    const say = (headers: object) => {
      const lines = Object.entries({ Host: 'a', ...UPGRADE, ...headers }).map(
        ([name, value]) => `${name}: ${value}\r\n`,
      );
      socket.write(`GET /chat HTTP/1.1\r\n${lines.join('')}\r\n`);
    };
    return { socket, store, closed, say, client };
  }

  it.each([
    ['Sessions.load() asks', loads],
    ['a platform that got the upgrade asks', routeUpgrades],
  ])('while %s the store, ends no process', async (_, serve) => {
    const { socket, store, closed, say, client } = await upgrade(serve);
    const gate = store.gate('load');
    say(client.headersFor('/'));
    await gate.reached();
    socket.resetAndDestroy();
    await closed;
    gate.open();
  });

  it('after it was refused, ends no process', async () => {
    const { socket, closed, say } = await upgrade(loads);
    say({});
    const [head] = (await once(socket, 'data')) as [Buffer];
    expect(head.toString()).toMatch(/^HTTP\/1\.1 401/);
    socket.resetAndDestroy();
    await closed;
  });
});

describe('the origin of a connection', () => {
  const origins = new UpgradeOrigins();
  origins.allow(['https://app.example.com']);

  it.each([
    ['no page', { host: 'shop.example' }, true],
    ['the same host', { host: 'shop.example', origin: 'https://shop.example' }, true],
    ['the same host and port', { host: 'localhost:3000', origin: 'http://localhost:3000' }, true],
    [
      'a port that a proxy names and the page leaves out',
      { host: 'shop.example:443', origin: 'https://shop.example' },
      true,
    ],
    ['a listed origin', { host: 'shop.example', origin: 'https://app.example.com' }, true],
    ['another port', { host: 'localhost:3000', origin: 'http://localhost:4200' }, false],
    ['the listed host on another scheme', { host: 'shop.example', origin: 'http://app.example.com' }, false],
    ['a subdomain', { host: 'shop.example', origin: 'https://evil.shop.example' }, false],
    ['a host that ends with it', { host: 'shop.example', origin: 'https://evilshop.example' }, false],
    ['a page without an origin', { host: 'shop.example', origin: 'null' }, false],
    ['no host', { origin: 'https://shop.example' }, false],
  ] as [string, Record<string, string>, boolean][])('%s: %j is allowed: %s', (_, headers, allowed) => {
    expect(origins.allows(requestWith(headers))).toBe(allowed);
  });

  it.each([
    [true, { host: 'shop.example', origin: 'https://shop.example' }, true],
    [true, { host: 'shop.example', origin: 'http://shop.example' }, false],
    [true, { host: 'shop.example:80', origin: 'http://shop.example' }, false],
    [true, { host: 'shop.example', origin: 'http://old.example.com' }, true],
    [true, { host: 'localhost:3000', origin: 'http://localhost:3000' }, true],
    ['auto', { host: 'shop.example', origin: 'http://shop.example' }, true],
  ] as const)(
    'with cookie.secure: %j and %j, behind a proxy that ends TLS, is allowed: %s',
    (secure, headers, allowed) => {
      const guarded = new UpgradeOrigins(resolveSessionOptions({ cookie: { secure } }));
      guarded.allow(['http://old.example.com']);
      expect(guarded.allows(requestWith(headers))).toBe(allowed);
    },
  );

  it('is foreign where a connection over TLS is opened by a page that was not', () => {
    const headers = { host: 'shop.example', origin: 'http://shop.example' };
    expect(origins.allows(requestWith(headers))).toBe(true);
    expect(origins.allows(requestWith(headers, { encrypted: true }))).toBe(false);
  });
});
