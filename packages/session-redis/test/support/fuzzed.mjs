// An application over HTTP that does with its session whatever a client asks for, in a process of its own. It runs the
// built packages and logs everything that it can. Commands on its standard input: `heap` prints the bytes that are left
// after a collection (start it with --expose-gc), `counts` what it has done so far, and `end` ends every session.
import { Readable } from 'node:stream';
import { createInterface } from 'node:readline';
import 'reflect-metadata';
import {
  BadRequestException,
  Body,
  ConsoleLogger,
  Controller,
  Delete,
  Get,
  Headers,
  Inject,
  Module,
  Param,
  Post,
  Redirect,
  Req,
  Sse,
  StreamableFile,
} from '@nestjs/common';
import { APP_GUARD, NestFactory } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import {
  Authenticated,
  BrowserSessions,
  CompositeSessionIdResolver,
  CookieSessionIdResolver,
  CsrfGuard,
  csrfTokenOf,
  CsrfToken,
  HeaderSessionIdResolver,
  KeepSessionIdle,
  OnSessionEvent,
  RecentlyAuthenticated,
  Session,
  SessionAttributeError,
  SessionEvent,
  SessionModule,
  Sessions,
} from '@nest-session/core';
import { RedisSessionModule } from '@nest-session/redis';
import { from } from 'rxjs';

const { ADAPTER, CONFIGURATION, REDIS_URL, SIGNING_KEYS = '' } = process.env;

const wellFormed = (value) => (typeof value === 'string' && value.isWellFormed() ? value : undefined);

const BOUNDS = { maxAttributes: 24, maxAttributeSize: 3000, maxSessionSize: 12_000 };

const CONFIGURATIONS = {
  'cookies and headers': {
    session: {
      sessionIdResolver: new CompositeSessionIdResolver(
        new CookieSessionIdResolver(),
        HeaderSessionIdResolver.xAuthToken(),
      ),
      maxSessions: { perPrincipal: 3 },
      devices: true,
      touchInterval: 0,
    },
  },
  aliases: {
    session: {
      multipleSessions: true,
      cookie: { maxAge: '1d' },
      absoluteTimeout: '20m',
      touchInterval: 0,
      indexes: { team: ({ getAttribute }) => wellFormed(getAttribute('team')) },
    },
  },
  'signed cookies, strict': {
    session: {
      security: 'strict',
      cookie: { signingKeys: SIGNING_KEYS.split(' '), rememberMe: '2h' },
      maxSessions: { perPrincipal: 2, whenReached: 'refuse' },
      visitorAttributes: ['captcha'],
      mayCreate: ({ headers }) => headers['x-refused'] === undefined,
    },
    partitions: 4,
  },
  CSRF: {
    session: { csrf: { trustedOrigins: ['https://shop.example.org'] }, anonymousTimeout: '10m' },
    guard: { provide: APP_GUARD, useExisting: CsrfGuard },
  },
};
const { session, partitions, guard } = CONFIGURATIONS[CONFIGURATION];

/** A name or a value that no session can have is a mistake of the client. */
function refuse(error) {
  if (error instanceof SessionAttributeError || error instanceof TypeError) throw new BadRequestException();
  throw error;
}

function store(change) {
  try {
    change();
  } catch (error) {
    refuse(error);
  }
}

function nameIn(body) {
  const name = wellFormed(body?.name);
  if (!name) throw new BadRequestException();
  return name;
}

/** With CSRF protection, every response has the token for the next request, as a page has it. */
async function shown(of) {
  const token = guard && (await csrfTokenOf(of));
  const { id, isNew, principalName, attributeNames } = of;
  return { id, isNew, principalName, names: attributeNames.length, owner: of.getAttribute('owner'), token };
}

/** Twice the same number: not if the header was damaged. */
function own(of, { 'x-owner': owner }) {
  if (/^owner-of-visit-(\d+)-\1$/.test(owner)) of.setAttribute('owner', owner);
}

const SESSION = Session();
const BODY = Body();
const HEADERS = Headers();

/** By method and path: the decorators of the parameters, the handler and its own decorators. */
const ROUTES = {
  'GET read': [[SESSION], shown],
  'GET nothing': [[], () => ({})],
  'POST start': [
    [SESSION, HEADERS],
    (of, headers) => {
      own(of, headers);
      return shown(of);
    },
  ],
  'POST set': [
    [SESSION, HEADERS, BODY],
    (of, headers, body) => {
      own(of, headers);
      const entries = typeof body === 'object' && body !== null ? Object.entries(body) : [['value', body]];
      for (const [name, value] of entries) store(() => of.setAttribute(name, value));
      return shown(of);
    },
  ],
  'POST change': [
    [SESSION, BODY],
    (of, body) => {
      for (const name of of.attributeNames) {
        const value = of.getAttribute(name);
        if (Array.isArray(value)) value.push(String(body?.text));
      }
      return shown(of);
    },
  ],
  'POST push/:name': [
    [SESSION, Param('name'), BODY],
    async (of, name, body) => {
      const push = (list) => [...(Array.isArray(list) ? list : []), body].slice(-9);
      await of.updateAttribute(name, push).catch((error) => refuse(error));
      return shown(of);
    },
  ],
  'POST login': [
    [SESSION, HEADERS, BODY],
    (of, headers, body) => {
      own(of, headers);
      const keep = Array.isArray(body?.keep) ? body.keep.filter((name) => typeof name === 'string') : undefined;
      const remember = CONFIGURATION.startsWith('signed') && body?.remember === true;
      store(() => of.signIn(nameIn(body), { remember, keep }));
      return shown(of);
    },
  ],
  'POST principal': [
    [SESSION, BODY],
    (of, body) => {
      store(() => (of.principalName = wellFormed(body?.name) || undefined));
      return shown(of);
    },
  ],
  'POST logout': [[SESSION], (of) => void of.signOut()],
  'POST invalidate': [[SESSION], (of) => void of.invalidate()],
  'POST rotate': [
    [SESSION],
    (of) => {
      of.changeSessionId();
      return shown(of);
    },
  ],
  'POST interval': [
    [SESSION, BODY],
    (of, body) => {
      const seconds = [-1, 0, 1, 60, 3600].find((each) => each === body?.interval);
      if (seconds === undefined) throw new BadRequestException();
      of.maxInactiveInterval = seconds;
      return shown(of);
    },
  ],
  'POST save': [
    [SESSION, HEADERS],
    async (of, headers) => {
      own(of, headers);
      return { outcome: await of.save() };
    },
  ],
  'POST fail': [
    [SESSION, HEADERS],
    (of, headers) => {
      own(of, headers);
      throw new BadRequestException();
    },
  ],
  'GET form': [[SESSION, CsrfToken()], async (of, token) => ({ ...(await shown(of)), token })],
  'GET account': [[SESSION], shown, Authenticated()],
  'GET password': [[SESSION], shown, RecentlyAuthenticated('5m')],
  'GET redirected': [[SESSION, HEADERS], own, Redirect('/read', 302)],
  'GET file': [
    [SESSION, HEADERS],
    (of, headers) => {
      own(of, headers);
      return new StreamableFile(Readable.from(['one', 'two'].map((text) => Buffer.from(text))));
    },
  ],
  'GET sse': [
    [SESSION, HEADERS],
    (of, headers) => {
      own(of, headers);
      return from([{ data: 'one' }, { data: 'two' }]);
    },
    undefined,
  ],
  'GET request': [[Req()], ({ session: of }) => (of ? shown(of) : {})],
  'GET mine': [
    [SESSION],
    async function (of) {
      const ids = [];
      for await (const { id } of this.sessions.ofPrincipal(of.principalName)) ids.push(id);
      return { ...(await shown(of)), ids, count: await this.sessions.count(of.principalName) };
    },
    Authenticated(),
  ],
  'DELETE mine/:id': [
    [SESSION, Param('id')],
    async function (of, id) {
      return { ended: await this.sessions.end(id, { of: of.principalName }) };
    },
    Authenticated(),
  ],
  'DELETE mine': [
    [SESSION],
    async function (of) {
      return { ended: await this.sessions.endAll(of.principalName, { except: of }) };
    },
    Authenticated(),
  ],
};

/** Makes the touches of all requests wait until their routes are known. */
const IDLE_ROUTES = {
  'GET idle': [[SESSION], shown, KeepSessionIdle()],
};

/** Makes the library follow each request, so that it knows the current one. */
const ALIAS_ROUTES = {
  'GET accounts': [
    [SESSION],
    async function (of) {
      const sessions = await this.browser.list();
      const owners = [...sessions.values()].map((each) => each.getAttribute('owner'));
      return { ...(await shown(of)), owners, link: this.browser.link('/read'), add: this.browser.newAlias };
    },
  ],
  'DELETE accounts/:alias': [
    [Param('alias')],
    async function (alias) {
      return { ended: await this.browser.end(alias) };
    },
  ],
};

function controllerOf(routes, property, service) {
  class Routes {
    constructor(injected) {
      this[property] = injected;
    }
  }
  Controller()(Routes);
  Inject(service)(Routes, undefined, 0);
  for (const [name, [parameters, handler, ...decorators]] of Object.entries(routes)) {
    const [method, path] = name.split(' ');
    // A function of its own, because decorators mark it.
    Routes.prototype[name] = function (...values) {
      return handler.apply(this, values);
    };
    const isSse = decorators.includes(undefined);
    const route = isSse ? Sse(path) : { GET: Get, POST: Post, DELETE: Delete }[method](path);
    const all = [route, ...decorators.filter((each) => each !== undefined)];
    Reflect.decorate(all, Routes.prototype, name, Object.getOwnPropertyDescriptor(Routes.prototype, name));
    for (const [index, decorator] of parameters.entries()) decorator(Routes.prototype, name, index);
  }
  return Routes;
}

const events = { created: 0, 'id-changed': 0, 'signed-in': 0, deleted: 0, expired: 0 };
class Handlers {
  count({ type }) {
    events[type]++;
  }
}
OnSessionEvent(SessionEvent)(Handlers.prototype, 'count', Object.getOwnPropertyDescriptor(Handlers.prototype, 'count'));

class FuzzedModule {}
Module({
  imports: [
    SessionModule.forRoot({ ...BOUNDS, ...session, exclude: ({ url }) => url.startsWith('/nothing') }),
    RedisSessionModule.forRoot({
      url: REDIS_URL,
      partitions,
      commandTimeout: '30s',
      grace: '3h',
      cleanup: { cron: '* * * * * *' },
      events: { retention: '3h' },
    }),
  ],
  controllers: [
    controllerOf(ROUTES, 'sessions', Sessions),
    ...(CONFIGURATION === 'aliases' ? [controllerOf(ALIAS_ROUTES, 'browser', BrowserSessions)] : []),
    ...(CONFIGURATION === 'CSRF' ? [controllerOf(IDLE_ROUTES, 'sessions', Sessions)] : []),
  ],
  providers: [Handlers, ...(guard ? [guard] : [])],
})(FuzzedModule);

const adapter = ADAPTER === 'fastify' ? new FastifyAdapter() : new ExpressAdapter();
const logger = new ConsoleLogger({ logLevels: ['verbose', 'debug', 'log', 'warn', 'error', 'fatal'], colors: false });
const app = await NestFactory.create(FuzzedModule, adapter, { logger });

const PATHS = new Set(Object.keys({ ...ROUTES, ...ALIAS_ROUTES, ...IDLE_ROUTES }).map((name) => name.split(/[ /]/)[1]));
const responses = {};
const server = app.getHttpServer();
// A minute: a client that waits for a connection to be closed notices when it is not.
server.keepAliveTimeout = 60_000;
server.prependListener('request', (request, response) => {
  // Tells the client whether the response has a body.
  response.setHeader('X-Request-Id', request.method);
  response.once('finish', () => {
    const [path] = request.url.slice(1).split(/[/?]/);
    const outcome = `${PATHS.has(path) ? path : 'elsewhere'} ${response.statusCode}`;
    responses[outcome] = (responses[outcome] ?? 0) + 1;
  });
});
await app.listen(0, '127.0.0.1');

const COMMANDS = {
  heap: () => {
    globalThis.gc();
    return process.memoryUsage().heapUsed;
  },
  counts: () => ({ responses, events }),
  end: () => app.get(Sessions, { strict: false }).endEverySession(),
};
async function answer(line) {
  const [number, command] = line.split(' ');
  process.stdout.write(`done ${number} ${JSON.stringify((await COMMANDS[command]()) ?? null)}\n`);
}
createInterface({ input: process.stdin }).on('line', (line) => void answer(line));
process.stdout.write(`listening ${await app.getUrl()}\n`);
