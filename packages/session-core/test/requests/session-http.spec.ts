import type { IncomingMessage, ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import {
  type ArgumentsHost,
  BadRequestException,
  Body,
  type CanActivate,
  Catch,
  Controller,
  Delete,
  type ExceptionFilter,
  type ExecutionContext,
  Get,
  HttpCode,
  HttpException,
  Injectable,
  Param,
  Post,
  Redirect,
  Req,
  Res,
  Session as NestSession,
  Sse,
  StreamableFile,
  UseFilters,
  UseGuards,
} from '@nestjs/common';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { eventually, type HttpAgent, ManualClock } from '@nest-session/testing';
import { interval, map, Observable, take } from 'rxjs';
import { Session, SessionAttribute, SessionContext, SessionId } from '../../src/index.js';
import { TrackedSession } from '../../src/internal.js';
import { GatedRepository } from '../support/gated.repository.js';
import { type RawReply, rawOf } from '../support/raw.response.js';
import { closeApps, startApp } from '../support/session.app.js';

LeakGuard.install();

/** The common methods of the responses of both platforms. */
interface Reply extends RawReply {
  status(code: number): Reply;
  header(name: string, value: string): Reply;
  send(body: unknown): void;
  redirect(url: string): void;
}

@Injectable()
class Denies implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const { session } = context.switchToHttp().getRequest<{ session: Session }>();
    session.setAttribute('denied', true);
    return false;
  }
}

@Catch(BadRequestException)
class NotesTheError implements ExceptionFilter {
  catch(error: HttpException, host: ArgumentsHost): void {
    const http = host.switchToHttp();
    http.getRequest<{ session: Session }>().session.setAttribute('lastError', error.message);
    http.getResponse<Reply>().status(400).send({ noted: true });
  }
}

@Injectable()
class Visits {
  constructor(private readonly context: SessionContext) {}

  async count(): Promise<number> {
    await Promise.resolve();
    const { session } = this.context;
    session.setAttribute('visits', session.getAttributeOrDefault<number>('visits', 0) + 1);
    return session.getRequiredAttribute('visits');
  }
}

/** Whether the Observable of `endless` is stopped; undefined before it starts. */
let stopped: boolean | undefined;

@Controller()
class TestController {
  constructor(private readonly visits: Visits) {}

  @Get('plain')
  plain() {
    return 'no session here';
  }

  @Get('read')
  read(@Session() session: Session) {
    return Object.fromEntries(session.attributeNames.map((name) => [name, session.getAttribute(name)]));
  }

  @Get('set/value')
  value(@Session() session: Session) {
    session.setAttribute('via', 'value');
    return { ok: true };
  }

  @Get('set/nest')
  nest(@NestSession() session: Session) {
    session.setAttribute('via', 'nest');
    return { ok: true };
  }

  @Get('set/redirect')
  @Redirect('/read')
  redirect(@Session() session: Session) {
    session.setAttribute('via', 'redirect');
  }

  @Get('set/res')
  res(@Session() session: Session, @Res() reply: Reply) {
    session.setAttribute('via', 'res');
    reply.send({ ok: true });
  }

  @Get('set/res-redirect')
  resRedirect(@Session() session: Session, @Res() reply: Reply) {
    session.setAttribute('via', 'res-redirect');
    reply.status(302).redirect('/read');
  }

  @Get('set/res-later')
  resLater(@Session() session: Session, @Res() reply: Reply) {
    setImmediate(() => {
      session.setAttribute('via', 'res-later');
      reply.send({ ok: true });
    });
  }

  @Get('set/passthrough')
  passthrough(@Session() session: Session, @Res({ passthrough: true }) reply: Reply) {
    session.setAttribute('via', 'passthrough');
    reply.header('Set-Cookie', 'app=1');
    return { ok: true };
  }

  @Get('cached/:change')
  cached(@Session() session: Session, @Param('change') change: string, @Res({ passthrough: true }) reply: Reply) {
    reply.header('Cache-Control', 'public, max-age=3600');
    if (change === 'begin') session.setAttribute('via', 'cached');
    if (change === 'rotate') session.changeSessionId();
    if (change === 'end') session.invalidate();
    return { ok: true };
  }

  @Get('set/raw')
  raw(@Session() session: Session, @Res() reply: Reply) {
    const response = rawOf(reply);
    session.setAttribute('via', 'raw');
    response.writeHead(200, { 'Content-Type': 'text/plain', 'Set-Cookie': 'app=1' });
    response.write('raw');
    response.end();
  }

  @Get('set/stream')
  stream(@Session() session: Session) {
    session.setAttribute('via', 'stream');
    return new StreamableFile(Readable.from(Array<Buffer>(32).fill(Buffer.alloc(16 * 1024, 'x'))));
  }

  @Get('set/generator')
  async *generator(@Session() session: Session) {
    session.setAttribute('via', 'generator');
    yield 'a';
    yield 'b';
  }

  @Get('set/observable')
  observable(@Session() session: Session) {
    return interval(1).pipe(
      take(3),
      map((n) => {
        session.setAttribute('via', 'observable');
        return { n };
      }),
    );
  }

  @Sse('set/sse')
  sse(@Session() session: Session) {
    session.setAttribute('via', 'sse');
    return interval(1).pipe(
      take(2),
      map((n) => ({ data: { n } })),
    );
  }

  @Get('set/throw')
  throws(@Session() session: Session) {
    session.setAttribute('via', 'throw');
    throw new HttpException('no', 418);
  }

  @Get('set/crash')
  crashes(@Session() session: Session) {
    session.setAttribute('via', 'crash');
    throw new TypeError('a bug');
  }

  @Get('set/guard')
  @UseGuards(Denies)
  guarded() {
    return 'never';
  }

  @Get('set/filter')
  @UseFilters(NotesTheError)
  filtered() {
    throw new BadRequestException('bad');
  }

  @Get('set/empty')
  @HttpCode(204)
  empty(@Session() session: Session) {
    session.setAttribute('via', 'empty');
  }

  @Post('set/body')
  body(@SessionAttribute('count') count: number | undefined, @Session() session: Session, @Body() body: object) {
    session.setAttribute('via', JSON.stringify(body));
    session.setAttribute('count', (count ?? 0) + 1);
    return { count };
  }

  @Get('visits')
  async countVisits() {
    return { visits: await this.visits.count() };
  }

  @Post('visits')
  async postVisits() {
    return { visits: await this.visits.count() };
  }

  @Get('id')
  id(@SessionId() id: string) {
    return { id };
  }

  @Post('login')
  login(@Session() session: Session) {
    session.principalName = 'ada';
    return { id: session.changeSessionId() };
  }

  @Delete('login')
  logout(@Session() session: Session) {
    session.invalidate();
  }

  @Get('unstorable')
  unstorable(@Session() session: Session) {
    const cart = session.getRequiredAttribute<Record<string, unknown>>('cart');
    cart['when'] = new Date();
    return { ok: true };
  }

  @Get('cart')
  cart(@Session() session: Session) {
    session.setAttribute('cart', {});
  }

  @Get('lose-late')
  loseLate(@Session() session: Session, @Res() reply: Reply) {
    const response = rawOf(reply);
    response.write('begun');
    session.setAttribute('lost', true);
    response.end();
  }

  @Get('lose-in-place')
  loseInPlace(@Session() session: Session, @Res() reply: Reply) {
    const cart = session.getRequiredAttribute<Record<string, unknown>>('cart');
    const response = rawOf(reply);
    response.write('begun');
    cart['lost'] = true;
    response.end();
  }

  @Get('after-head/:when')
  afterHead(@Req() request: { session: Session }, @Res() reply: Reply, @Param('when') when: string) {
    const response = rawOf(reply);
    let session = when === 'early' ? request.session : undefined;
    response.write('begun ');
    try {
      session ??= request.session;
      session.setAttribute('late', true);
      response.end('stored');
    } catch (error) {
      response.end((error as Error).name);
    }
  }

  /** The limit of listeners after the headers were sent, and the number of listeners that were added. */
  @Get('listeners/:most')
  listeners(@Session() session: Session, @Res() reply: Reply, @Param('most') most: string) {
    void session.attributeNames;
    const response = rawOf(reply).setMaxListeners(Number(most));
    const before = response.listenerCount('close');
    response.flushHeaders();
    const added = response.listenerCount('close') - before;
    response.end(JSON.stringify({ most: response.getMaxListeners(), added }));
  }

  @Get('save-late')
  async saveLate(@Session() session: Session, @Res() reply: Reply) {
    const response = rawOf(reply);
    response.write('begun ');
    session.setAttribute('late', true);
    response.end(await session.save());
  }

  /** Never emits a value. */
  @Get('endless')
  endless(@Session() session: Session) {
    session.setAttribute('via', 'endless');
    return new Observable(() => {
      stopped = false;
      return () => (stopped = true);
    });
  }

  @Get('assign')
  assign(@Req() request: { session: unknown }) {
    request.session = null;
    return 'assigned';
  }
}

afterEach(closeApps);

const SET_ROUTES = {
  value: 200,
  nest: 200,
  redirect: 302,
  res: 200,
  'res-redirect': 302,
  'res-later': 200,
  passthrough: 200,
  raw: 200,
  stream: 200,
  generator: 200,
  observable: 200,
  sse: 200,
  throw: 418,
  crash: 500,
  empty: 204,
};
const setRoutes = Object.entries(SET_ROUTES);

describe.each(['express', 'fastify'] as const)('on %s', (platform) => {
  const base = { platform, controllers: [TestController], providers: [Visits] };

  describe('the save', () => {
    it.each(setRoutes)('is finished before the headers are sent: %s', async (route, status) => {
      const { store, agent } = await startApp(base);
      const client = agent();
      const gate = store.gate('create');
      const order: string[] = [];
      const response = client.get(`/set/${route}`, { onHead: () => order.push('head') });
      await gate.reached();
      // A later request gets its response: headers that were already on their way would have arrived before it.
      await agent().get('/plain');
      order.push('saved');
      gate.open();
      expect((await response).status).toBe(status);
      expect(order).toEqual(['saved', 'head']);
      expect((await client.get('/read')).json()).toEqual({ via: route });
    });

    it.each(setRoutes.map(([route]) => [route]))(
      'responds with 503 and without a cookie when it fails: %s',
      async (route) => {
        const { store, log, agent } = await startApp(base);
        store.break('create');
        const response = await agent().get(`/set/${route}`);
        expect(response.status).toBe(503);
        expect(response.setCookies.filter((cookie) => cookie.startsWith('SESSION'))).toEqual([]);
        expect(response.json()).toEqual({
          statusCode: 503,
          message: 'Session store unavailable',
          error: 'Service Unavailable',
          reason: 'store-unavailable',
        });
        expect(store.calls).toEqual(['create']);
        expect(log.matching(/The session store failed, .*: "The test has broken the store"/)).toHaveLength(1);
      },
    );

    it('includes the changes of a guard that denies', async () => {
      const { agent } = await startApp(base);
      const client = agent();
      expect((await client.get('/set/guard')).status).toBe(403);
      expect((await client.get('/read')).json()).toEqual({ denied: true });
    });

    it('responds with the same error when it fails after a guard that denies', async () => {
      const { store, agent } = await startApp(base);
      store.break('create');
      const response = await agent().get('/set/guard');
      expect([response.status, response.setCookies]).toEqual([503, []]);
    });

    it('includes the changes of an exception filter', async () => {
      const { agent } = await startApp(base);
      const client = agent();
      expect((await client.get('/set/filter')).json()).toEqual({ noted: true });
      expect((await client.get('/read')).json()).toEqual({ lastError: 'bad' });
    });

    it('includes the changes of middleware for routes that do not exist', async () => {
      const { agent } = await startApp({
        ...base,
        configure: (app) =>
          app.use((request: { session: Session; url: string }, _: unknown, next: () => void) => {
            if (request.url === '/nowhere') request.session.setAttribute('lost', true);
            next();
          }),
      });
      const client = agent();
      expect((await client.get('/nowhere')).status).toBe(404);
      expect((await client.get('/read')).json()).toEqual({ lost: true });
    });

    it('includes the changes of middleware that sends the response', async () => {
      const { agent } = await startApp({
        ...base,
        configure: (app) =>
          app.use('/middleware', (request: { session: Session }, response: ServerResponse) => {
            request.session.setAttribute('by', 'middleware');
            response.end('answered');
          }),
      });
      const client = agent();
      expect((await client.get('/middleware')).text).toBe('answered');
      expect((await client.get('/read')).json()).toEqual({ by: 'middleware' });
    });

    it('is left out when nothing changed, and the response is sent in the same tick', async () => {
      const sameTick: boolean[] = [];
      const { store, agent } = await startApp({
        ...base,
        configure: (app) =>
          app.use('/sync', (request: IncomingMessage & { session: Session }, response: ServerResponse) => {
            void request.session.attributeNames;
            const before = request.socket.bytesWritten;
            response.end('x');
            sameTick.push(response.headersSent && request.socket.bytesWritten > before);
          }),
      });
      const client = agent();
      await client.get('/set/value');
      store.calls.length = 0;
      await client.get('/sync');
      expect(sameTick).toEqual([true]);
      expect(store.calls).toEqual(['load']);
    });

    it('responds with 500 to a value that cannot be stored, and logs its attribute and place but not the value', async () => {
      const { log, agent } = await startApp(base);
      const client = agent();
      await client.get('/cart');
      const response = await client.get('/unstorable');
      expect([response.status, response.setCookies]).toEqual([500, []]);
      expect(log.matching(/attribute "cart" .*when.* is a Date/)).toHaveLength(1);
    });
  });

  describe('the store', () => {
    const nineKilobytes = Array.from({ length: 300 }, (_, index) => `cookie${index}=${'x'.repeat(20)}`).join('; ');
    const bad: Record<string, string | undefined> = {
      'no cookie': undefined,
      'an empty one': 'SESSION=',
      'a malformed one': 'SESSION=%E0%A4%A; =; ;;',
      'one that is too long': `SESSION=${'a'.repeat(44)}`,
      'one with other characters': `SESSION=${'a'.repeat(42)}!`,
      'one of a similar name': `XSESSION=${'a'.repeat(43)}; SESSION2=${'a'.repeat(43)}`,
      '9 KB of others': nineKilobytes,
      '9 KB in one': `SESSION=${'a'.repeat(9 * 1024)}`,
    };

    it.each(Object.keys(bad))('is not called for a request with %s', async (name) => {
      const { store, agent } = await startApp(base);
      const cookie = bad[name];
      for (const path of ['/plain', '/read']) {
        const response = await agent().get(path, cookie === undefined ? {} : { headers: { cookie } });
        expect([response.status, response.setCookies]).toEqual([200, []]);
      }
      expect(store.calls).toEqual([]);
    });

    it('is called once to read, twice to write, twice to log in', async () => {
      const { store, agent } = await startApp(base);
      const client = agent();
      await client.get('/set/value');
      const callsOf = async (request: Promise<unknown>) => {
        store.calls.length = 0;
        await request;
        return [...store.calls];
      };
      expect(await callsOf(client.get('/read'))).toEqual(['load']);
      expect(await callsOf(client.get('/set/res'))).toEqual(['load', 'update']);
      expect(await callsOf(client.post('/login'))).toEqual(['load', 'update']);
      expect(await callsOf(client.request('DELETE', '/login'))).toEqual(['load', 'delete']);
    });

    it('is not called for excluded requests, which have no session', async () => {
      const { store, agent } = await startApp({ ...base, session: { exclude: ({ url }) => url === '/assign' } });
      const client = agent();
      await client.get('/set/value');
      store.calls.length = 0;
      expect((await client.get('/assign')).text).toBe('assigned');
      expect(store.calls).toEqual([]);
    });

    it('is not called where `exclude` returns a promise, which would exclude every request', async () => {
      const exclude = (() => Promise.resolve(false)) as unknown as () => boolean;
      const { store, agent } = await startApp({ ...base, session: { exclude } });
      expect((await agent().get('/set/value')).status).toBe(500);
      expect(store.calls).toEqual([]);
    });

    it('records an access when it is due, without delaying the response', async () => {
      const clock = new ManualClock();
      const store = new GatedRepository({ clock, timeout: 1800 });
      const { agent } = await startApp({ ...base, store, session: { touchInterval: '1m' } });
      const client = agent();
      await client.get('/set/value');
      clock.advance(59_999);
      await client.get('/read');
      expect(store.calls).toEqual(['create', 'load']);
      clock.advance(1);
      const gate = store.gate('touch');
      expect((await client.get('/read')).status).toBe(200);
      expect(store.calls.slice(2)).toEqual(['load', 'touch']);
      gate.open();
    });

    it('keeps a session alive that is in use and has an interval shorter than the touch interval', async () => {
      const clock = new ManualClock();
      const store = new GatedRepository({ clock, timeout: 1800 });
      const { agent } = await startApp({ ...base, store, session: { touchInterval: '1m' } });
      const client = agent();
      const session = store.createSession();
      session.maxInactiveInterval = 10;
      session.setAttribute('value', 'short');
      await session.save();
      client.setCookie(`SESSION=${TrackedSession.of(session).tokenToSend!.reveal()}; Path=/`);
      // A thirtieth of the interval is 333 ms.
      clock.advance(300);
      expect((await client.get('/read')).text).toContain('short');
      expect(store.calls).not.toContain('touch');
      for (let access = 0; access < 5; access++) {
        clock.advance(9_000);
        expect((await client.get('/read')).text).toContain('short');
        await eventually(async () =>
          expect(await store.findById(session.id)).toMatchObject({ lastAccessedTime: clock.now() }),
        );
      }
    });

    it('that cannot record an access is reported in the log', async () => {
      const { store, log, agent } = await startApp({ ...base, session: { touchInterval: 0 } });
      const client = agent();
      await client.get('/set/value');
      const said = () => log.matching(/^warn The idle timeout of session .* was not renewed/);
      for (let outage = 1; outage <= 2; outage++) {
        store.break('touch');
        // Each request tries it again.
        for (let request = 1; request <= 3; request++) {
          const tried = store.calls.length;
          expect((await client.get('/read')).status).toBe(200);
          await eventually(() => expect(store.calls.slice(tried)).toContain('touch'));
        }
        await eventually(() => expect(said()).toHaveLength(outage));
        store.repair();
        const tried = store.calls.length;
        await client.get('/read');
        await eventually(() => expect(store.calls.slice(tried)).toContain('touch'));
      }
      expect(said()).toHaveLength(2);
      expect(log.lines.join('\n')).not.toContain(client.cookie('SESSION'));
    });

    it('that fails leads to 503 where the session is used, and to nothing elsewhere', async () => {
      const { store, log, agent } = await startApp(base);
      const client = agent();
      await client.get('/set/value');
      store.break('load');
      expect((await client.get('/plain')).text).toBe('no session here');
      for (const path of ['/read', '/set/value', '/visits', '/set/nest', '/id']) {
        const response = await client.get(path);
        expect([path, response.status, response.setCookies]).toEqual([path, 503, []]);
        expect(response.json()).toMatchObject({ message: 'Session store unavailable' });
      }
      expect((await agent().get('/read')).status).toBe(200);
      expect(log.matching(/store failed/)).toHaveLength(1);
      store.repair();
      expect((await client.get('/read')).json()).toEqual({ via: 'value' });
    });
  });

  describe('the cookie', () => {
    const cookieOf = (response: { setCookies: readonly string[] }) =>
      response.setCookies.map((each) => each.split('; '));

    it('is set when the session is created, and not again', async () => {
      const { agent } = await startApp(base);
      const client = agent();
      const first = await client.get('/set/value');
      expect(cookieOf(first)).toEqual([
        [expect.stringMatching(/^SESSION=[\w-]{43}$/), 'Path=/', 'HttpOnly', 'SameSite=Lax'],
      ]);
      expect(first.headers).toMatchObject({ vary: 'Cookie', 'cache-control': 'no-store' });
      const second = await client.get('/set/res');
      expect(second.setCookies).toEqual([]);
      expect(second.headers.vary).toBe('Cookie');
      expect(second.headers['cache-control']).toBe('private');
    });

    it('is in no response that a cache may keep, whatever Cache-Control the application sets', async () => {
      const { agent } = await startApp(base);
      const client = agent();
      for (const change of ['begin', 'rotate', 'end']) {
        const { setCookies, headers } = await client.get(`/cached/${change}`);
        expect([change, setCookies.length, headers['cache-control']]).toEqual([change, 1, 'no-store']);
      }
      const { setCookies, headers } = await client.get('/cached/none');
      expect([setCookies, headers.vary, headers['cache-control']]).toEqual([[], 'Cookie', 'private, max-age=3600']);
    });

    it('is neither set nor named in Vary when the request does not use the session', async () => {
      const { agent } = await startApp(base);
      const client = agent();
      await client.get('/set/value');
      const { setCookies, headers } = await client.get('/plain');
      expect([setCookies, headers.vary, headers['cache-control']]).toEqual([[], undefined, undefined]);
    });

    it('is set beside cookies of the application', async () => {
      const { agent } = await startApp(base);
      for (const route of ['raw', 'passthrough']) {
        const [app, ours, ...others] = (await agent().get(`/set/${route}`)).setCookies;
        expect([app, ours?.slice(0, 8), others]).toEqual(['app=1', 'SESSION=', []]);
      }
    });

    it('changes at login, and the earlier cookie is invalid', async () => {
      const { agent } = await startApp(base);
      const client = agent();
      await client.get('/set/value');
      const before = client.fork();
      const login = await client.post('/login');
      expect(login.setCookies).toHaveLength(1);
      expect(client.cookie('SESSION')).not.toBe(before.cookie('SESSION'));
      expect((await before.get('/read')).json()).toEqual({});
      expect((await client.get('/read')).json()).toMatchObject({ via: 'value' });
      expect((await client.get('/id')).json()).toEqual(login.json());
    });

    it('is expired by the request that ends the session, with the attributes that it was set with', async () => {
      const { agent } = await startApp({
        ...base,
        session: { cookie: { path: '/', sameSite: 'strict', name: 'sid' } },
      });
      const client = agent();
      await client.get('/set/value');
      const response = await client.request('DELETE', '/login');
      expect(cookieOf(response)).toEqual([['sid=', 'Max-Age=0', 'Path=/', 'HttpOnly', 'SameSite=Strict']]);
      expect(response.headers['cache-control']).toBe('no-store');
      expect(client.cookies).toEqual({});
    });

    it('is left unchanged when its session is unknown, until a new session replaces it', async () => {
      const { agent } = await startApp(base);
      const client = agent();
      client.setCookie(`SESSION=${'a'.repeat(43)}`);
      expect((await client.get('/read')).setCookies).toEqual([]);
      expect((await client.get('/set/value')).setCookies).toHaveLength(1);
      expect(client.cookie('SESSION')).not.toBe('a'.repeat(43));
    });

    /** A slow request that loads the session, which `end` then deletes or rotates, and saves afterwards. */
    async function lateRequest(end: (client: HttpAgent) => Promise<unknown>) {
      let arrived!: () => void;
      let goOn!: () => void;
      const arrival = new Promise<void>((resolve) => (arrived = resolve));
      const released = new Promise<void>((resolve) => (goOn = resolve));
      const { agent } = await startApp({
        ...base,
        configure: (app) =>
          app.use('/set/value', async (request: { session: Session }, _: unknown, next: () => void) => {
            if (request.session.isNew) return next();
            arrived();
            await released;
            next();
          }),
      });
      const client = agent();
      await client.get('/set/value');
      const slow = client.fork();
      const response = slow.get('/set/value');
      await arrival;
      await end(client);
      goOn();
      return { response: await response, client, slow };
    }

    it('is not changed by a slow request in flight during logout', async () => {
      const { response, slow } = await lateRequest((client) => client.request('DELETE', '/login'));
      expect([response.status, response.setCookies]).toEqual([200, []]);
      expect((await slow.get('/read')).json()).toEqual({});
    });

    it('is not changed by a slow request in flight during login', async () => {
      const { response, client } = await lateRequest((each) => each.post('/login'));
      expect([response.status, response.setCookies]).toEqual([200, []]);
      expect((await client.get('/read')).json()).toMatchObject({ via: 'value' });
    });

    describe('Secure auto', () => {
      const forwarded = { headers: { 'x-forwarded-proto': 'https' } };

      it('logs once why Secure is missing behind a proxy that is not trusted', async () => {
        const { log, agent } = await startApp(base);
        for (let request = 0; request < 3; request++) {
          const response = await agent().get('/set/value', forwarded);
          expect(response.setCookies[0]).not.toMatch(/Secure/);
        }
        expect(log.matching(/X-Forwarded-Proto says https.*app\.set\('trust proxy'/)).toHaveLength(1);
      });

      it('follows the trusted proxy, and sets no Secure over http', async () => {
        const { log, agent } = await startApp({ ...base, trustProxy: 'loopback' });
        expect((await agent().get('/set/value', forwarded)).setCookies[0]).toMatch(/; Secure/);
        expect((await agent().get('/set/value')).setCookies[0]).not.toMatch(/Secure/);
        expect(log.lines).toEqual([]);
      });
    });
  });

  describe('the session', () => {
    it('is available to services, even after the body was parsed', async () => {
      const { agent } = await startApp(base);
      const client = agent();
      expect((await client.get('/visits')).json()).toEqual({ visits: 1 });
      expect((await client.post('/visits', { some: 'body' })).json()).toEqual({ visits: 2 });
      const both = await Promise.all([client.get('/visits'), agent().get('/visits')]);
      expect(both.map((response) => response.json())).toEqual([{ visits: 3 }, { visits: 1 }]);
    });

    it('passes its attributes and its id to handlers', async () => {
      const { agent } = await startApp(base);
      const client = agent();
      expect((await client.post('/set/body', { a: 1 })).json()).toEqual({});
      expect((await client.post('/set/body', { a: 1 })).json()).toEqual({ count: 1 });
      const { id } = (await client.get('/id')).json<{ id: string }>();
      expect(id).toMatch(/^[\w-]{43}$/);
      expect(id).not.toBe(client.cookie('SESSION'));
    });

    it('does not appear in copies and dumps of the request', async () => {
      const keys: string[] = [];
      const { agent } = await startApp({
        ...base,
        configure: (app) =>
          app.use((request: object, _: unknown, next: () => void) => {
            keys.push(...Object.keys(request));
            next();
          }),
      });
      expect((await agent().get('/plain')).headers.vary).toBeUndefined();
      expect(keys).not.toContain('session');
    });

    it('is available in wrappers of the request, and not in copies', async () => {
      const seen: unknown[] = [];
      const { agent } = await startApp({
        ...base,
        configure: (app) =>
          app.use((request: { session: Session }, _: unknown, next: () => void) => {
            const wrappers = [Object.create(request) as typeof request, new Proxy(request, {})];
            seen.push(...wrappers.map(({ session }) => session === request.session), { ...request }.session);
            next();
          }),
      });
      await agent().get('/plain');
      expect(seen).toEqual([true, true, undefined]);
    });

    it.each(['early', 'late'])('cannot be created after the headers were sent: used %s', async (when) => {
      const { store, agent } = await startApp(base);
      expect((await agent().get(`/after-head/${when}`)).text).toBe('begun SessionStateError');
      expect(store.calls).toEqual([]);
    });

    it('can be saved explicitly after the headers were sent', async () => {
      const { agent } = await startApp(base);
      const client = agent();
      await client.get('/set/value');
      expect((await client.get('/save-late')).text).toBe('begun saved');
      expect((await client.get('/read')).json()).toEqual({ via: 'value', late: true });
    });

    it('logs that changes after the headers were sent are lost', async () => {
      const { log, agent } = await startApp(base);
      const client = agent();
      await client.get('/set/value');
      expect((await client.get('/lose-late')).text).toBe('begun');
      await eventually(() => expect(log.matching(/^warn Changes of session \S+ are lost/)).toHaveLength(1));
      expect((await client.get('/read')).json()).toEqual({ via: 'value' });
      await client.get('/save-late');
      expect(log.matching(/^warn Changes of session/)).toHaveLength(1);
    });

    it('logs that an object was changed in place after the headers were sent, by the handler that sent them', async () => {
      const { log, agent } = await startApp(base);
      const client = agent();
      await client.get('/cart');
      expect((await client.get('/lose-in-place')).text).toBe('begun');
      await eventually(() => expect(log.matching(/^warn Changes of session \S+ are lost/)).toHaveLength(1));
    });

    it.each([
      [10, 11],
      [0, 0],
    ])('leaves all listeners to an application whose limit is %i', async (most, allowed) => {
      const { agent } = await startApp(base);
      expect((await agent().get(`/listeners/${most}`)).json()).toEqual({ most: allowed, added: 1 });
    });

    it('can be read by an access log during an outage of the store', async () => {
      const asked: unknown[] = [];
      const { store, agent } = await startApp({
        ...base,
        configure: (app) =>
          app.use((request: { session?: Session }, response: ServerResponse, next: () => void) => {
            response.on('finish', () => asked.push(request.session?.id));
            next();
          }),
      });
      const client = agent();
      await client.get('/set/value');
      store.break('load');
      expect((await client.get('/plain')).status).toBe(200);
      await eventually(() => asked.length === 2);
      expect(asked).toEqual([expect.stringMatching(/^[\w-]{43}$/), undefined]);
    });

    it('has no changes of a handler whose Observable Nest stops, because the client has left', async () => {
      const { store, agent } = await startApp(base);
      const client = agent();
      await client.get('/set/value');
      stopped = undefined;
      const leaving = new AbortController();
      const response = client.get('/endless', { signal: leaving.signal }).catch((error: Error) => error.name);
      await eventually(() => expect(stopped).toBe(false));
      leaving.abort();
      expect(await response).toBe('AbortError');
      await eventually(() => expect(stopped).toBe(true));
      expect((await client.get('/read')).json()).toEqual({ via: 'value' });
      expect(store.calls).toEqual(['create', 'load', 'load']);
    });

    it('completes a request whose client leaves during the load', async () => {
      const { store, agent } = await startApp(base);
      const client = agent();
      await client.get('/set/value');
      const gate = store.gate('load');
      const leaving = new AbortController();
      const response = client.get('/set/res', { signal: leaving.signal }).catch((error: Error) => error.name);
      await gate.reached();
      leaving.abort();
      expect(await response).toBe('AbortError');
      gate.open();
      await eventually(async () => expect((await client.get('/read')).json()).toEqual({ via: 'res' }));
    });
  });
});
