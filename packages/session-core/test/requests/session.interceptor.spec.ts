import { once } from 'node:events';
import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import {
  type ArgumentsHost,
  type CallHandler,
  Catch,
  Controller,
  type ExceptionFilter,
  type ExecutionContext,
  Get,
  type NestInterceptor,
  Res,
  Sse,
} from '@nestjs/common';
import { APP_FILTER, APP_INTERCEPTOR } from '@nestjs/core';
import { ExecutionContextHost } from '@nestjs/core/helpers/execution-context-host.js';
import { LeakGuard } from '@nest-session/test-infrastructure';
import { sessionOf } from '@nest-session/testing';
import { EMPTY, NEVER, of, startWith, tap, toArray } from 'rxjs';
import { CookieSessionIdResolver, Session, SessionInterceptor, SessionStoreError } from '../../src/index.js';
import { sharedResponseFunctions } from '../../src/http/response-hold.js';
import { ServedRequest } from '../../src/http/serve-request.js';
import { SessionExtension } from '../../src/http/session-extension.js';
import { GatedRepository, STORE_FAILURE } from '../support/gated.repository.js';
import { closeApps, startApp } from '../support/session.app.js';

LeakGuard.install();

interface ExpressResponse extends ServerResponse {
  json(body: unknown): void;
  status(code: number): ExpressResponse;
}

const caught: string[] = [];

@Catch()
class NotesEverything implements ExceptionFilter {
  catch(error: Error, host: ArgumentsHost): void {
    caught.push(error.name);
    const http = host.switchToHttp();
    const response = http.getResponse<ExpressResponse>();
    if (response.headersSent) return;
    if (error instanceof SessionStoreError) {
      // This change is not saved, since the save of this request has already failed.
      http.getRequest<{ session: Session }>().session.setAttribute('seen', true);
      response.setHeader('X-Filter', '1');
      response.status(507).json({ sorry: true });
    } else response.status(500).json({ error: error.name });
  }
}

class ChangesAfterwards implements NestInterceptor {
  intercept(context: ExecutionContext, next: CallHandler) {
    const { session } = context.switchToHttp().getRequest<{ session: Session }>();
    return next.handle().pipe(tap(() => session.setAttribute('after', true)));
  }
}

class Collects implements NestInterceptor {
  intercept(_: ExecutionContext, next: CallHandler) {
    return next.handle().pipe(toArray());
  }
}

@Controller()
class TestController {
  @Get('value')
  value(@Session() session: Session) {
    session.setAttribute('a', 1);
    return { ok: true };
  }

  @Get('values')
  values(@Session() session: Session) {
    return of(1, 2, 3).pipe(tap((value) => session.setAttribute('value', value)));
  }

  @Get('read')
  read(@Session() session: Session) {
    return session.attributeNames;
  }

  @Sse('no-events')
  noEvents(@Session() session: Session) {
    session.setAttribute('a', 1);
    return EMPTY;
  }

  @Sse('events')
  events(@Session() session: Session) {
    session.setAttribute('a', 1);
    return NEVER.pipe(startWith({ data: 'first' }));
  }

  @Get('res')
  res(@Session() session: Session, @Res() response: ExpressResponse) {
    session.setAttribute('a', 1);
    response.json({ ok: true });
  }

  @Get('res-later')
  async resLater(@Session() session: Session, @Res() response: ExpressResponse) {
    session.setAttribute('a', 1);
    // The interceptor has begun the save when the response begins.
    setImmediate(() => response.json({ ok: true }));
  }

  @Get('twice')
  twice(@Session() session: Session, @Res() response: ExpressResponse) {
    session.setAttribute('a', 1);
    response.json({ first: true });
    response.json({ second: true });
  }
}

const base = { controllers: [TestController], providers: [{ provide: APP_FILTER, useClass: NotesEverything }] };

beforeEach(() => caught.splice(0));
afterEach(closeApps);

describe('SessionInterceptor', () => {
  it('passes a failed save to the filters, whose response is sent unchanged, without a cookie or a second save', async () => {
    let closed: Promise<unknown> | undefined;
    const { store, agent, log } = await startApp({
      ...base,
      configure: (app) =>
        void app.use((_: object, response: ServerResponse, next: () => void) => {
          closed = once(response, 'close');
          next();
        }),
    });
    store.break('create');
    const response = await agent().get('/value');
    expect([response.status, response.json(), response.headers['x-filter']]).toEqual([507, { sorry: true }, '1']);
    expect(response.setCookies).toEqual([]);
    expect(caught).toEqual(['SessionStoreError']);
    expect(store.calls).toEqual(['create']);
    // Nor does the log call lost what the filter has set: the failure says so.
    await closed;
    await nextTurn();
    expect(log.matching(/are lost/)).toEqual([]);
  });

  it('leaves to the response what changes after its save, each time', async () => {
    const { app, store, agent } = await startApp({
      ...base,
      configure: (each) =>
        void each.use((request: { session: Session }, response: ExpressResponse, next: () => void) => {
          const { json } = response;
          response.json = (body) => {
            const { session } = request;
            session.setAttribute('late', session.getAttributeOrDefault('late', 0) + 1);
            json.call(response, body);
          };
          next();
        }),
    });
    const client = agent();
    for (let visit = 1; visit <= 3; visit++) {
      store.calls.length = 0;
      await client.get('/value');
      expect(store.calls.filter((call) => call === 'create' || call === 'update')).toHaveLength(2);
      expect((await sessionOf(app, client))?.getAttribute('late')).toBe(visit);
    }
  });

  it('saves once, after the last value of an Observable', async () => {
    const { store, agent } = await startApp(base);
    const client = agent();
    expect((await client.get('/values')).text).toBe('3');
    expect(store.calls).toEqual(['create']);
    expect((await client.get('/read')).json()).toEqual(['value']);
  });

  it('saves before the first event of a stream, and does not wait for the last one', async () => {
    const { store, agent } = await startApp(base);
    // Ends a stream that would keep the application from closing if no event came.
    const message = await agent().open('GET', '/events', { signal: AbortSignal.timeout(30_000) });
    expect([message.statusCode, message.headers['set-cookie']?.length, store.calls]).toEqual([200, 1, ['create']]);
    for await (const chunk of message.setEncoding('utf8')) if (String(chunk).includes('data: first')) break;
    message.destroy();
  });

  it('passes the failed save of a stream that ends without an event to the filters', async () => {
    const { store, agent } = await startApp(base);
    store.break('create');
    const response = await agent().get('/no-events');
    expect([response.status, response.json(), response.setCookies]).toEqual([507, { sorry: true }, []]);
    expect(caught).toEqual(['SessionStoreError']);
  });

  it('passes all values to the interceptors around it', async () => {
    const { app, agent } = await startApp({
      ...base,
      configure: (each) => void each.useGlobalInterceptors(new Collects()),
    });
    expect(app).toBeDefined();
    expect((await agent().get('/values')).json()).toEqual([1, 2, 3]);
  });

  it.each(['inside', 'outside'])('loses nothing that an interceptor changes afterwards, %s', async (where) => {
    const { agent } = await startApp({
      ...base,
      ...(where === 'inside' && {
        providers: [...base.providers, { provide: APP_INTERCEPTOR, useClass: ChangesAfterwards }],
      }),
      configure: (each) => void (where === 'outside' && each.useGlobalInterceptors(new ChangesAfterwards())),
    });
    const client = agent();
    await client.get('/value');
    expect((await client.get('/read')).json()).toEqual(['a', 'after']);
  });

  it('neither saves nor throws once the headers were sent', async () => {
    const { store, agent } = await startApp(base);
    store.break('create');
    const response = await agent().get('/res');
    expect([response.status, response.setCookies]).toEqual([503, []]);
    expect(caught).toEqual([]);
    expect(store.calls).toEqual(['create']);
  });

  it('shares a failing save with a response that begins meanwhile, which is not a 200', async () => {
    const { store, agent } = await startApp(base);
    const gate = store.gate('create');
    const response = agent().get('/res-later');
    await gate.reached();
    await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
    gate.fail(STORE_FAILURE);
    expect([(await response).status, (await response).setCookies]).toEqual([503, []]);
    expect(store.calls).toEqual(['create']);
    expect(caught).toEqual([]);
  });

  describe('called directly', () => {
    function interceptOf(store: GatedRepository) {
      const request = new IncomingMessage(new Socket());
      const parts = {
        repository: store,
        resolver: new CookieSessionIdResolver(),
        replaceIn: sharedResponseFunctions(),
        extension: new SessionExtension(),
      };
      const commit = new ServedRequest(request, new ServerResponse(request), parts);
      const values = new SessionInterceptor().intercept(new ExecutionContextHost([request]), {
        handle: () => of(1, 2),
      });
      return { commit, values };
    }

    it('completes in the same tick when there is nothing to save', () => {
      const { values } = interceptOf(new GatedRepository());
      const seen: unknown[] = [];
      values.subscribe({ next: (value) => seen.push(value), complete: () => seen.push('complete') });
      expect(seen).toEqual([1, 2, 'complete']);
    });

    it('reports no failure of a save to a client that has left', async () => {
      const store = new GatedRepository();
      const gate = store.gate('create');
      const { commit, values } = interceptOf(store);
      commit.session.session.setAttribute('a', 1);
      const seen: unknown[] = [];
      const subscription = values.subscribe({
        error: (error) => seen.push(error),
        complete: () => seen.push('complete'),
      });
      await gate.reached();
      subscription.unsubscribe();
      gate.fail(STORE_FAILURE);
      await expect(commit.session.save()).rejects.toBe(STORE_FAILURE);
      await new Promise((resolve) => setImmediate(resolve));
      expect(seen).toEqual([]);
    });
  });

  it('lets a second response fail as it does without a session', async () => {
    const { agent } = await startApp(base);
    const response = await agent().get('/twice');
    expect([response.status, response.json()]).toEqual([200, { first: true }]);
    expect(response.setCookies).toHaveLength(1);
    expect(caught).toHaveLength(1);
  });
});
