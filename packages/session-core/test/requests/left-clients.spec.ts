import { type EventEmitter, once } from 'node:events';
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { connect, constants } from 'node:http2';
import { connect as connectTcp, type Socket } from 'node:net';
import { Body, Controller, Delete, Get, type INestApplication, Post, Req, Res, Sse } from '@nestjs/common';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually, type HttpAgent } from '@nest-session/testing';
import { finalize, interval, map } from 'rxjs';
import { Session } from '../../src/index.js';
import { GatedRepository, type GatedStore } from '../support/gated.repository.js';
import { type RawReply, rawOf } from '../support/raw.response.js';
import { closeApps, startApp } from '../support/session.app.js';

LeakGuard.install();
afterEach(closeApps);

type Reply = RawReply & { hijack?(): unknown };

/** What handlers have begun and not ended. */
const open = new Set<string>();
let seen: string[] = [];
beforeEach(() => {
  open.clear();
  seen = [];
});

function endless(name: string) {
  open.add(name);
  return interval(20).pipe(finalize(() => open.delete(name)));
}

@Controller()
class LeftController {
  @Post('in')
  in(@Session() session: Session) {
    session.setAttribute('visited', true);
  }

  @Sse('sse')
  sse() {
    seen.push('handler');
    return endless('sse').pipe(map((n) => ({ data: `${n}` })));
  }

  @Get('observable')
  observable() {
    seen.push('handler');
    return endless('observable');
  }

  @Get('raw')
  raw() {
    seen.push('handler');
  }

  @Post('raw')
  wait(@Req() request: IncomingMessage & { readonly raw?: IncomingMessage }, @Res() reply: Reply) {
    reply.hijack?.();
    const raw = request.raw ?? request;
    open.add('raw');
    rawOf(reply).once('close', () => open.delete('raw'));
    const removed = () => seen.push('removed');
    raw.once('close', removed).off('close', removed);
    for (const [name, emitter] of Object.entries({ response: rawOf(reply), request: raw, socket: raw.socket })) {
      emitter.on('close', () => seen.push(name));
    }
  }

  @Post('body')
  body(@Body() body: unknown) {
    seen.push(`body ${JSON.stringify(body)}`);
  }

  @Delete('account')
  account(@Session() session: Session) {
    session.setAttribute('deleted', true);
    return 'done';
  }

  @Get('account')
  isDeleted(@Session() session: Session) {
    return { deleted: session.getAttribute('deleted') ?? false };
  }
}

describe.each(['express', 'fastify'] as const)(
  'a client that leaves while its session is loaded, on %s,',
  (platform) => {
    async function start(configure?: (app: INestApplication) => unknown) {
      const { agent, store } = await startApp({
        platform,
        controllers: [LeftController],
        ...(configure && { configure }),
      });
      const client = agent();
      await client.post('/in');
      return { client, store, other: agent(), leave: (ask: Ask) => leave(ask, store, agent()) };
    }

    type Ask = (init: { signal: AbortSignal }) => Promise<unknown>;

    /** Resolves when the application has noticed that the client has left, the session is loaded, and both are handled. */
    async function leave(ask: Ask, store: GatedStore, other: HttpAgent) {
      const gate = store.gate('load');
      const leaving = new AbortController();
      const answer = ask({ signal: leaving.signal }).catch((error: Error) => error.name);
      await gate.reached();
      const closed = new Promise((resolve) => (onceClosed = resolve));
      leaving.abort();
      expect(await answer).toBe('AbortError');
      await closed;
      gate.open();
      await other.post('/in');
    }

    let onceClosed: (value: unknown) => void;
    /** Hears of the end of each connection, before the session is looked for. */
    const listen = (app: INestApplication) =>
      (app.getHttpServer() as { on: (event: string, listener: (request: IncomingMessage) => void) => unknown }).on(
        'request',
        (request) => request.once('close', () => onceClosed?.(undefined)),
      );

    it.each(['sse', 'observable', 'raw'])('has no handler called for what only reads: GET %s', async (way) => {
      const { client, leave } = await start(listen);
      await leave((init) => client.get(`/${way}`, init));
      expect([seen, [...open]]).toEqual([[], []]);
    });

    it('has no handler called without the body that it sent', async () => {
      const { client, leave } = await start(listen);
      await leave((init) => client.post('/body', { a: 1 }, init));
      expect(seen).toEqual([]);
    });

    /** Sends posts with a body at once, and leaves. They are loaded when that happens to the connection on the server. */
    async function leaveWithBody(posts: number, happened: 'end' | 'close') {
      const sockets: Socket[] = [];
      const listenToSockets = (app: INestApplication) =>
        (app.getHttpServer() as EventEmitter).on('connection', (socket: Socket) => sockets.push(socket));
      const { client, store, other } = await start(listenToSockets);
      const { cookie } = client.headersFor('/body');
      const body = '{"dryRun":true}';
      const head = ['Host: x', `Cookie: ${cookie}`, 'Content-Type: application/json', `Content-Length: ${body.length}`];
      const gate = store.gate('load');
      const before = store.lookUps.length;
      const leaving = connectTcp(Number(new URL(client.origin).port), '127.0.0.1');
      leaving.write(`POST /body HTTP/1.1\r\n${head.join('\r\n')}\r\n\r\n${body}`.repeat(posts));
      await eventually(() => expect(store.lookUps.length).toBe(before + posts));
      const left = new Promise<void>((resolve) => {
        // In the same turn, because the connection is closed a moment after its end.
        sockets.at(-1)!.once(happened, () => resolve(gate.open()));
      });
      leaving.destroy();
      await left;
      await other.post('/in');
    }

    it('has no handler called without its body, before the response knows', async () => {
      await leaveWithBody(1, 'end');
      expect(seen).toEqual([]);
    });

    it('has no handler called for those that wait for the first response of their connection', async () => {
      await leaveWithBody(3, 'close');
      expect(seen).toEqual([]);
    });

    it('gets what it asked for', async () => {
      const { client, store, leave } = await start(listen);
      await leave((init) => client.request('DELETE', '/account', init));
      await eventually(() => expect(store.calls).toContain('update'));
      expect((await client.get('/account')).json()).toEqual({ deleted: true });
    });

    it('is known to have left to those who listen later, and once', async () => {
      const { client, leave } = await start((app) => {
        listen(app);
        app.use((request: IncomingMessage, _: unknown, next: () => void) => {
          if (request.url === '/raw') request.on('close', () => seen.push('middleware'));
          next();
        });
      });
      await leave((init) => client.post('/raw', undefined, init));
      await eventually(() => expect(open.size).toBe(0));
      expect(seen.sort()).toEqual(['middleware', 'request', 'response', 'socket']);
    });
  },
);

describe('on Fastify, a client that leaves while its session is loaded', () => {
  it('is reported once to the hook onRequestAbort', async () => {
    const aborted: string[] = [];
    const { agent, store } = await startApp({
      platform: 'fastify',
      controllers: [LeftController],
      configure: (app) => {
        const fastify = (app.getHttpAdapter() as unknown as FastifyAdapter).getInstance();
        fastify.addHook('onRequestAbort', (request, done) => {
          aborted.push(request.url);
          done();
        });
      },
    });
    const client = agent();
    await client.post('/in');
    for (const method of ['GET', 'POST']) {
      const gate = store.gate('load');
      const leaving = new AbortController();
      const answer = client.request(method, '/raw', { signal: leaving.signal }).catch((error: Error) => error.name);
      await gate.reached();
      leaving.abort();
      expect(await answer).toBe('AbortError');
      await eventually(() => expect(aborted).toContain('/raw'));
      gate.open();
      await agent().post('/in');
      expect(aborted.splice(0)).toEqual(['/raw']);
    }
    expect(seen.sort()).toEqual(['request', 'response', 'socket']);
  });
});

describe('on HTTP/2, a client that cancels a request while its session is loaded', () => {
  it('is known to have left to those who listen later, and others of its connection are served', async () => {
    const store = new GatedRepository();
    const adapter = new FastifyAdapter({ http2: true } as object);
    const { app } = await startApp({ platform: adapter, store, controllers: [LeftController] });
    const client = connect(await app.getUrl());
    const ask = (method: string, path: string, cookie = '') =>
      client.request({ ':method': method, ':path': path, cookie }, { endStream: true });
    const [head] = (await once(ask('POST', '/in').resume(), 'response')) as [IncomingHttpHeaders];
    const cookie = String(head['set-cookie']).split(';', 1)[0]!;
    for (const method of ['GET', 'POST']) {
      const gate = store.gate('load');
      const cancelled = ask(method, '/raw', cookie).on('error', () => undefined);
      const seenByServer = once(app.getHttpServer() as EventEmitter, 'request') as Promise<IncomingMessage[]>;
      const [request] = await seenByServer;
      await gate.reached();
      cancelled.close(constants.NGHTTP2_CANCEL);
      await once(request!, 'close');
      gate.open();
      expect((await ask('GET', '/account', cookie).toArray()).toString()).toBe('{"deleted":false}');
    }
    await eventually(() => expect(seen.sort()).toEqual(['request', 'response']));
    expect([...open]).toEqual([]);
    client.close();
  });
});
